package machine

import (
	"fmt"
	"regexp"
	"time"

	"libvirt.org/go/libvirtxml"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/integration/faults/script"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// MostMemory and MostVCPUs are how large a guest can become while it runs, where people change that.
const (
	MostMemory = 4 * units.GiB
	MostVCPUs  = 8
)

// Size is what a guest takes of its machine now.
func (d *Domain) Size() model.Size {
	if d.Balloon > 0 {
		return model.Size{Memory: units.Bytes(d.Balloon), VCPUs: d.VCPUs}
	}
	return model.Size{Memory: units.Bytes(d.MemoryBytes), VCPUs: d.VCPUs}
}

// memory is what a guest takes of it.
func (d *Domain) memory() int64 { return int64(d.Size().Memory) }

// wants is what a guest that has not begun yet takes of it.
func (d *Domain) wants() int64 {
	d.readSize()
	return d.memory()
}

// readSize takes what a domain's document says of how large it begins.
func (d *Domain) readSize() {
	var document libvirtxml.Domain
	if document.Unmarshal(d.xml) != nil {
		return
	}
	if now := document.CurrentMemory; now != nil {
		d.Balloon = int64(now.Value) << 10
	}
	if document.VCPU != nil && document.VCPU.Current > 0 {
		d.VCPUs = int(document.VCPU.Current)
	}
}

var (
	currentMemory = regexp.MustCompile(`(<currentMemory[^>]*>)\d+(<)`)
	currentVCPUs  = regexp.MustCompile(`(<vcpu[^>]*current=["'])\d+(["'])`)
)

// resized is a domain's document with another size.
func resized(xml string, size model.Size) string {
	xml = currentMemory.ReplaceAllString(xml, fmt.Sprintf("${1}%d${2}", size.Memory>>10))
	return currentVCPUs.ReplaceAllString(xml, fmt.Sprintf("${1}%d${2}", size.VCPUs))
}

// SetSize is somebody who gives a guest another size with virsh: the one that runs here, what is kept of its definition, or both. It tells
// whether that was possible. libvirt changes no guest that a migration works on, and nobody gives one more than its machine has free.
func SetSize(h *Machine, vm string, what script.Happening) bool {
	d := h.Domains[vm]
	if !h.Up || h.Hung || h.Frozen || d == nil || !d.Managed || d.Forgotten {
		return false
	}
	live, kept := script.SizeParts(what.What)
	size := d.Size()
	if script.SetsMemory(what.What) {
		size.Memory = units.Bytes(what.Other) * units.GiB
	} else {
		size.VCPUs = what.Other
	}
	if kept {
		h.Note(string(what.What), h.ID, vm, fmt.Sprint(size))
		h.kept[vm] = size
	}
	if !live {
		return kept
	}
	if d.State != hypervisor.Running || d.move != nil || d.JobActive || d.Balloon == 0 || int64(size.Memory)-d.memory() > h.free() {
		return false
	}
	h.Note(string(what.What), h.ID, vm, fmt.Sprint(size))
	d.Balloon, d.VCPUs, d.SizedAt = int64(size.Memory), size.VCPUs, h.Now
	d.xml = resized(d.xml, size)
	return true
}

// asKept gives a guest that somebody starts with virsh the size that is kept of its definition.
func (d *Domain) asKept() {
	if size, changed := d.At.kept[d.UUID]; changed {
		d.xml = resized(d.xml, size)
	}
	d.readSize()
}

// Sample is what an agent measures of the guests of a machine.
func Sample(h *Machine) (all []*berthv1.DomainTelemetry) {
	if !h.Sizes || !h.Up || h.Hung {
		return nil
	}
	for _, d := range h.Sorted() {
		if d.Forgotten || d.State != hypervisor.Running && d.State != hypervisor.Paused && d.State != hypervisor.PausedMigration {
			continue
		}
		balloon, most, vcpus := d.memory(), d.MemoryBytes, int32(d.VCPUs)
		all = append(all, &berthv1.DomainTelemetry{
			Uuid: d.UUID, RssBytes: &balloon, BalloonBytes: &balloon, MaximumMemoryBytes: &most, Vcpus: &vcpus,
		})
	}
	return all
}

// SizedBefore tells whether nobody has changed the size of a guest since a time.
func (d *Domain) SizedBefore(at time.Time) bool { return d.SizedAt.Before(at) }
