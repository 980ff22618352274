package machine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"berth/agent/hypervisor"
	"berth/integration/faults/script"
)

// ForgetFor is somebody who restarts the libvirtd of the machine that runs a guest, which it forgets, and ends the guest's process after a
// while, as the alarm asks for.
func ForgetFor(machines []*Machine, uuid string, lasts time.Duration) {
	for _, h := range machines {
		if h.Forget(uuid) {
			h.Draw(script.Orphan)
			h.Later(h.Between(100*time.Millisecond, 5*time.Second), h.StartDaemon)
			h.Later(lasts, func() { h.EndOrphan(uuid) })
			return
		}
	}
}

// Forget restarts libvirtd in a way that it does not know a guest any more, whose process runs on. It reports false when the
// machine does not run the guest, or a migration has a part of it.
func (h *Machine) Forget(uuid string) bool {
	d := h.Domains[uuid]
	if d == nil || !h.Up || h.Frozen || d.State != hypervisor.Running || d.move != nil || d.Forgotten {
		return false
	}
	h.KillDaemon()
	h.Note("libvirt forgets", h.ID, uuid, "")
	d.Forgotten = true
	return true
}

// EndOrphan is somebody who ends the process of a guest that libvirt has forgotten.
func (h *Machine) EndOrphan(uuid string) {
	if d := h.Domains[uuid]; d != nil && d.Forgotten {
		h.Witness.Excuse(uuid)
		h.remove(d, "killed")
	}
}

func endOrphans(h *Machine) {
	for _, d := range h.Sorted() {
		h.EndOrphan(d.UUID)
	}
}

// listed is a domain as libvirt knows it; nil: it does not.
func (h *Machine) listed(uuid string) *Domain {
	if d := h.Domains[uuid]; d != nil && !d.Forgotten {
		return d
	}
	return nil
}

// Processes are those of a machine's guests, as the operating system shows them.
func Processes(h *Machine) []hypervisor.Process {
	var all []hypervisor.Process
	for i, d := range h.Sorted() {
		if d.State != hypervisor.Absent && d.State != hypervisor.Shutoff {
			all = append(all, hypervisor.Process{PID: 1000 + i, UUID: d.UUID, Name: d.Name})
		}
	}
	return all
}

// Listed are the domains that a machine's libvirt lists, by UUID.
func Listed(h *Machine) []hypervisor.Domain {
	var all []hypervisor.Domain
	for _, d := range h.Sorted() {
		if !d.Forgotten {
			all = append(all, d.Domain)
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(h.saved)) {
		if Keeps(h, uuid) {
			all = append(all, h.saved[uuid].Domain)
		}
	}
	slices.SortFunc(all, func(a, b hypervisor.Domain) int { return strings.Compare(a.UUID, b.UUID) })
	return all
}
