package control

import (
	"testing"
	"testing/synctest"
	"time"

	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// After a restore nothing is started, stopped or moved until every node has shown what it runs; then the nodes are right.
func TestARestoredStateIsComparedWithTheNodesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		moved, gone, same := w.running("moved"), w.running("gone"), w.running("same")
		w.lose()
		// Since the backup "moved" went to another node under epoch 7, and "gone" powered off. One node is away.
		elsewhere := other(moved.Holder)
		w.facts.change(moved.Holder, without(moved.ID))
		w.facts.change(gone.Holder, without(gone.ID))
		w.facts.change(elsewhere, func(f *model.NodeFacts) {
			f.Domains = append(f.Domains, model.Domain{UUID: moved.ID, State: model.DomainRunning, Managed: true, Epoch: 7})
		})
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
		if _, err := w.log.Propose(t.Context(), state.Command{
			Key: "restore", Kind: "restore", At: time.Now(), Meta: map[string]string{state.MetaQuarantine: "restored from a backup"},
		}); err != nil {
			t.Fatal(err)
		}
		w.lead(2)
		time.Sleep(time.Minute)
		if _, err := w.start("new"); !isCode(err, lead.Unavailable) {
			t.Errorf("a start while a node is away: %v", err)
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: same.ID}); !isCode(err, lead.Unavailable) {
			t.Errorf("a stop while a node is away: %v", err)
		}
		w.facts.change("n3", func(f *model.NodeFacts) { f.Liveness = model.Up })
		time.Sleep(time.Minute)
		snapshot := w.Store.Snapshot()
		if after, _ := snapshot.VM(moved.ID); after.Holder != elsewhere || after.Epoch != 7 {
			t.Errorf("moved: %+v", after)
		}
		if after, _ := snapshot.VM(gone.ID); after.Holder != "" || after.Condition.Text == "" {
			t.Errorf("gone: %+v", after)
		}
		if after, _ := snapshot.VM(same.ID); after.Revision != same.Revision {
			t.Errorf("same: %+v", after)
		}
		if _, err := w.start("new"); err != nil {
			t.Errorf("a start after the comparison: %v", err)
		}
		synctest.Wait()
		if orders := len(w.agents.orders); orders != 4 {
			t.Errorf("%d orders: only the four starts were to be ordered", orders)
		}
	})
}

// A node that is gone for good is said to be off. Nothing else ends a quarantine that waits for it: not that it is silent, and
// not that the others have reported.
func TestAQuarantineEndsWithoutANodeThatIsOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		vm := w.running("web1")
		w.lose()
		w.silence(vm.Holder)
		w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored from a backup"}})
		w.lead(2)
		time.Sleep(time.Hour)
		if w.Store.Snapshot().Meta(state.MetaQuarantine) == "" {
			t.Fatal("silence ended it")
		}
		if _, err := w.FenceNode(
			t.Context(), fencing.FenceNode{Node: vm.Holder, Force: true, Caller: "operator/admin"},
		); !isCode(err, lead.Unavailable) {
			t.Errorf("a node is switched off in a quarantine: %v", err)
		}
		if _, err := w.FenceNode(
			t.Context(), fencing.FenceNode{Node: other(vm.Holder), ConfirmedOff: true, Caller: "operator/admin"},
		); !isCode(err, lead.Conflict) {
			t.Errorf("a node that answers is said to be off: %v", err)
		}
		if _, err := w.FenceNode(t.Context(), fencing.FenceNode{Node: vm.Holder, ConfirmedOff: true, Caller: "operator/admin"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if reason := w.Store.Snapshot().Meta(state.MetaQuarantine); reason != "" {
			t.Errorf("it lasts: %s", reason)
		}
		if after := w.guest(vm.ID); after.Holder != "" || after.Condition.Text == "" {
			t.Errorf("a VM of a node that is off: %+v", after)
		}
	})
}

// An order of before may still be carried out: what it comes to is not in the inventory yet.
func TestAQuarantineWaitsForOrdersThatAreStillWorkedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.facts.change("n2", func(f *model.NodeFacts) { f.Working = []string{"op"} })
		w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored from a backup"}})
		time.Sleep(time.Minute)
		if w.Store.Snapshot().Meta(state.MetaQuarantine) == "" {
			t.Error("it ended while a node was at work on an order")
		}
		w.facts.change("n2", func(f *model.NodeFacts) { f.Working = nil })
		time.Sleep(time.Minute)
		if w.Store.Snapshot().Meta(state.MetaQuarantine) != "" {
			t.Error("it lasts")
		}
	})
}

func without(vm string) func(*model.NodeFacts) {
	return func(f *model.NodeFacts) {
		var left []model.Domain
		for _, domain := range f.Domains {
			if domain.UUID != vm {
				left = append(left, domain)
			}
		}
		f.Domains = left
	}
}

