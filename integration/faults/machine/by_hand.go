package machine

import (
	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// MigrateByHand is somebody who migrates a guest with virsh, without Berth. It goes well or it does not begin: the disks
// that a guest has on its machine do not go along.
func (h *Machine) MigrateByHand(uuid string, to *Machine) bool {
	d := h.Domains[uuid]
	if d == nil || len(d.volumes) > 0 || localFile(&d.Domain) != "" || d.State != hypervisor.Running || d.move != nil || to == h || !h.Up ||
		h.Hung || to.Hung || !h.reaches(to) || to.Domains[uuid] != nil || len(d.Bindings) > 0 || h.Side != to.Side && d.wideFile() != "" ||
		to.free() < d.memory() {
		return false
	}
	h.Note("virsh migrate", h.ID, uuid, "to "+to.ID)
	in := &Domain{Domain: d.Domain, At: to, xml: d.xml, guest: d.guest, version: -1, why: d.why, Balloon: d.Balloon, SizedAt: h.Now}
	in.move = &move{over: true, in: in} // for as long as it arrives
	to.Domains[uuid] = in
	to.Set(in, hypervisor.PausedMigration, "migration")
	h.Set(d, hypervisor.PausedMigration, "migration")
	in.version, in.move = d.version, nil
	h.remove(d, "migrated")
	to.Set(in, hypervisor.Running, "migrated")
	return true
}

// ByHand is why a guest runs that somebody has started without Berth.
const ByHand = "booted by hand"

// Is tells whether a domain runs for a reason.
func (d *Domain) Is(reason string) bool { return d.why == reason }

// StartByHand is somebody who starts a guest with virsh from the definition that the machine had when it was there last.
// With disks on the machine it is not done: they may be old, and nothing is promised of who starts them.
func (h *Machine) StartByHand(uuid string) bool {
	was := h.left[uuid]
	if was == nil || len(was.volumes) > 0 || !h.On || !h.Up || h.Hung || h.Frozen || h.Domains[uuid] != nil || h.free() < was.MemoryBytes ||
		was.wideFile() != "" && (h.Drifts || !HasNewest(h, was.wideFile())) || localFile(&was.Domain) != "" {
		return false
	}
	h.Note("virsh start", h.ID, uuid, "")
	d := h.launch(was.Domain, was.xml, nil)
	d.asKept()
	d.why, d.JobActive, d.Bindings = ByHand, false, []domxml.Binding{}
	h.Set(d, hypervisor.Running, "booted")
	return true
}

// Lose is the end of a machine: it is switched off, and nobody switches it on again.
func (h *Machine) Lose() {
	h.PowerCut()
	h.Lost = true
}
