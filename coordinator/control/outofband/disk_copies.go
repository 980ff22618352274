package outofband

import (
	"context"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// removeCopies has copies of disks removed that migrations have left, once their VMs have run with their disks again.
func (w *Watch) removeCopies(ctx context.Context, p evidence.Moment, beside *errands) {
	for _, vm := range p.VMsMarked(model.MarkCopies) {
		if evidence.Superseded(p, &vm) {
			beside.once("remove copies "+vm.ID, func() { w.removeCopiesOf(ctx, vm) })
		}
	}
}

func (w *Watch) removeCopiesOf(ctx context.Context, vm model.VM) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	name := lead.NodeName(w.Store.Snapshot(), vm.Copies.Node)
	if _, err := w.Agents.Perform(limited, vm.Copies.Node, lead.Task{Remove: vm.Copies.Volumes}); err != nil {
		if ctx.Err() == nil {
			w.Logger.Warn("copies of disks that a migration has left could not be removed", "vm", vm.Name, "node", name, "error", err)
		}
		return
	}
	vm.Copies = nil
	w.keep(ctx, "", vm, model.Event{
		Kind: "vm.copies-removed", Message: "it runs with its disks, and the copies of them on " + name + " are gone",
	})
}
