package faults

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
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
	h, node := w.host(id), model.Node{}
	if h == nil || !h.forsaken {
		return false
	}
	if node, _ = snapshot.Node(id); node.Fenced() {
		return false
	}
	switch {
	case !w.available[vm]:
		return true
	case node.Fence.Method == model.FenceCommand:
		return node.Fencing.Struck != "" // a person is to look at its device first
	case node.Fence.Method == model.FenceWatchdog:
		return node.Watchdog == 0
	default:
		return true
	}
}

// showed tells whether the leader has heard last from a machine that it has a VM.
func (w *World) showed(h *host, vm string) bool {
	if w.leader == nil || !w.fencing {
		return false
	}
	facts := w.leader.keeper.facts.Facts(h.ID, w.Now)
	domain := facts.Domain(vm)
	return domain != nil && (domain.State.Holds() || domain.Saved)
}

// operationWaits tells that of an operation.
func (w *World) operationWaits(snapshot *state.Snapshot, op *operation.Operation) bool {
	return w.waitsFor(snapshot, op.VM, op.Source) || w.waitsFor(snapshot, op.VM, op.Target)
}

// vmWaits tells that of a VM: it ran there when it was heard last, or nobody has seen how it left its node. Where messages come out of
// order, what is heard last may be older than the answer that it has left.
func (w *World) vmWaits(snapshot *state.Snapshot, vm *model.VM) bool {
	for _, h := range w.hosts {
		if w.waitsFor(snapshot, vm.ID, h.ID) && (vm.Holder == h.ID || !vm.Whereabouts.Missing.IsZero() || w.Unordered && w.showed(h, vm.ID)) {
			return true
		}
	}
	return false
}
