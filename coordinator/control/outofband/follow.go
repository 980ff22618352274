package outofband

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// Every is between two looks for what somebody has done to VMs without Berth. What two looks show alike is
// believed: two nodes do not report at the same moment.
const Every = 5 * time.Second

// Follow takes note, until the context ends, of what was done to VMs with virsh or another tool, so that ledgers and groups
// see them where they are.
func (w *Watch) Follow(ctx context.Context) {
	ticker := time.NewTicker(Every)
	defer ticker.Stop()
	var follower evidence.Follower
	touched := w.Inventory.VMsTouched()
	beside := errands{leader: w.Leader}
	defer beside.work.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := w.Store.Snapshot()
		if lead.Quarantined(snapshot) != nil {
			follower = evidence.Follower{}
			continue
		}
		survey := w.fencing.Survey(snapshot)
		w.discard(ctx, survey.Moment, &beside)
		w.removeCopies(ctx, survey.Moment, &beside)
		seen, found := follower.Look(survey, touched(snapshot, survey.At))
		if snapshot.FeatureLevel() >= state.WhereaboutsLevel {
			w.keepSeen(ctx, seen)
		}
		for _, one := range found {
			w.settle(ctx, one.VM, one.Finding, &beside)
		}
	}
}

// seenAtOnce is how many VMs are written down by one command.
const seenAtOnce = 64

// keepSeen writes down under which boots of their hosts VMs are seen.
func (w *Watch) keepSeen(ctx context.Context, seen []model.VM) {
	seen = slices.DeleteFunc(seen, func(vm model.VM) bool { return !w.Spend(vm.Holder) })
	for some := range slices.Chunk(seen, seenAtOnce) {
		command := state.Command{Key: w.NewID(), Kind: "see vms", Caller: lead.Berth, At: w.Now(), VMs: some}
		for i := range some {
			command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: some[i].ID, Revision: some[i].Revision})
		}
		w.Try(ctx, command)
	}
}

// settle does what follows from what two looks have shown.
func (w *Watch) settle(ctx context.Context, vm model.VM, finding evidence.Finding, beside *errands) {
	for _, left := range finding.Leftovers {
		beside.once("undefine "+left.Node+" "+vm.ID, func() { w.undefine(ctx, vm, left) })
	}
	switch finding.Verdict {
	case evidence.Undecided:
		w.missing(ctx, vm, finding)
	case evidence.AsRecorded:
		stopped := vm.Holder == "" && vm.Desired == model.Running // it says why until the VM is started or left off
		if evidence.IsOutOfBand(vm.Condition) && !stopped {
			vm.Condition = model.Condition{} // which whoever has caused it has paid for
			w.write(ctx, vm, model.Event{Kind: "vm.as-recorded", Message: "is as Berth has it again"})
		}
	case evidence.RunsOn:
		vm.Paused = model.Stand{}
		w.keep(ctx, "", vm, model.Event{Kind: "vm.resumed-out-of-band", Message: finding.Why})
	case evidence.OutOfBand:
		w.outOfBand(ctx, vm, finding)
	case evidence.HasRoom:
		w.outOfBand(ctx, vm, finding)
		beside.once(vm.ID, func() { w.unpause(ctx, vm) })
	case evidence.HasCrashed:
		w.outOfBand(ctx, vm, finding)
		beside.once(vm.ID, func() { w.endCrashed(ctx, vm, finding) })
	case evidence.StoppedHere:
		beside.once(vm.ID, func() {
			if w.refused(ctx, &vm) {
				w.stopped(ctx, vm, finding)
			}
		})
	case evidence.MovedAway:
		beside.once(vm.ID, func() {
			if finding.HolderOff || w.refused(ctx, &vm) {
				w.takeOver(ctx, vm, finding.Node)
			}
		})
	case evidence.CameBack:
		beside.once(vm.ID, func() { w.takeOver(ctx, vm, finding.Node) })
	}
}

