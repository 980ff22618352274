package outofband

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// suspendRemoved suspends the copies of VMs that run on nodes which were removed. Follow tells of them at the VM.
func (w *Watch) suspendRemoved(ctx context.Context, snapshot *state.Snapshot, beside *errands) {
	for _, removed := range w.Agents.Removed() {
		for _, one := range evidence.Running(removed.Copies()) {
			if vm, exists := snapshot.VM(one.Domain.UUID); exists {
				beside.once("removed "+one.Node+" "+vm.ID, func() { w.suspendOnRemoved(ctx, vm, one) })
			}
		}
	}
}

func (w *Watch) suspendOnRemoved(ctx context.Context, vm model.VM, one evidence.Copy) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	if err := w.Agents.SuspendRemoved(limited, one.Node, lead.CopyOf{VM: vm.ID, Epoch: one.Domain.Epoch}); err != nil {
		if ctx.Err() == nil {
			w.Logger.Error("a copy of a VM on a node that was removed could not be suspended", "vm", vm.Name, "node", one.Name, "error", err)
		}
		return
	}
	w.tell(ctx, one.Node, vm, "vm.copy-suspended", fmt.Sprintf(
		"the copy on %s, a node that was removed, epoch %d, is suspended; its memory is as it was", one.Name, one.Domain.Epoch,
	))
}
