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
	moment := w.Moment(snapshot)
	if len(moment.Removed) == 0 {
		return
	}
	for _, vm := range snapshot.VMs() {
		for _, one := range evidence.Running(moment.RemovedCopies(&vm)) {
			beside.once("removed "+one.Node+" "+vm.ID, func() { w.suspendOnRemoved(ctx, vm, one) })
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
	w.Try(ctx, state.Command{
		Key: w.NewID(), Kind: "follow vm", Caller: lead.Berth, At: w.Now(),
		Events: []model.Event{{
			At: w.Now(), Kind: "vm.copy-suspended", Subject: "vm/" + vm.Name, Caller: lead.Berth,
			Message: fmt.Sprintf("the copy on %s, a node that was removed, epoch %d, is suspended; its memory is as it was",
				one.Name, one.Domain.Epoch),
		}},
	})
}
