package outofband

import (
	"context"
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
	// copiesEvery is between two looks for VMs that more than one node shows.
	copiesEvery = 500 * time.Millisecond
	// holderLimit is how long a holder has to say that it does not run the VM any more. Meanwhile two copies write.
	holderLimit = 500 * time.Millisecond
)

// WatchCopies suspends, until the context ends, the copies of VMs that run beside the holder's. It does not wait for a second
// look: two guests write to one disk.
func (w *Watch) WatchCopies(ctx context.Context) {
	ticker := time.NewTicker(copiesEvery)
	defer ticker.Stop()
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
			continue
		}
		w.suspendRemoved(ctx, snapshot, &beside)
		copied := w.Inventory.Copied()
		for _, uuid := range copied {
			if _, known := snapshot.VM(uuid); known {
				beside.once(uuid, func() { w.part(ctx, uuid) })
			}
		}
	}
}

// part suspends the copies of a VM that are too many, and says so.
func (w *Watch) part(ctx context.Context, uuid string) {
	snapshot := w.Store.Snapshot()
	vm, known := snapshot.VM(uuid)
	if !known {
		return
	}
	var live *operation.Operation
	if op, works := snapshot.LiveOperationOf(uuid); works {
		live = &op
	}
	copies := w.copiesOf(snapshot, uuid)
	why, suspend := evidence.Twice(vm, live, copies)
	if why == "" || len(suspend) > 0 && live == nil && w.holderLetGo(ctx, &vm) {
		return
	}
	// Once a copy that somebody has let run is paused again, it looks like one that is to be discarded.
	if over := evidence.Resumed(&vm, suspend); len(over) > 0 && !w.keepDiscards(ctx, vm, over, model.Event{}) {
		return // the next look tries again
	}
	var suspending sync.WaitGroup
	for _, one := range suspend {
		w.Beside(&suspending, "suspending a copy of VM "+vm.Name, func() { w.suspend(ctx, vm, one) })
	}
	if now, known := w.Store.Snapshot().VM(uuid); known && !now.Condition.Same(evidence.TwiceCondition(why)) {
		w.note(ctx, elsewhere(&vm, copies), now, evidence.TwiceCondition(why), model.Event{Kind: "vm.runs-twice", Message: why})
	}
	suspending.Wait()
}

// holderLetGo asks the holder once more: what looks like two copies is one that somebody has moved if the news of the source
// trails. A holder that does not answer counts as one that runs it.
func (w *Watch) holderLetGo(ctx context.Context, vm *model.VM) bool {
	return vm.Holder != "" && w.Refuse(ctx, vm.Holder, vm, holderLimit) == nil
}

// elsewhere is a node, by ID, that shows a VM which another one has; empty: none.
func elsewhere(vm *model.VM, copies []evidence.Copy) string {
	for i := range copies {
		if copies[i].Node != vm.Holder {
			return copies[i].Node
		}
	}
	return ""
}

// copiesOf are the copies of a VM on the nodes that show it now, by the nodes' names.
func (w *Watch) copiesOf(snapshot *state.Snapshot, uuid string) []evidence.Copy {
	var copies []evidence.Copy
	for _, id := range w.Inventory.Shown(uuid) {
		facts := w.Inventory.Facts(id, w.Now())
		if domain := facts.Domain(uuid); domain != nil && facts.DomainsKnown {
			copies = append(copies, evidence.Copy{Node: id, Name: lead.NodeName(snapshot, id), Domain: *domain})
		}
	}
	slices.SortFunc(copies, func(a, b evidence.Copy) int { return strings.Compare(a.Name, b.Name) })
	return copies
}

func (w *Watch) suspend(ctx context.Context, vm model.VM, one evidence.Copy) {
	limited, cancel := context.WithTimeout(ctx, lead.AskLimit)
	defer cancel()
	epoch := one.Domain.Epoch
	if _, err := w.Agents.Perform(limited, one.Node, lead.Task{Suspend: &lead.CopyOf{VM: vm.ID, Epoch: epoch}}); err != nil {
		if ctx.Err() == nil {
			w.Logger.Error("a copy of a VM runs beside the holder's and could not be suspended", "vm", vm.Name, "node", one.Name, "error", err)
		}
		return
	}
	if !w.Spend(one.Node) { // it may show another copy each time
		return
	}
	// Until its node shows it suspended, every look finds it, and suspends it again: that is told once.
	w.Try(ctx, state.Command{
		Key:  fmt.Sprintf("suspended %s %s %d", vm.ID, one.Node, one.Domain.Since.UnixNano()),
		Kind: "follow vm", Caller: lead.Berth, At: w.Now(),
		Events: []model.Event{{
			At: w.Now(), Kind: "vm.copy-suspended", Subject: "vm/" + vm.Name, Caller: lead.Berth,
			Message: fmt.Sprintf("the copy on %s, epoch %d, is suspended; its memory is as it was", one.Name, epoch),
		}},
	})
}