// What a plan in a backup was made for is not known to hold any more: it is not gone on with.
func TestPlansOfABackupAreShelved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.on("n1", "web1", 1)
		w.takes(time.Hour)
		drain := w.drain("n1")
		w.lose()
		w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored from a backup"}, Plans: []model.Plan{{
			ID: "proposal", Kind: model.PlanBalance, State: model.PlanProposed, Cluster: model.DefaultCluster, CreatedAt: time.Now(),
		}}}, state.Expectation{Table: state.Plans, ID: "proposal"})
		w.lead(2)
		time.Sleep(time.Minute)
		for id, want := range map[string]model.PlanState{drain.ID: model.PlanCancelled, "proposal": model.PlanDiscarded} {
			plan, _ := w.Store.Snapshot().Plan(id)
			if plan.State != want || plan.EndedAt.IsZero() || plan.Message != "the state was restored from a backup" {
				t.Errorf("plan %+v", plan)
			}
		}
	})
}

// A disk that the backup knows as not made may be full of what its guest wrote since.
func TestADiskThatMayHaveBeenMadeSinceTheBackupIsNotMadeAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.put(pools()...)
		if _, err := w.AddVM(t.Context(), lifecycle.AddVM(disked("p-wide"))); err != nil {
			t.Fatal(err)
		}
		w.lose()
		w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored from a backup"}})
		w.lead(2)
		time.Sleep(time.Minute)
		_, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1"})
		refusedAs(t, "a start", err, lead.Conflict, `disk "web1-root" of VM "web1" was not made yet when the backup was taken`)
		later := disked("p-wide")
		later.Name, later.Root.Name, later.RequestID = "web2", "web2-root", "start web2"
		w.must(later)
	})
}

// A VM may have been started, moved to a snapshot and stopped after the backup was made, which says that it was off. Its first start looks
// for such files; the next one knows better.
func TestAfterARestoreTheFirstStartLooksForSnapshots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		w.store(state.RaiseLevel(state.FeatureLevel))
		vm := w.running("web1")
		w.stops(vm)
		time.Sleep(time.Minute)
		w.lose()
		w.store(state.Command{Meta: map[string]string{state.MetaQuarantine: "restored from a backup"}})
		w.lead(2)
		time.Sleep(time.Minute)
		for _, unwatched := range []bool{true, false} {
			if _, err := w.StartVM(t.Context(), lifecycle.StartVM{Name: "web1", RequestID: w.NewID(), Caller: "operator/test"}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			starts := w.agents.ordered(operation.ActStart)
			if last := starts[len(starts)-1]; last.Unwatched != unwatched {
				t.Errorf("it is started with unwatched %t, want %t", last.Unwatched, unwatched)
			}
			w.stops(w.guest(vm.ID))
		}
	})
}

// People may have stopped a VM after the backup, and its disk may be another's by now. So nothing is started by itself after a restore,
// also if it is to be highly available.
func TestAfterARestoreWhatNoNodeShowsWaitsForAWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, obedient)
		defer func() { w.lose() }()
		gone, down := w.running("gone"), w.running("down")
		w.record(gone.ID, func(vm *model.VM) { vm.HA = true })
		w.record(down.ID, func(vm *model.VM) { vm.HA, vm.Holder = true, "" }) // it was about to be restarted
		w.lose()
		w.facts.change(gone.Holder, without(gone.ID))
		w.facts.change(down.Holder, without(down.ID))
		if _, err := w.log.Propose(t.Context(), state.Command{
			Key: "restore", Kind: "restore", At: time.Now(), Meta: map[string]string{state.MetaQuarantine: "restored from a backup"},
		}); err != nil {
			t.Fatal(err)
		}
		before := len(w.agents.ordered(operation.ActStart))
		w.lead(2)
		time.Sleep(time.Hour)
		const says = "it ran when the backup was made, and no node shows it now: somebody may have stopped it since; " +
			"'berth vm start gone' starts it, 'berth vm stop gone' leaves it off"
		if after := w.vm("gone"); after.Holder != "" || after.Condition.Text != says || !after.Condition.Is(model.NowhereSeen) {
			t.Errorf("gone: %+v", after)
		}
		if after := w.vm("down"); !after.Condition.Is(model.NowhereSeen) {
			t.Errorf("down: %+v", after)
		}
		if starts := w.agents.ordered(operation.ActStart); len(starts) != before {
			t.Errorf("started without a word: %+v", starts[before:])
		}
		if _, err := w.ActOnVM(t.Context(), lifecycle.ActOnVM{Kind: operation.Stop, VM: down.ID}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.StartVM(w.Context(), lifecycle.StartVM{Name: "gone", RequestID: "again", Caller: "operator/test"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if after := w.vm("down"); after.Desired != model.Stopped || after.Condition.Text != "" {
			t.Errorf("left off: %+v", after)
		}
		if after := w.vm("gone"); after.Holder == "" || after.Condition.Text != "" {
			t.Errorf("started by a word: %+v", after)
		}
	})
}
