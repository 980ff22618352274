package lifecycle

import (
	"context"
	"fmt"
	"io"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
)

// Console joins a stream with the console of a VM that runs, until either ends. With force it is taken from the one that has it.
// Refusals are of type *Error.
func (l *Lifecycle) Console(ctx context.Context, vmID string, force bool, stream io.ReadWriteCloser) error {
	if !l.Leading() {
		return lead.ErrNotLeading
	}
	snapshot := l.Store.Snapshot()
	vm, exists := snapshot.VM(vmID)
	switch {
	case !exists:
		return &lead.Error{Code: lead.NotFound, Subject: "vm/" + vmID, Message: fmt.Sprintf("there is no VM %q", vmID), NextStep: "see 'berth " +
			"vm list'"}
	case vm.Holder == "":
		return &lead.Error{
			Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
			NextStep: fmt.Sprintf("start it with 'berth vm start %s'", vm.Name),
		}
	}
	if facts := l.Inventory.Facts(vm.Holder, l.Now()); facts.Liveness == model.Unreachable {
		return &lead.Error{
			Code: lead.Unavailable, Subject: "vm/" + vm.Name,
			Message: fmt.Sprintf("node %s, which runs VM %q, does not answer: "+
				"%s", lead.NodeName(snapshot, vm.Holder), vm.Name, facts.LivenessReason),
			NextStep: "see 'berth node show " + lead.NodeName(snapshot, vm.Holder) + "'",
		}
	}
	next := fmt.Sprintf("see 'berth vm show %s'", vm.Name)
	if !force {
		next = "wait until it is free, or take it with --force"
	}
	return l.Perform(
		ctx, snapshot, vm.Holder, "vm/"+vm.Name, next,
		lead.Task{Console: &lead.OpenConsole{VM: vm.ID, Epoch: vm.Epoch, Force: force, Stream: stream}},
	)
}
