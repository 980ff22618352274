package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

const (
	// followEvery is between two looks for what somebody has done to VMs without Berth. What two looks show alike is
	// believed: two nodes do not report at the same moment.
	followEvery = 5 * time.Second
	// askLimit bounds one question to an agent, or one small task.
	askLimit = 10 * time.Second
)

// besider keeps what is being done about VMs beside the loops that found it: one thing at a time for each.
type besider struct {
	mu   sync.Mutex
	busy map[string]bool
	work sync.WaitGroup
}

// once does something unless something of this name is still being done.
func (b *besider) once(name string, do func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy[name] {
		return
	}
	if b.busy == nil {
		b.busy = map[string]bool{}
	}
	b.busy[name] = true
	b.work.Go(func() {
		do()
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.busy, name)
	})
}

// follow takes note, until the context ends, of what was done to VMs with virsh or another tool, so that ledgers and groups
// see them where they are; and of work that nobody does.
func (c *Control) follow(ctx context.Context) {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	var follower evidence.Follower
	var beside besider
	defer beside.work.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		c.takeUp()
		snapshot := c.Store.Snapshot()
		if lead.Quarantined(snapshot) != nil {
			follower = evidence.Follower{}
			continue
		}
		moment := c.Moment(snapshot)
		c.discard(ctx, moment, &beside)
		for _, found := range follower.Look(moment) {
			c.settle(ctx, found.VM, found.Finding, &beside)
		}
	}
}

// settle does what follows from what two looks have shown.
func (c *Control) settle(ctx context.Context, vm model.VM, finding evidence.Finding, beside *besider) {
	for _, left := range finding.Leftovers {
		beside.once("undefine "+left.Node+" "+vm.ID, func() { c.undefine(ctx, vm, left) })
	}
	switch finding.Verdict {
	case evidence.AsRecorded:
		stopped := vm.Holder == "" && vm.Desired == model.Running // it says why until the VM is started or left off
		if evidence.IsOutOfBand(vm.Condition) && !stopped {
			c.note(ctx, vm, model.Condition{}, model.Event{Kind: "vm.as-recorded", Message: "is as Berth has it again"})
		}
	case evidence.OutOfBand:
		if !vm.Condition.Same(finding.Condition) && (vm.Condition.Is(model.NoCondition) || evidence.IsOutOfBand(vm.Condition)) {
			c.note(ctx, vm, finding.Condition, model.Event{Kind: "vm.out-of-band", Message: finding.Why})
		}
	case evidence.StoppedHere:
		beside.once(vm.ID, func() {
			if c.refused(ctx, vm) {
				c.stoppedBeside(ctx, vm, finding)
			}
		})
	case evidence.MovedAway:
		beside.once(vm.ID, func() {
			if c.refused(ctx, vm) {
				c.takeOver(ctx, vm, finding.Node)
			}
		})
	case evidence.CameBack:
		beside.once(vm.ID, func() { c.takeOver(ctx, vm, finding.Node) })
	}
}

// note writes a VM's condition, and tells of it.
func (c *Control) note(ctx context.Context, vm model.VM, condition model.Condition, event model.Event) {
	vm.Condition = condition
	c.keepBeside(ctx, vm, event)
}

func (c *Control) keepBeside(ctx context.Context, vm model.VM, event model.Event) {
	event.At, event.Subject, event.Caller = c.Now(), "vm/"+vm.Name, lead.Berth
	c.Try(ctx, state.Command{
		Key: c.NewID(), Kind: "follow vm", Caller: lead.Berth, At: event.At,
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
		VMs:    []model.VM{vm}, Events: []model.Event{event},
	})
}

