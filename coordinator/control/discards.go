package control

import (
	"context"
	"fmt"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/state"
)

// Discardable sorts the paused copies that operations had to leave on silent nodes. Due are those whose nodes answer again.
// Over are those that there is nothing to do about any more: their node is proven to be off, or is no member; or somebody has
// let the copy run, and what it has done since is for a person to judge.
func Discardable(p Picture, vm *cluster.VM) (due, over []cluster.Discard) {
	for _, left := range vm.Discards {
		node, known := p.Node(left.Node)
		facts := p.Facts(left.Node)
		domain := facts.Domain(vm.ID)
		switch {
		case !known, node.Fenced():
			over = append(over, left)
		case facts.Liveness != cluster.Up, !facts.Inventory, !facts.DomainsKnown:
		case domain != nil && domain.Epoch == left.Epoch && domain.State == cluster.DomainRunning:
			over = append(over, left)
		default:
			due = append(due, left)
		}
	}
	return due, over
}

// isLeft tells whether a copy is one that is to be discarded. One that runs is not.
func isLeft(vm *cluster.VM, node string, domain *cluster.Domain) bool {
	return domain.Managed && domain.State != cluster.DomainRunning && slices.Contains(vm.Discards, cluster.Discard{Node: node, Epoch: domain.Epoch})
}

// WithoutDiscards is a VM's record without some that are to be discarded.
func WithoutDiscards(vm cluster.VM, over []cluster.Discard) cluster.VM {
	left := slices.DeleteFunc(slices.Clone(vm.Discards), func(one cluster.Discard) bool { return slices.Contains(over, one) })
	if vm.Discards = left; len(left) == 0 {
		vm.Discards = nil
	}
	return vm
}

// discard has the copies that operations had to leave on silent nodes discarded, where that can be done now.
func (c *Control) discard(ctx context.Context, p Picture, beside *besider) {
	for _, vm := range p.VMs() {
		if len(vm.Discards) == 0 || vm.Operation != "" || isTwice(vm.Condition) {
			continue
		}
		due, over := Discardable(p, &vm)
		if len(over) > 0 {
			c.keepDiscards(ctx, vm, over, cluster.Event{})
			continue
		}
		for _, left := range due {
			beside.once(fmt.Sprintf("discard %s %s", left.Node, vm.ID), func() { c.discardOne(ctx, vm, left) })
		}
	}
}

func (c *Control) discardOne(ctx context.Context, vm cluster.VM, left cluster.Discard) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	name := nodeName(c.Store.Snapshot(), left.Node)
	if _, err := c.Agents.Perform(limited, left.Node, Task{Discard: &CopyOf{VM: vm.ID, Epoch: left.Epoch}}); err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("a paused copy that a migration has left could not be discarded", "vm", vm.Name, "node", name, "error", err)
		}
		return
	}
	c.keepDiscards(ctx, vm, []cluster.Discard{left}, cluster.Event{
		Kind: "vm.copy-discarded", Message: fmt.Sprintf("%s answers again, and the paused copy that was left there, epoch %d, is gone", name, left.Epoch),
	})
}

// keepDiscards takes from a VM's record what needs not be discarded any more. It is false when that is not stored.
func (c *Control) keepDiscards(ctx context.Context, vm cluster.VM, over []cluster.Discard, event cluster.Event) bool {
	now, known := c.Store.Snapshot().VM(vm.ID)
	if !known {
		return false
	}
	command := state.Command{
		Key: c.newID(), Kind: "follow vm", Caller: berth, At: c.Now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: now.Revision}}, VMs: []cluster.VM{WithoutDiscards(now, over)},
	}
	if event.Kind != "" {
		event.At, event.Subject, event.Caller = command.At, "vm/"+vm.Name, berth
		command.Events = []cluster.Event{event}
	}
	return c.try(ctx, command)
}

// resumed are those of the copies to be discarded that somebody has let run.
func resumed(vm *cluster.VM, running []Copy) []cluster.Discard {
	var over []cluster.Discard
	for i := range running {
		if one := (cluster.Discard{Node: running[i].Node, Epoch: running[i].Domain.Epoch}); slices.Contains(vm.Discards, one) {
			over = append(over, one)
		}
	}
	return over
}
