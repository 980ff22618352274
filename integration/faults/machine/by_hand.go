package machine

import "berth/agent/hypervisor"

// MigrateByHand is somebody who migrates a guest with virsh, without Berth. It goes well or it does not begin.
func (h *Machine) MigrateByHand(uuid string, to *Machine) bool {
	d := h.Domains[uuid]
	if d == nil || d.State != hypervisor.Running || d.move != nil || to == h || !h.Up || h.Hung || to.Hung || !h.reaches(to) ||
		to.Domains[uuid] != nil || to.free() < d.MemoryBytes {
		return false
	}
	h.Note("virsh migrate", h.ID, uuid, "to "+to.ID)
	in := &Domain{Domain: d.Domain, At: to, xml: d.xml, guest: d.guest, version: -1}
	in.move = &move{over: true, in: in} // for as long as it arrives
	to.Domains[uuid] = in
	to.Set(in, hypervisor.PausedMigration, "migration")
	h.Set(d, hypervisor.PausedMigration, "migration")
	in.version, in.move = d.version, nil
	h.remove(d, "migrated")
	to.Set(in, hypervisor.Running, "migrated")
	return true
}

// Lose is the end of a machine: it is switched off, and nobody switches it on again.
func (h *Machine) Lose() {
	h.PowerCut()
	h.Lost = true
}
