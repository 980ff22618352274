package operation

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/shared/units"
)

var (
	rootOrder = model.VolumeOrder{
		Disk: "root-id", DiskName: "web1-root", Pool: "pool-id", PoolName: "fast", Name: "berth-root-id.qcow2", Format: "qcow2",
		Capacity: 20 * units.GiB,
	}
	seedOrder = model.VolumeOrder{Pool: "pool-id", PoolName: "fast", Name: "berth-vm-id-seed.iso", Format: "raw"}
	orders    = []model.VolumeOrder{rootOrder, seedOrder}
)

// rootAt is where the root disk is once it is made in a local pool.
func rootAt(node string) map[string]model.Volume {
	return map[string]model.Volume{"root-id": {
		Pool: "pool-id", Nodes: []string{node}, Name: "berth-root-id.qcow2", Format: "qcow2", Capacity: 20 * units.GiB,
	}}
}

// making is the start of a new VM whose root disk is made with it.
func making() (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op", Disks: []string{"root-id"}}
	op := Operation{ID: "op", Kind: Start, VM: vm.ID, VMName: vm.Name, Created: true, Disks: []string{"root-id"}}
	next := Place(op, vm, Target{Node: "n1", Name: "node1", Decision: "decision", Volumes: orders, CPU: "Haswell"}, noon)
	return next.Operation, next.VM
}

// copying is a migration whose disks go along.
func copying() (Operation, model.VM) {
	op, vm := migrating()
	op.CopyStorage, op.Volumes, op.Replaced, op.Phase = true, orders, orders, Preparing
	vm.Home, vm.Disks = "n1", []string{"root-id"}
	return op, vm
}

func deleting() (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Operation: "op", LastEpoch: 7, Disks: []string{"root-id", "data-id"}}
	return Operation{
		ID: "op", Kind: Delete, VM: vm.ID, VMName: vm.Name, Source: "n1", SourceName: "node1", Leftover: "n1", Epoch: 7,
		Phase: Clearing, Step: 1, Replaced: orders, Disks: []string{"root-id"},
	}, vm
}

func TestAStartMakesVolumesAndKeepsThemWithTheVM(t *testing.T) {
	op, vm := making()
	if got := Orders(op, vm, 1)[0].Volumes; len(got) != 2 {
		t.Fatalf("ordered with %+v", got)
	}
	if held, _ := op.Reservation(); len(held.Volumes) != 2 {
		t.Errorf("reserves %+v", held.Volumes)
	}
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 1}})
	if diff := cmp.Diff(rootAt("n1"), next.Volumes); diff != "" || next.VM.CPU != "Haswell" || next.DeleteVM {
		t.Errorf("CPU %q, disks:\n%s", next.VM.CPU, diff)
	}
	op.Volumes[0].Shared = true
	defer func() { op.Volumes[0].Shared = false }()
	next = mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 1}})
	if nodes := next.Volumes["root-id"].Nodes; nodes != nil {
		t.Errorf("in a shared pool it is on %v", nodes)
	}
}

func TestAStartThatFailsTakesItsNewDiskAlong(t *testing.T) {
	op, vm := making()
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Code: "no_space", Error: "pool fast is full"})
	if next.Operation.Phase != Placing || next.Operation.Volumes != nil || next.Volumes != nil {
		t.Fatalf("after a failure: %+v", next.Operation)
	}
	next = Abandon(next.Operation, next.VM, "no node is left", noon)
	if diff := cmp.Diff([]string{"root-id"}, next.DeleteDisks); diff != "" || !next.DeleteVM {
		t.Errorf("VM goes %t, disks:\n%s", next.DeleteVM, diff)
	}
	op.Created = false
	op.Pinned = "n1"
	next = mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Error: "no"})
	if next.DeleteVM || next.DeleteDisks != nil {
		t.Error("a VM that was there before goes with its disks")
	}
}

