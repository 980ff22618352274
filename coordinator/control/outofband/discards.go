package outofband

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// discard has the copies that operations had to leave on silent nodes discarded, where that can be done now.
func (w *Watch) discard(ctx context.Context, p evidence.Moment, beside *errands) {
	for _, vm := range p.VMsMarked(model.MarkDiscards) {
		if vm.Operation != "" || vm.Condition.Is(model.RunsTwice) {
			continue
		}
		due, over := evidence.Discardable(p, &vm)
		if len(over) > 0 {
			w.keepDiscards(ctx, vm, over, model.Event{})
			continue
		}
		for _, left := range due {
			beside.once(fmt.Sprintf("discard %s %s", left.Node, vm.ID), func() { w.discardOne(ctx, vm, left) })
		}
	}
}

func (w *Watch) discardOne(ctx context.Context, vm model.VM, left model.Discard) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	name := lead.NodeName(w.Store.Snapshot(), left.Node)
	if _, err := w.Agents.Perform(limited, left.Node, lead.Task{Discard: &lead.CopyOf{VM: vm.ID, Epoch: left.Epoch}}); err != nil {
		if ctx.Err() == nil {
			w.Logger.Warn("a paused copy that a migration has left could not be discarded", "vm", vm.Name, "node", name, "error", err)
		}
		return
	}
	w.keepDiscards(ctx, vm, []model.Discard{left}, model.Event{
		Kind: "vm.copy-discarded", Message: fmt.Sprintf(
			"%s answers again, and the paused copy that was left there, epoch %d, is gone", name, left.Epoch,
		),
	})
}

// keepDiscards takes from a VM's record what needs not be discarded any more. It is false when that is not stored.
func (w *Watch) keepDiscards(ctx context.Context, vm model.VM, over []model.Discard, event model.Event) bool {
	now, known := w.Store.Snapshot().VM(vm.ID)
	if !known {
		return false
	}
	command := state.Command{
		Key: w.NewID(), Kind: "follow vm", Caller: lead.Berth, At: w.Now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: now.Revision}}, VMs: []model.VM{evidence.WithoutDiscards(now, over)},
	}
	if event.Kind != "" {
		event.At, event.Subject, event.Caller = command.At, "vm/"+vm.Name, lead.Berth
		command.Events = []model.Event{event}
	}
	return w.Try(ctx, command)
}
