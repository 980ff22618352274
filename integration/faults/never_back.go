package faults

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/promised"
	"berth/integration/faults/script"
)

// die is the end of a host.
func die(w *World, what script.Happening, h *host) {
	if h.Lost {
		return
	}
	w.Draw(script.NeverBack)
	h.forsaken = what.Hard
	h.Lose()
}

// wordAfter is how long after the faults somebody says that a machine which never comes back is off.
const wordAfter = 2 * time.Minute

// sayOff is somebody who says that a machine is off, until that counts as proven.
func (w *World) sayOff(h *host) {
	if record, _ := w.store.Snapshot().Node(h.ID); record.Fenced() {
		return
	}
	w.wish(script.Word, h, "", false)
	w.After(10*time.Second, func() { w.sayOff(h) })
}

// waitsFor tells whether a VM may wait for a node to the end: its host is dead, nobody speaks for it, and nothing else can prove that it is
// off, or does so for this VM.
func (w *World) waitsFor(snapshot *state.Snapshot, vm, id string) bool {
	h := w.host(id)
	node, _ := snapshot.Node(id)
	if h == nil || !h.forsaken || node.Fenced() {
		return false
	}
	return promised.NothingProves(&node, w.available[vm])
}

// showed is what the leader has heard last from a machine of a VM that it has, or whose memory it keeps; nil: it has not.
func (w *World) showed(h *host, vm string) *model.Domain {
	if w.leader == nil || !w.fencing {
		return nil
	}
	facts := w.leader.keeper.facts.Facts(h.ID, w.Now)
	if domain := facts.Domain(vm); domain != nil && (domain.State.Holds() || domain.Saved) {
		return domain
	}
	return nil
}

// operationWaits tells that of an operation.
func (w *World) operationWaits(snapshot *state.Snapshot, op *operation.Operation) bool {
	return w.waitsFor(snapshot, op.VM, op.Source) || w.waitsFor(snapshot, op.VM, op.Target)
}

// vmWaits tells that of a VM: it ran there when it was heard last, or nobody has seen how it left its node. Where messages come out of
// order, what is heard last may be older than the answer that it has left.
func (w *World) vmWaits(snapshot *state.Snapshot, vm *model.VM) bool {
	for _, h := range w.hosts {
		showed := w.Unordered && w.showed(h, vm.ID) != nil
		if w.waitsFor(snapshot, vm.ID, h.ID) && (vm.Holder == h.ID || !vm.Whereabouts.Missing.IsZero() || showed) {
			return true
		}
	}
	return false
}