func TestAStartInDoubtIsClearedBeforeAnythingElse(t *testing.T) {
	for name, c := range map[string]struct {
		seen   Observation
		cancel bool
		phase  Phase
	}{
		"absent":    {Observation{State: model.DomainAbsent}, false, Placing},
		"cancelled": {Observation{State: model.DomainAbsent}, true, Ended},
		"foreign":   {Observation{State: model.DomainRunning, Epoch: 99}, false, Ended},
	} {
		op, vm := making()
		op.Cancel = c.cancel
		next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeAmbiguous})
		next, decided := Settle(next.Operation, next.VM, map[string]Observation{"n1": c.seen}, noon)
		op, vm = next.Operation, next.VM
		if !decided || op.Phase != Clearing {
			t.Fatalf("%s: phase %s", name, op.Phase)
		}
		order := Orders(op, vm, 1)[0]
		if order.Action != ActClear || order.Node != "n1" || order.Epoch != op.Epoch || len(order.Volumes) != 2 {
			t.Errorf("%s: order %+v", name, order)
		}
		if _, moved := Step(op, vm, Answer{Node: "n1", Step: op.Step, Outcome: OutcomeFailed, Code: "busy"}, noon); moved {
			t.Errorf("%s: went on with volumes left", name)
		}
		if _, overdue := Overdue(op, vm, noon.Add(DiscardPatience-1)); overdue {
			t.Errorf("%s: gave up too early", name)
		}
		next = mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone})
		if next.Operation.Phase != c.phase || next.Operation.Volumes != nil {
			t.Errorf("%s: cleared, phase %s", name, next.Operation.Phase)
		}
		silent, overdue := Overdue(op, vm, noon.Add(DiscardPatience))
		if !overdue || silent.Operation.Phase != c.phase || !strings.Contains(strings.Join(silent.Operation.Evidence, "\n"), rootOrder.Name) {
			t.Errorf("%s: silent node: %+v", name, silent.Operation)
		}
	}
}

// A node that falls silent while it clears may wake up later: what it then removes must not be another node's.
func TestSharedVolumesAreNotMadeAnewBeforeTheyAreCleared(t *testing.T) {
	op, vm := making()
	op.Volumes = []model.VolumeOrder{rootOrder}
	op.Volumes[0].Shared = true
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeAmbiguous})
	next, _ = Settle(next.Operation, next.VM, map[string]Observation{"n1": {State: model.DomainAbsent}}, noon)
	op, vm = next.Operation, next.VM
	if _, overdue := Overdue(op, vm, noon.Add(100*DiscardPatience)); overdue {
		t.Error("did not wait")
	}
	op.Cancel = true
	if next, overdue := Overdue(op, vm, noon.Add(DiscardPatience)); !overdue || next.Operation.Result != Failed {
		t.Errorf("cancelled: %+v", next.Operation)
	}
	later := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Code: "stale_epoch"})
	if later.Operation.Result != Failed {
		t.Errorf("overtaken: %+v", later.Operation)
	}
}

func TestAMigrationTakesDisksAlong(t *testing.T) {
	op, vm := copying()
	order := Orders(op, vm, 1)[0]
	if order.Action != ActPrepare || order.Node != "n2" || order.Epoch != 5 || len(order.Volumes) != 2 {
		t.Fatalf("ordered %+v", order)
	}
	next := mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeDone})
	order = Orders(next.Operation, next.VM, 1)[0]
	if order.Action != ActMigrate || !order.CopyStorage || len(order.Volumes) != 2 || len(order.Replaced) != 2 {
		t.Fatalf("ordered %+v", order)
	}
	next = mustStep(t, next.Operation, next.VM, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	if diff := cmp.Diff(rootAt("n2"), next.Volumes); diff != "" || next.VM.Home != "n2" {
		t.Fatalf("handed over, home %s, disks:\n%s", next.VM.Home, diff)
	}
	if held, _ := next.Operation.Reservation(); held.Volumes != nil {
		t.Errorf("counts twice: %+v", held.Volumes)
	}
	next = mustStep(
		t, next.Operation, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 5}},
	)
	op, vm = next.Operation, next.VM
	order = Orders(op, vm, 1)[0]
	if order.Action != ActClear || order.Node != "n1" || order.Epoch != 4 || len(order.Volumes) != 2 {
		t.Fatalf("ordered %+v", order)
	}
	done := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone})
	if done.Operation.Result != Done || done.VM.Operation != "" || done.VM.Condition.Text != "" {
		t.Errorf("ended as %+v", done.Operation)
	}
	silent, overdue := Overdue(op, vm, noon.Add(DiscardPatience))
	if !overdue || silent.Operation.Result != Done || !strings.Contains(silent.VM.Condition.Text, "node1") || !strings.Contains(
		silent.VM.Condition.Text, rootOrder.Name,
	) {
		t.Errorf("silent source: %s, condition %q", silent.Operation.Result, silent.VM.Condition.Text)
	}
}

