package disksnapshot

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// HeldElsewhere are words of QEMU and of libvirt's lock managers for a file that another process has open. Errors of that kind have no
// number, and any error of QEMU may repeat its option -blockdev.
var HeldElsewhere = []string{`" lock`, "Failed to lock", "Failed to acquire lock", "Lockspace resource"}

// namePrefix is of the names of helpers, before the snapshot's tag.
const namePrefix = "berth-snapshot-"

// IsHelper tells whether a domain is one of HelperFor: no name alone makes one.
func IsHelper(name, uuid string) bool {
	tag, named := strings.CutPrefix(name, namePrefix)
	return named && uuid == uuidFor(tag)
}

func uuidFor(tag string) string {
	sum := sha256.Sum256([]byte(tag))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // a UUID of version 8: of one's own making
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// HelperFor is the domain that has the files of a snapshot as its disks, and its document. A repetition gets the same.
func HelperFor(of hypervisor.DiskSnapshot) (helper *libvirtxml.Domain, text string, err error) {
	helper = &libvirtxml.Domain{
		Type: domxml.VirtQEMU, Name: namePrefix + of.Tag, UUID: uuidFor(of.Tag),
		Memory:  &libvirtxml.DomainMemory{Value: 32, Unit: "MiB"},
		VCPU:    &libvirtxml.DomainVCPU{Value: 1},
		OS:      &libvirtxml.DomainOS{Type: &libvirtxml.DomainOSType{Type: "hvm"}},
		Devices: &libvirtxml.DomainDeviceList{},
	}
	for i, file := range of.Files {
		made, err := domxml.NewDisk(domxml.Disk{Path: file, Format: hypervisor.FormatQCOW2}, func(target string) bool {
			return slices.ContainsFunc(helper.Devices.Disks[:i], func(d libvirtxml.DomainDisk) bool { return d.Target.Dev == target })
		})
		if err != nil {
			return nil, "", fmt.Errorf("%w: %w", hypervisor.ErrUnsupported, err)
		}
		var disk libvirtxml.DomainDisk
		if err := disk.Unmarshal(made.XML); err != nil {
			return nil, "", err
		}
		helper.Devices.Disks = append(helper.Devices.Disks, disk)
	}
	text, err = helper.Marshal()
	return helper, text, err
}

// Document tells libvirt of a snapshot that all disks of a domain have. Full is libvirt's own document of the domain.
func Document(helper *libvirtxml.Domain, full, tag string, at time.Time) (string, error) {
	snapshot := libvirtxml.DomainSnapshot{
		Name: tag, State: "shutoff", CreationTime: strconv.FormatInt(at.Unix(), 10), Memory: &libvirtxml.DomainSnapshotMemory{Snapshot: "no"},
		Disks: &libvirtxml.DomainSnapshotDisks{}, Domain: &libvirtxml.Domain{},
	}
	if err := snapshot.Domain.Unmarshal(full); err != nil {
		return "", err
	}
	for i := range helper.Devices.Disks {
		snapshot.Disks.Disks = append(snapshot.Disks.Disks, libvirtxml.DomainSnapshotDisk{
			Name: helper.Devices.Disks[i].Target.Dev, Snapshot: "internal",
		})
	}
	return snapshot.Marshal()
}
