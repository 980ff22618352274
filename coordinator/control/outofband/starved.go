package outofband

import (
	"context"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// unpause lets a guest run on that stood still for want of space, and says so. Its node looks once more why it stands still: what
// somebody has paused stays so.
func (w *Watch) unpause(ctx context.Context, vm model.VM) {
	if !w.unpauses.due(vm.ID, w.Now()) {
		return
	}
	if w.about(ctx, vm, "could not be let run on", lead.Task{Unpause: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}}) {
		w.tell(ctx, vm.Holder, vm, "vm.has-room", "runs on: it stood still because a disk found no room, and there is some now")
	}
}

// endCrashed removes what is left of a guest that has crashed. Then its node shows it no more, and it is restarted by that.
func (w *Watch) endCrashed(ctx context.Context, vm model.VM, finding evidence.Finding) {
	task := lead.Task{Crashed: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}}
	if w.about(ctx, vm, "has crashed, and what is left of it could not be removed", task) {
		w.tell(ctx, vm.Holder, vm, "vm.crashed", finding.Why)
	}
}

// about has the holder of a VM do a task about it.
func (w *Watch) about(ctx context.Context, vm model.VM, failed string, task lead.Task) bool {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	_, err := w.Agents.Perform(limited, vm.Holder, task)
	if err != nil && ctx.Err() == nil {
		w.Logger.Warn("a VM "+failed, "vm", vm.Name, "error", err)
	}
	return err == nil
}

// tell keeps that something was done about a VM, by what a node has said.
func (w *Watch) tell(ctx context.Context, by string, vm model.VM, kind, message string) {
	if !w.Spend(by) {
		return
	}
	w.Try(ctx, state.Command{
		Key: w.NewID(), Kind: "follow vm", Caller: lead.Berth, At: w.Now(),
		Events: []model.Event{{At: w.Now(), Kind: kind, Subject: "vm/" + vm.Name, Caller: lead.Berth, Message: message}},
	})
}