// refused has the holder of a VM refuse it for good, if it is not there. Only then is its absence evidence: no order that is
// still on its way can bring it back.
func (c *Control) refused(ctx context.Context, vm model.VM) bool {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	_, err := c.Agents.Perform(limited, vm.Holder, lead.Task{Refuse: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	if err != nil && ctx.Err() == nil {
		c.Logger.Info("a VM that its node does not show is not refused there", "vm", vm.Name, "error", err)
	}
	return err == nil
}

// stoppedBeside takes a VM from its holder, which has refused it. What is wanted of it stays.
func (c *Control) stoppedBeside(ctx context.Context, vm model.VM, finding evidence.Finding) {
	vm.Holder, vm.Condition = "", finding.Condition
	c.keepBeside(ctx, vm, model.Event{Kind: "vm.stopped-out-of-band", Message: finding.Why})
}

// takeOverPause is between two tries to take a VM over where it runs: what the node has refused it refuses again.
const takeOverPause = time.Minute

// takeOver gives a VM that runs on another node than recorded a new epoch there.
func (c *Control) takeOver(ctx context.Context, vm model.VM, node string) {
	for _, op := range c.Store.Snapshot().Operations() {
		if op.VM == vm.ID && op.Kind == operation.Adopt && op.Result == operation.Failed && op.Caller == lead.Berth &&
			c.Now().Sub(op.EndedAt) < takeOverPause {
			return
		}
	}
	_, err := c.adopt(ctx, func(snapshot *state.Snapshot) (adoption, error) {
		now, known := snapshot.VM(vm.ID)
		if !known || now.Revision != vm.Revision {
			return adoption{}, errMovedOn
		}
		return adoption{vm: now, node: node, caller: lead.Berth}, nil
	})
	if err != nil && !errors.Is(err, errMovedOn) && ctx.Err() == nil {
		c.Logger.Warn("a VM that somebody has moved could not be followed", "vm", vm.Name, "error", err)
	}
}

// errMovedOn says that a VM's record has changed: whoever changed it knows better.
var errMovedOn = errors.New("the VM's record has changed")

// undefine removes a definition of a VM on a node that does not have it.
func (c *Control) undefine(ctx context.Context, vm model.VM, left evidence.Copy) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if _, err := c.Agents.Perform(limited, left.Node, lead.Task{Undefine: &lead.CopyOf{VM: vm.ID, Epoch: left.Domain.Epoch}}); err != nil {
		if ctx.Err() == nil {
			c.Logger.Warn("a definition that is left of a VM could not be removed", "vm", vm.Name, "node", left.Name, "error", err)
		}
		return
	}
	c.Try(ctx, state.Command{
		Key: c.NewID(), Kind: "follow vm", Caller: lead.Berth, At: c.Now(),
		Events: []model.Event{{
			At: c.Now(), Kind: "vm.undefined", Subject: "vm/" + vm.Name, Caller: lead.Berth,
			Message: fmt.Sprintf("its definition on %s is removed: it is another node's", left.Name),
		}},
	})
}

const (
	// copiesEvery is between two looks for VMs that more than one node shows.
	copiesEvery = 500 * time.Millisecond
	// holderLimit is how long a holder has to say that it does not run the VM any more. Meanwhile two copies write.
	holderLimit = 500 * time.Millisecond
)

// watchCopies suspends, until the context ends, the copies of VMs that run beside the holder's. It does not wait for a second
// look: two guests write to one disk.
func (c *Control) watchCopies(ctx context.Context) {
	ticker := time.NewTicker(copiesEvery)
	defer ticker.Stop()
	var beside besider
	defer beside.work.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		copied := c.Inventory.Copied()
		if len(copied) == 0 {
			continue
		}
		snapshot := c.Store.Snapshot()
		if lead.Quarantined(snapshot) != nil {
			continue
		}
		for _, uuid := range copied {
			if _, known := snapshot.VM(uuid); known {
				beside.once(uuid, func() { c.part(ctx, uuid) })
			}
		}
	}
}

// part suspends the copies of a VM that are too many, and says so.
func (c *Control) part(ctx context.Context, uuid string) {
	snapshot := c.Store.Snapshot()
	vm, known := snapshot.VM(uuid)
	if !known {
		return
	}
	var live *operation.Operation
	if op, works := snapshot.LiveOperationOf(uuid); works {
		live = &op
	}
	why, suspend := evidence.Twice(vm, live, c.copiesOf(snapshot, uuid))
	if why == "" || len(suspend) > 0 && live == nil && c.holderLetGo(ctx, vm) {
		return
	}
	// Once a copy that somebody has let run is paused again, it looks like one that is to be discarded.
	if over := evidence.Resumed(&vm, suspend); len(over) > 0 && !c.keepDiscards(ctx, vm, over, model.Event{}) {
		return // the next look tries again
	}
	var suspending sync.WaitGroup
	for _, one := range suspend {
		suspending.Go(func() { c.suspend(ctx, vm, one) })
	}
	if now, known := c.Store.Snapshot().VM(uuid); known && !now.Condition.Same(evidence.TwiceCondition(why)) {
		c.note(ctx, now, evidence.TwiceCondition(why), model.Event{Kind: "vm.runs-twice", Message: why})
	}
	suspending.Wait()
}

// holderLetGo asks the holder once more: what looks like two copies is one that somebody has moved if the news of the source
// trails. A holder that does not answer counts as one that runs it.
func (c *Control) holderLetGo(ctx context.Context, vm model.VM) bool {
	if vm.Holder == "" {
		return false
	}
	limited, cancel := context.WithTimeout(ctx, holderLimit)
	defer cancel()
	_, err := c.Agents.Perform(limited, vm.Holder, lead.Task{Refuse: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	return err == nil
}

// copiesOf are the copies of a VM on the nodes that show it now, by the nodes' names.
func (c *Control) copiesOf(snapshot *state.Snapshot, uuid string) []evidence.Copy {
	var copies []evidence.Copy
	for _, id := range c.Inventory.Shown(uuid) {
		facts := c.Inventory.Facts(id, c.Now())
		if domain := facts.Domain(uuid); domain != nil && facts.DomainsKnown {
			copies = append(copies, evidence.Copy{Node: id, Name: lead.NodeName(snapshot, id), Domain: *domain})
		}
	}
	slices.SortFunc(copies, func(a, b evidence.Copy) int { return strings.Compare(a.Name, b.Name) })
	return copies
}

func (c *Control) suspend(ctx context.Context, vm model.VM, one evidence.Copy) {
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	epoch := one.Domain.Epoch
	if _, err := c.Agents.Perform(limited, one.Node, lead.Task{Suspend: &lead.CopyOf{VM: vm.ID, Epoch: epoch}}); err != nil {
		if ctx.Err() == nil {
			c.Logger.Error("a copy of a VM runs beside the holder's and could not be suspended", "vm", vm.Name, "node", one.Name, "error", err)
		}
		return
	}
	// Until its node shows it suspended, every look finds it, and suspends it again: that is told once.
	c.Try(ctx, state.Command{
		Key:  fmt.Sprintf("suspended %s %s %d", vm.ID, one.Node, one.Domain.Since.UnixNano()),
		Kind: "follow vm", Caller: lead.Berth, At: c.Now(),
		Events: []model.Event{{
			At: c.Now(), Kind: "vm.copy-suspended", Subject: "vm/" + vm.Name, Caller: lead.Berth,
			Message: fmt.Sprintf("the copy on %s, epoch %d, is suspended; its memory is as it was", one.Name, epoch),
		}},
	})
}
