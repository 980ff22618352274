package machine

import (
	"slices"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
	"berth/shared/units"
)

// Resize is somebody who gives the disk of a VM another size: of a guest that runs here, with virsh, or of one that is off. It tells
// whether that was possible: QEMU resizes no disk that is being copied, and lets nobody write to one that a guest has.
func Resize(h *Machine, vm, name string, live bool, size units.Bytes) bool {
	v, d := h.volumes[name], h.Domains[vm]
	if v == nil || v.partial || !h.On || h.Frozen {
		return false
	}
	used := func(other *Domain) bool { return slices.Contains(other.volumes, name) }
	switch {
	case live && (d == nil || !h.Up || h.Hung || d.Forgotten || d.State != hypervisor.Running || d.move != nil || d.JobActive):
		return false
	case !live && slices.ContainsFunc(h.Sorted(), used):
		return false
	}
	h.Note("disk resized", h.ID, vm, size.String())
	v.size = size
	if live {
		d.readSizes()
		h.changed(d)
	}
	return true
}

// DiskSize is how large a disk here is; 0: it is not here.
func DiskSize(h *Machine, name string) units.Bytes {
	if v := h.volumes[name]; v != nil && !v.partial {
		return v.size
	}
	return 0
}

// readSizes is the agent that asks a guest how large its disks are.
func (d *Domain) readSizes() {
	d.DiskSizes = map[string]int64{}
	for _, one := range d.Devices {
		if v := d.At.volumes[one.Source.Volume]; one.Kind == domxml.DiskDevice && v != nil {
			d.DiskSizes[one.Key] = int64(v.size)
		}
	}
}

// fits tells whether each disk that comes along has the size of what was made for it: QEMU copies to no other.
func (m *move) fits() bool {
	for _, name := range m.out.volumes {
		if from, to := m.source.volumes[name], m.target.volumes[name]; from != nil && to != nil && from.size != to.size {
			m.source.Note("copy does not fit", m.target.ID, m.out.UUID, to.size.String())
			return false
		}
	}
	return true
}