// missing keeps that a VM is not where it is recorded to be, and that nobody has seen how it left.
func (w *Watch) missing(ctx context.Context, vm model.VM, finding evidence.Finding) {
	if !finding.Missing || !vm.Whereabouts.Missing.IsZero() || w.Store.Snapshot().FeatureLevel() < state.WhereaboutsLevel {
		return
	}
	at := w.Now()
	vm.Whereabouts.Missing = at
	w.Try(ctx, state.Command{
		Key: w.NewID(), Kind: "follow vm", Caller: lead.Berth, At: at,
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}, VMs: []model.VM{vm},
	})
}

// outOfBand says what somebody has done to a VM, and keeps that nobody has seen how it left its node.
func (w *Watch) outOfBand(ctx context.Context, vm model.VM, finding evidence.Finding) {
	news := !vm.Condition.Same(finding.Condition) && (vm.Condition.Is(model.NoCondition) || evidence.IsOutOfBand(vm.Condition))
	lost := finding.Missing && vm.Whereabouts.Missing.IsZero() && w.Store.Snapshot().FeatureLevel() >= state.WhereaboutsLevel
	if !news && !lost {
		return
	}
	condition := vm.Condition
	if news {
		condition = finding.Condition
	}
	if lost {
		vm.Whereabouts.Missing = w.Now()
	}
	w.note(ctx, finding.Node, vm, condition, model.Event{Kind: "vm.out-of-band", Message: finding.Why})
}

// refused tells whether the holder of a VM refuses it for good now.
func (w *Watch) refused(ctx context.Context, vm *model.VM) bool {
	err := w.Refuse(ctx, vm.Holder, vm, lead.AskLimit)
	if err != nil && ctx.Err() == nil {
		w.Logger.Info("a VM that its node does not show is not refused there", "vm", vm.Name, "error", err)
	}
	return err == nil
}

// stopped takes a VM from its holder, which has refused it. What is wanted of it stays.
func (w *Watch) stopped(ctx context.Context, vm model.VM, finding evidence.Finding) {
	if w.fencing.Survey(w.Store.Snapshot()).EndUnwatched(&vm) {
		vm.Unwatched = vm.Epoch
	}
	vm.Holder, vm.Condition, vm.Whereabouts = "", finding.Condition, model.Whereabouts{}
	w.keep(ctx, "", vm, model.Event{Kind: "vm.stopped-out-of-band", Message: finding.Why})
}

// TakeOverPause is between two tries to take a VM over where it runs: what the node has refused it refuses again.
const TakeOverPause = time.Minute

// takeOver gives a VM that runs on another node than recorded a new epoch there.
func (w *Watch) takeOver(ctx context.Context, vm model.VM, node string) {
	for _, op := range w.Store.Snapshot().Operations() {
		if op.VM == vm.ID && op.Kind == operation.Adopt && op.Result == operation.Failed && op.Caller == lead.Berth &&
			w.Now().Sub(op.EndedAt) < TakeOverPause {
			return
		}
	}
	err := w.adoption.TakeOver(ctx, vm, node)
	if err != nil && !errors.Is(err, adoption.ErrMovedOn) && ctx.Err() == nil {
		w.Logger.Warn("a VM that somebody has moved could not be followed", "vm", vm.Name, "error", err)
	}
}

// undefine removes a definition of a VM on a node that does not have it.
func (w *Watch) undefine(ctx context.Context, vm model.VM, left evidence.Copy) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	if _, err := w.Agents.Perform(limited, left.Node, lead.Task{Undefine: &lead.CopyOf{VM: vm.ID, Epoch: left.Domain.Epoch}}); err != nil {
		if ctx.Err() == nil {
			w.Logger.Warn("a definition that is left of a VM could not be removed", "vm", vm.Name, "node", left.Name, "error", err)
		}
		return
	}
	if !w.Spend(left.Node) { // it may show the definition again and again
		return
	}
	w.Try(ctx, state.Command{
		Key: w.NewID(), Kind: "follow vm", Caller: lead.Berth, At: w.Now(),
		Events: []model.Event{{
			At: w.Now(), Kind: "vm.undefined", Subject: "vm/" + vm.Name, Caller: lead.Berth,
			Message: fmt.Sprintf("its definition on %s is removed: it is another node's", left.Name),
		}},
	})
}
