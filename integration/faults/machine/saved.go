package machine

import "berth/agent/hypervisor"

// saved are the guests whose memory a machine's libvirt keeps on its disk, by UUID.
type saved map[string]*Domain

// SaveByHand is somebody who has libvirt keep a guest's memory, with virsh or with a service that does that at the host's shutdown. It
// reports false when the machine does not run the guest, or a migration has a part of it.
func SaveByHand(h *Machine, uuid string) bool {
	d := h.Domains[uuid]
	if d == nil || !h.Up || h.Hung || h.Frozen || d.Forgotten || d.State != hypervisor.Running || d.move != nil || d.JobActive {
		return false
	}
	h.Witness.Excuse(uuid)
	delete(h.Domains, uuid)
	d.Persistent, d.Saved = true, true
	if h.saved == nil {
		h.saved = saved{}
	}
	h.saved[uuid] = d
	h.Set(d, hypervisor.Shutoff, "saved")
	return true
}

// Keeps tells whether the machine keeps the memory of a guest that does not run there.
func Keeps(h *Machine, uuid string) bool { return h.saved[uuid] != nil && h.Domains[uuid] == nil }

// ResumeByHand is somebody who starts a guest with virsh whose memory the machine keeps. It reports false when that cannot be.
func ResumeByHand(h *Machine, uuid string) bool {
	d := h.saved[uuid]
	if !Keeps(h, uuid) || !h.On || !h.Up || h.Hung || h.Frozen || h.free() < d.memory() {
		return false
	}
	delete(h.saved, uuid)
	h.Domains[uuid] = d
	d.Persistent, d.Saved, d.why = false, false, ByHand
	h.Set(d, hypervisor.Running, "restored")
	return true
}

// DropMemory is somebody who gives the memory of a guest up that the machine keeps. That takes a machine that is on.
func DropMemory(h *Machine, uuid string) {
	if d := h.saved[uuid]; d != nil && h.On {
		h.Note("virsh managedsave-remove", h.ID, uuid, "")
		delete(h.saved, uuid)
		d.Saved = false
		h.left[uuid] = d
		d.State = hypervisor.Absent
		h.changed(d)
	}
}

// shown is a domain as libvirt shows it, with one that is off and whose memory it keeps; nil: it has none.
func shown(h *Machine, uuid string) *Domain {
	if d := h.listed(uuid); d != nil || h.Domains[uuid] != nil {
		return d
	}
	return h.saved[uuid]
}