func TestACopyThatFailsLeavesNothingOnItsTarget(t *testing.T) {
	op, vm := copying()
	failed := mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeFailed, Code: "no_space", Error: "pool fast is full"})
	if failed.Operation.Result != Failed || failed.Operation.Message != "pool fast is full" {
		t.Errorf("a preparation that failed and left nothing: %+v", failed.Operation)
	}
	doubt := mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeAmbiguous, Error: "lost"})
	if doubt.Operation.Phase != Clearing || doubt.Operation.Leftover != "n2" {
		t.Errorf("in doubt: %+v", doubt.Operation)
	}
	cancelled := op
	cancelled.Cancel = true
	if next := mustStep(t, cancelled, vm, Answer{Node: "n2", Outcome: OutcomeDone}); next.Operation.Phase != Clearing {
		t.Errorf("cancelled: %+v", next.Operation)
	}
	if next, overdue := Overdue(cancelled, vm, noon.Add(DiscardPatience)); !overdue || next.Operation.Result != Failed {
		t.Errorf("cancelled with a silent target: %+v", next.Operation)
	}
	if _, overdue := Overdue(op, vm, noon.Add(DiscardPatience)); overdue {
		t.Error("gave up on a target that makes volumes")
	}
	op.Phase = Copying
	refused := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Error: "not here"})
	if refused.Operation.Phase != Clearing || len(Orders(refused.Operation, refused.VM, 1)[0].Volumes) != 2 {
		t.Errorf("refused: %+v", refused.Operation)
	}
	ended := mustStep(t, refused.Operation, refused.VM, Answer{Node: "n2", Outcome: OutcomeDone})
	if ended.Operation.Result != Failed || ended.Operation.Message != "not here" || ended.Volumes != nil || ended.VM.Home != "n1" {
		t.Errorf("cleared: %+v", ended.Operation)
	}
	back := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeCancelled, Seen: Observation{State: model.DomainRunning, Epoch: 4}})
	if order := Orders(back.Operation, back.VM, 1)[0]; order.Action != ActDiscard || len(order.Volumes) != 2 {
		t.Errorf("rolled back: %+v", order)
	}
}

func TestALostVMLeavesTheVolumesThatMayBeNeeded(t *testing.T) {
	op, vm := copying()
	op.Phase = Judging
	gone := map[string]Observation{"n1": {State: model.DomainAbsent}, "n2": {State: model.DomainAbsent}}
	next, _ := Settle(op, vm, gone, noon)
	const says = "lost during a migration: neither node shows it any more; its disks are on node1, and copies of them on node2, perhaps " +
		"incomplete, which go once it has run on node1; 'berth operation resolve op --keep source' removes them"
	if next.Operation.Result != Failed || next.VM.Holder != "" || next.VM.Condition.Text != says {
		t.Errorf("lost on its source: %+v, condition %q", next.Operation, next.VM.Condition.Text)
	}
	if left := next.VM.Copies; left == nil || left.Node != "n2" || left.Whole || len(left.Volumes) != 2 || len(next.Volumes) > 0 {
		t.Errorf("lost on its source, and the record has copies %+v", left)
	}
	vm.Holder, op.Volumes = "n2", nil
	next, _ = Settle(op, vm, gone, noon)
	const there = "lost during a migration: neither node shows it any more; its disks are on node2, and those from before the move on " +
		"node1, which go once it has run on node2; 'berth operation resolve op --keep source' makes these its disks, without what it wrote " +
		"on node2, and '--keep target' removes them"
	if next.Operation.Result != Failed || next.VM.Condition.Text != there {
		t.Errorf("lost on its target: %+v, condition %q", next.Operation, next.VM.Condition.Text)
	}
	if left := next.VM.Copies; left == nil || left.Node != "n1" || !left.Whole || !left.Source || len(left.Volumes) != 2 {
		t.Errorf("lost on its target, and the record has copies %+v", left)
	}
}

