package domxml

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"
)

// BindingKind says what sort of thing keeps a running domain on its host.
type BindingKind string

// The kinds of what libvirt and QEMU do not take along in a live migration. Cache modes are none of them: every QEMU that libvirt 9 runs
// drops its caches at a hand-over.
const (
	HostDeviceBinding   BindingKind = "host-device"   // a device of the host
	FilesystemBinding   BindingKind = "filesystem"    // a folder of the host
	SharedMemoryBinding BindingKind = "shared-memory" // with another program on the host
	GraphicsBinding     BindingKind = "graphics"      // state of the host's GPU
	MediaBinding        BindingKind = "media"         // what is in a drive: other hosts have to have it under the same path
	TransientBinding    BindingKind = "transient"     // a disk whose writes are thrown away at the end
	CPUBinding          BindingKind = "cpu"           // a feature of the host's CPU
	SnapshotsBinding    BindingKind = "snapshots"     // that libvirt keeps of it
	JobBinding          BindingKind = "job"           // of the whole domain
	BlockJobBinding     BindingKind = "block-job"     // of one disk
)

// MigrationJob is what a job is of that moves a domain.
const MigrationJob = "migration"

// Binding is one thing that keeps a running domain on its host.
type Binding struct {
	Kind BindingKind
	What string // the sort of it in libvirt's word: pci, usb, virtiofs, cdrom, backup, copy ...
	Name string // what it is known by: an address, a tag, a disk's target, a snapshot
	// Source is what is in a drive. Whether other hosts have it is not for the document to tell.
	Source Source
	Count  int       // of snapshots
	Since  time.Time // when a job was first seen
}

// Text is the binding in a few words.
func (b *Binding) Text() string {
	text := strings.ReplaceAll(string(b.Kind), "-", " ")
	for _, more := range []string{b.What, b.Name} {
		if more != "" {
			text += " " + more
		}
	}
	if b.Source != (Source{}) {
		text += " (" + cmp.Or(b.Source.Path, b.Source.Pool+"/"+b.Source.Volume) + ")"
	}
	return text
}

// Bindings lists what of its document keeps a running domain on its host, by what libvirt 9 and 10 check before a migration
// (qemuMigrationSrcIsAllowed), and what a start elsewhere would not find there.
func Bindings(text string) ([]Binding, error) {
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(text); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var b binder
	b.cpu(&domain)
	if list := domain.Devices; list != nil {
		b.interfaces(list.Interfaces)
		for i := range list.Hostdevs {
			b.hostDevice(&list.Hostdevs[i])
		}
		for i := range list.Disks {
			b.disk(&list.Disks[i])
		}
		for i := range list.Filesystems {
			b.filesystem(&list.Filesystems[i])
		}
		for i := range list.Shmems {
			if one := &list.Shmems[i]; one.Role != "master" || one.Model == nil || one.Model.Type == "ivshmem" {
				b.add(SharedMemoryBinding, "ivshmem", one.Name)
			}
		}
		b.others(list)
	}
	return b.found, nil
}

type binder struct{ found []Binding }

func (b *binder) add(kind BindingKind, what, name string) {
	b.found = append(b.found, Binding{Kind: kind, What: what, Name: name})
}

// cpu finds a clock that stops at another host: QEMU lets it go only where its frequency is set.
func (b *binder) cpu(domain *libvirtxml.Domain) {
	if domain.CPU == nil {
		return
	}
	if domain.Clock != nil {
		for _, timer := range domain.Clock.Timer {
			if timer.Name == "tsc" && timer.Frequency > 0 {
				return
			}
		}
	}
	for _, feature := range domain.CPU.Features {
		if feature.Name == "invtsc" && (feature.Policy == "" || feature.Policy == "require" || feature.Policy == "force") {
			b.add(CPUBinding, "feature", feature.Name)
		}
	}
}

// transient devices are unplugged for a migration, and their partner carries the guest over.
func transient(teaming *libvirtxml.DomainInterfaceTeaming) bool {
	return teaming != nil && teaming.Type == "transient"
}

func (b *binder) interfaces(list []libvirtxml.DomainInterface) {
	for i := range list {
		one := &list[i]
		name := ""
		if one.MAC != nil {
			name = strings.ToLower(one.MAC.Address)
		}
		switch {
		case one.Source == nil || transient(one.Teaming):
		case one.Source.Hostdev != nil:
			b.add(HostDeviceBinding, "interface", name)
		case one.Source.VDPA != nil:
			b.add(HostDeviceBinding, "vdpa", name)
		}
	}
}

