package model

import (
	"fmt"
	"strings"
	"time"
)

// BindingKind says what sort of thing keeps a running domain on its node.
type BindingKind string

// What libvirt does not take along in a live migration.
const (
	BoundByHostDevice   BindingKind = "host-device"
	BoundByFilesystem   BindingKind = "filesystem"
	BoundBySharedMemory BindingKind = "shared-memory"
	BoundByGraphics     BindingKind = "graphics"
	BoundByMedia        BindingKind = "media" // if other nodes do not have it
	BoundByTransient    BindingKind = "transient"
	BoundByCPU          BindingKind = "cpu"
	BoundBySnapshots    BindingKind = "snapshots"
	BoundByJob          BindingKind = "job"       // of the whole domain
	BoundByBlockJob     BindingKind = "block-job" // of one disk
	BoundByOther        BindingKind = "other"     // a newer agent knows it
	// BoundByPermission is of a guest with what nobody has let through: no other node is to be given its document. Its record says so.
	BoundByPermission BindingKind = "permission"
	// BoundByPause is of a guest that stands still: a migration would let it run. Its state says so, no agent tells it.
	BoundByPause BindingKind = "pause"
)

// Binding is one thing that keeps a running domain on its node, as the node's agent tells it.
type Binding struct {
	Kind   BindingKind
	What   string // the sort of it in libvirt's word: pci, virtiofs, cdrom, backup, copy ...
	Name   string // what it is known by: an address, a tag, a disk's target, a snapshot
	Source DiskSource
	Count  int       // of snapshots
	Since  time.Time // of a job
}

// MigrationJob is what a job is of that moves a domain.
const MigrationJob = "migration"

// Bounds of what an agent tells of one domain.
const (
	MaxBindings    = 64
	MaxBindingText = 256 // characters
)

// IsJob tells whether it ends by itself.
func (b *Binding) IsJob() bool { return b.Kind == BoundByJob || b.Kind == BoundByBlockJob }

// Text says what keeps a VM on its node, as what is said of the VM: "has PCI device 0000:01:00.0 of its node".
func (b *Binding) Text() string {
	switch b.Kind {
	case BoundByHostDevice:
		return "has " + b.device() + " of its node"
	case BoundByFilesystem:
		return fmt.Sprintf("has %s tag %s, which libvirt does not migrate", b.What, b.Name)
	case BoundBySharedMemory:
		return fmt.Sprintf("has shared memory %s (%s), which libvirt does not migrate", b.Name, b.What)
	case BoundByGraphics:
		if b.What == "3d" {
			return "has a display with 3D acceleration, which QEMU does not migrate"
		}
		return fmt.Sprintf("has a %s display, which QEMU does not migrate", b.What)
	case BoundByMedia:
		return fmt.Sprintf("has %s in its %s drive %s, and no other node is known to have that", b.Source.Text(), drives[b.What], b.Name)
	case BoundByTransient:
		return fmt.Sprintf("has transient disk %s, which libvirt does not migrate", b.Name)
	case BoundByCPU:
		return fmt.Sprintf("has CPU feature %s without a TSC frequency, which QEMU does not migrate", b.Name)
	case BoundBySnapshots:
		if b.Count == 1 {
			return fmt.Sprintf("has snapshot %s, and libvirt migrates no domain that has any", b.Name)
		}
		return fmt.Sprintf("has %d snapshots (%s ...), and libvirt migrates no domain that has any", b.Count, b.Name)
	case BoundByJob:
		return fmt.Sprintf("has a %s job of somebody else, which runs since %s", b.What, b.since())
	case BoundByBlockJob:
		return fmt.Sprintf("has a block %s of disk %s by somebody else, which runs since %s", b.What, b.Name, b.since())
	case BoundByPermission:
		return fmt.Sprintf("has something of its host that needs %s, which its cluster does not permit", b.What)
	case BoundByPause:
		if b.What == ReasonIOError {
			return "stands still because a disk of it failed or found no room, and a migration would let it run"
		}
		return "is paused, and a migration would let it run"
	default:
		return strings.TrimSpace(fmt.Sprintf("has %s %s, which its node's agent says cannot move", b.What, b.Name))
	}
}

// drives are the drives for media by libvirt's word.
var drives = map[string]string{"cdrom": "CD", "floppy": "floppy"}

// hostDevices are the sorts of host device by libvirt's word.
var hostDevices = map[string]string{
	"pci": "PCI device", "usb": "USB device", "mdev": "mediated device", "scsi": "SCSI device on", "scsi_host": "SCSI adapter",
	"nvme": "the NVMe disk behind", "tpm": "TPM", "interface": "the network device behind interface",
	"vdpa": "the vDPA device behind interface",
}

func (b *Binding) device() string {
	word, known := hostDevices[b.What]
	if !known {
		word = "device"
	}
	return strings.TrimSpace(word + " " + b.Name)
}

func (b *Binding) since() string {
	if b.Since.IsZero() {
		return "some time ago"
	}
	return b.Since.UTC().Format("2006-01-02 15:04:05 UTC")
}

// WayOut says what lets a VM of this name go.
func (b *Binding) WayOut(vm string) string {
	switch b.Kind {
	case BoundByMedia:
		return fmt.Sprintf(
			"eject it with 'virsh change-media %s %s --eject', or put it into a pool that is declared as shared", vm, Argument(b.Name),
		)
	case BoundBySnapshots:
		return fmt.Sprintf("delete each with 'virsh snapshot-delete %s %s', with --metadata if it is an external one", vm, Argument(b.Name))
	case BoundByJob:
		return fmt.Sprintf("wait until it ends, or end it with 'virsh domjobabort %s'", vm)
	case BoundByBlockJob:
		return fmt.Sprintf("wait until it ends, or end it with 'virsh blockjob %s %s --abort'", vm, Argument(b.Name))
	case BoundByPermission:
		return fmt.Sprintf("let it through for this VM with 'berth vm accept %s', or for all of its cluster with "+
			"'berth cluster set %s --permit LIST'", Argument(vm), Argument(b.Name))
	case BoundByPause:
		if b.What == ReasonIOError {
			return "make room where its disks are"
		}
		return fmt.Sprintf("let it run with 'berth vm resume %s'", Argument(vm))
	default:
		return "shut it down to move it"
	}
}

// Breaks says what becomes of a job when the guest ends.
func (b *Binding) Breaks() string {
	switch {
	case b.Kind == BoundByJob && b.What == "backup":
		return "what the backup has written is not whole"
	case b.Kind == BoundByJob:
		return "the " + b.What + " does not finish"
	default:
		return fmt.Sprintf("the %s of disk %s does not finish", b.What, b.Name)
	}
}

// Argument is a name as one argument of a command that a person may copy. An agent may tell anything.
func Argument(name string) string {
	strange := strings.ContainsFunc(name, func(letter rune) bool { return !strings.ContainsRune(plainLetters, letter) })
	if strange || name == "" || name[0] == '-' {
		return "NAME"
	}
	return name
}

const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/+-"
