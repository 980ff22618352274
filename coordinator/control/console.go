package control

import (
	"context"
	"fmt"
	"io"

	"berth/coordinator/cluster"
)

// Console joins a stream with the console of a VM that runs, until either ends. With force it is taken from whoever has it.
// Refusals are of type *Error.
func (c *Control) Console(ctx context.Context, vmID string, force bool, stream io.ReadWriteCloser) error {
	if !c.leading() {
		return errNotLeading
	}
	snapshot := c.Store.Snapshot()
	vm, exists := snapshot.VM(vmID)
	switch {
	case !exists:
		return &Error{Code: NotFound, Subject: "vm/" + vmID, Message: fmt.Sprintf("there is no VM %q", vmID), NextStep: "see 'berth vm list'"}
	case vm.Holder == "":
		return &Error{
			Code: Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
			NextStep: fmt.Sprintf("start it with 'berth vm start %s'", vm.Name),
		}
	}
	if facts := c.Inventory.Facts(vm.Holder, c.Now()); facts.Liveness == cluster.Unreachable {
		return &Error{
			Code: Unavailable, Subject: "vm/" + vm.Name,
			Message:  fmt.Sprintf("node %s, which runs VM %q, does not answer: %s", nodeName(snapshot, vm.Holder), vm.Name, facts.LivenessReason),
			NextStep: "see 'berth node show " + nodeName(snapshot, vm.Holder) + "'",
		}
	}
	next := fmt.Sprintf("see 'berth vm show %s'", vm.Name)
	if !force {
		next = "wait until it is free, or take it with --force"
	}
	return c.perform(ctx, snapshot, vm.Holder, "vm/"+vm.Name, next, Task{Console: &OpenConsole{VM: vm.ID, Epoch: vm.Epoch, Force: force, Stream: stream}})
}