func (b *binder) hostDevice(device *libvirtxml.DomainHostdev) {
	switch {
	case device.SubsysPCI != nil:
		if pci := device.SubsysPCI; !transient(pci.Teaming) {
			name := ""
			if pci.Source != nil {
				name = pciName(pci.Source.Address)
			}
			b.add(HostDeviceBinding, "pci", name)
		}
	case device.SubsysUSB != nil:
		// One that may be missing is left behind, and the guest sees it unplugged: its owner wants that.
		if source := device.SubsysUSB.Source; source == nil || source.StartUpPolicy == "" || source.StartUpPolicy == "mandatory" {
			b.add(HostDeviceBinding, "usb", usbName(source))
		}
	case device.SubsysMDev != nil:
		name := ""
		if source := device.SubsysMDev.Source; source != nil && source.Address != nil {
			name = source.Address.UUID
		}
		b.add(HostDeviceBinding, "mdev", name)
	case device.SubsysSCSI != nil:
		if source := device.SubsysSCSI.Source; source != nil && source.ISCSI != nil {
			return // reached over the network
		} else if source != nil && source.Host != nil && source.Host.Adapter != nil {
			b.add(HostDeviceBinding, "scsi", source.Host.Adapter.Name)
			return
		}
		b.add(HostDeviceBinding, "scsi", "")
	case device.SubsysSCSIHost != nil:
		name := ""
		if source := device.SubsysSCSIHost.Source; source != nil {
			name = source.WWPN
		}
		b.add(HostDeviceBinding, "scsi_host", name)
	default:
		b.add(HostDeviceBinding, "capabilities", "")
	}
}

func pciName(address *libvirtxml.DomainAddressPCI) string {
	if address == nil {
		return ""
	}
	number := func(n *uint) uint {
		if n == nil {
			return 0
		}
		return *n
	}
	return fmt.Sprintf("%04x:%02x:%02x.%x", number(address.Domain), number(address.Bus), number(address.Slot), number(address.Function))
}

func usbName(source *libvirtxml.DomainHostdevSubsysUSBSource) string {
	switch {
	case source == nil:
		return ""
	case source.Vendor != nil && source.Product != nil:
		return strings.TrimPrefix(source.Vendor.ID, "0x") + ":" + strings.TrimPrefix(source.Product.ID, "0x")
	case source.Address != nil && source.Address.Bus != nil && source.Address.Device != nil:
		return fmt.Sprintf("bus %d device %d", *source.Address.Bus, *source.Address.Device)
	default:
		return ""
	}
}

func (b *binder) disk(disk *libvirtxml.DomainDisk) {
	name := ""
	if disk.Target != nil {
		name = disk.Target.Dev
	}
	if disk.Transient != nil {
		b.add(TransientBinding, "disk", name)
	}
	source := disk.Source
	if source == nil {
		return
	}
	if source.NVME != nil {
		b.add(HostDeviceBinding, "nvme", name)
		return
	}
	// What another host does not have is ejected on the way where the owner wants that.
	required := source.StartupPolicy == "" || source.StartupPolicy == "mandatory"
	if disk.Device != "cdrom" && disk.Device != "floppy" || !required {
		return
	}
	one := Binding{Kind: MediaBinding, What: disk.Device, Name: name, Source: sourceOfDisk(source)}
	if one.Source != (Source{}) {
		b.found = append(b.found, one)
	}
}

func (b *binder) filesystem(one *libvirtxml.DomainFilesystem) {
	what, name := "9p", ""
	if one.Driver != nil && one.Driver.Type == "virtiofs" {
		what = "virtiofs"
	}
	if one.Target != nil {
		name = one.Target.Dir
	}
	b.add(FilesystemBinding, what, name)
}

func (b *binder) others(list *libvirtxml.DomainDeviceList) {
	for i := range list.TPMs {
		if backend := list.TPMs[i].Backend; backend != nil && backend.Passthrough != nil {
			name := ""
			if backend.Passthrough.Device != nil {
				name = backend.Passthrough.Device.Path
			}
			b.add(HostDeviceBinding, "tpm", name)
		}
	}
	for i := range list.Videos {
		one := &list.Videos[i]
		switch {
		case one.Driver != nil && one.Driver.Name == "vhostuser":
			b.add(GraphicsBinding, "vhost-user", one.Model.Type)
		case one.Model.Type == "virtio" && one.Model.Accel != nil && one.Model.Accel.Accel3D == "yes":
			b.add(GraphicsBinding, "3d", one.Model.Type)
		}
	}
}
