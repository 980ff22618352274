package control

import (
	"context"
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// discard has the copies that operations had to leave on silent nodes discarded, where that can be done now.
func (c *Control) discard(ctx context.Context, p evidence.Moment, beside *besider) {
	for _, vm := range p.VMs() {
		if len(vm.Discards) == 0 || vm.Operation != "" || vm.Condition.Is(model.RunsTwice) {
			continue
		}
		due, over := evidence.Discardable(p, &vm)
		if len(over) > 0 {
			c.keepDiscards(ctx, vm, over, model.Event{})
			continue
		}
		for _, left := range due {
			beside.once(fmt.Sprintf("discard %s %s", left.Node, vm.ID), func() { c.discardOne(ctx, vm, left) })
		}
	}
}

func (c *Control) discardOne(ctx context.Context, vm model.VM, left model.Discard) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	name := lead.NodeName(c.Store.Snapshot(), left.Node)
	if _, err := c.Agents.Perform(limited, left.Node, lead.Task{Discard: &lead.CopyOf{VM: vm.ID, Epoch: left.Epoch}}); err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("a paused copy that a migration has left could not be discarded", "vm", vm.Name, "node", name, "error", err)
		}
		return
	}
	c.keepDiscards(ctx, vm, []model.Discard{left}, model.Event{
		Kind: "vm.copy-discarded", Message: fmt.Sprintf(
			"%s answers again, and the paused copy that was left there, epoch %d, is gone", name, left.Epoch,
		),
	})
}

// keepDiscards takes from a VM's record what needs not be discarded any more. It is false when that is not stored.
func (c *Control) keepDiscards(ctx context.Context, vm model.VM, over []model.Discard, event model.Event) bool {
	now, known := c.Store.Snapshot().VM(vm.ID)
	if !known {
		return false
	}
	command := state.Command{
		Key: c.NewID(), Kind: "follow vm", Caller: lead.Berth, At: c.Now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: now.Revision}}, VMs: []model.VM{evidence.WithoutDiscards(now, over)},
	}
	if event.Kind != "" {
		event.At, event.Subject, event.Caller = command.At, "vm/"+vm.Name, lead.Berth
		command.Events = []model.Event{event}
	}
	return c.Try(ctx, command)
}