// What a target has said of a VM that came with its disks may be old: its machine may have died with them since. The source's are removed
// once it is seen to run there.
func TestDisksOnTheSourceStayUntilTheVMIsSeenToRunOnItsTarget(t *testing.T) {
	op, vm := copying()
	op.Phase, op.TargetBoot, op.Volumes, vm.Holder, vm.Home = HandedOver, "boot-1", nil, "n2", "n2"
	before := Answer{Node: "n2", Outcome: OutcomeDone, Repeated: true, Seen: Observation{State: model.DomainRunning, Epoch: 5}}
	next := mustStep(t, op, vm, before)
	if next.Operation.Phase != Judging || next.VM.Copies != nil {
		t.Fatalf("by an answer of before: %+v", next.Operation)
	}
	gone := map[string]Observation{
		"n1": {State: model.DomainAbsent, Boot: "boot-1"}, "n2": {State: model.DomainAbsent, Boot: "boot-2", Anew: true},
	}
	lost, _ := Settle(next.Operation, next.VM, gone, noon)
	if left := lost.VM.Copies; lost.Operation.Result != Failed || left == nil || left.Node != "n1" || len(lost.VM.Losses) != 1 {
		t.Errorf("its machine has booted since: %+v, copies %+v", lost.Operation, left)
	}
	gone["n2"] = Observation{State: model.DomainRunning, Epoch: 5, Boot: "boot-1"}
	runs, _ := Settle(next.Operation, next.VM, gone, noon)
	runs = mustStep(t, runs.Operation, runs.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: gone["n2"]})
	if order := Orders(runs.Operation, runs.VM, 1)[0]; order.Action != ActClear || order.Node != "n1" || len(order.Volumes) != 2 {
		t.Errorf("it runs there: %+v", order)
	}
	op.Replaced = nil
	if next := mustStep(t, op, vm, before); next.Operation.Result != Done {
		t.Errorf("without disks: %+v", next.Operation)
	}
}

func TestADeletionTakesTheVMWhenItsVolumesAreGone(t *testing.T) {
	op, vm := deleting()
	order := Orders(op, vm, 1)[0]
	if order.Action != ActClear || order.Node != "n1" || order.Epoch != 7 || len(order.Volumes) != 2 {
		t.Fatalf("ordered %+v", order)
	}
	if _, held := op.Reservation(); held {
		t.Error("reserves a node")
	}
	done := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone})
	if diff := cmp.Diff([]string{"root-id"}, done.DeleteDisks); diff != "" || !done.DeleteVM || done.Operation.Result != Done {
		t.Errorf("%+v, disks:\n%s", done.Operation, diff)
	}
	failed := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Code: "busy", Error: "in use"})
	if failed.DeleteVM || failed.DeleteDisks != nil || failed.Operation.Result != Failed || failed.VM.Operation != "" {
		t.Errorf("%+v", failed.Operation)
	}
	if _, overdue := Overdue(op, vm, noon.Add(100*DiscardPatience)); overdue {
		t.Error("did not wait for its node")
	}
	op.Cancel = true
	if next, overdue := Overdue(op, vm, noon); !overdue || next.DeleteVM || next.Operation.Result != Failed {
		t.Errorf("cancelled: %+v", next.Operation)
	}
}
