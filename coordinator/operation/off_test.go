package operation

import (
	"strings"
	"testing"

	"berth/coordinator/model"
)

// drivenOff takes an operation on until an agent has to be asked: the nodes are proven to be off, all others say nothing.
func drivenOff(op Operation, vm model.VM, off ...string) (Operation, model.VM, Todo) {
	for range 10 {
		todo := NewDriver(0).Look(Input{Operation: op, VM: vm, Fenced: off}, noon)
		if todo.Commit == nil {
			return op, vm, todo
		}
		op, vm = todo.Commit.Operation, todo.Commit.VM
	}
	panic("it goes round")
}

func TestWhatANodeThatIsOffLeavesOfOperations(t *testing.T) {
	volume := []model.VolumeOrder{{Disk: "d1", DiskName: "root", PoolName: "wide", Name: "berth-d1", Shared: true}}
	start := func(change func(*Operation)) (Operation, model.VM) {
		op, vm := starting()
		change(&op)
		return op, vm
	}
	migrate := func(phase Phase, change func(*Operation, *model.VM)) (Operation, model.VM) {
		op, vm := migrating()
		op.Phase = phase
		change(&op, &vm)
		return op, vm
	}
	type want struct {
		phase  Phase
		result Result
		holder string
		says   string // in the evidence or the message
	}
	check := func(name string, op Operation, vm model.VM, off []string, w want) {
		t.Helper()
		after, holds, _ := drivenOff(op, vm, off...)
		told := strings.Join(append(after.Evidence, after.Message), "\n")
		if after.Phase != w.phase || after.Result != w.result || holds.Holder != w.holder || !strings.Contains(told, w.says) {
			t.Errorf("%s: phase %s, result %q, holder %q; want %+v\n%s", name, after.Phase, after.Result, holds.Holder, w, told)
		}
	}
	none := func(*Operation, *model.VM) {}

	op, vm := start(func(*Operation) {})
	check("a start whose node is off is placed again", op, vm, []string{"n1"}, want{phase: Placing, says: "node1 is proven to be off"})
	check("a start whose node is not", op, vm, []string{"n2"}, want{phase: Dispatched})
	op, vm = start(func(o *Operation) { o.Volumes = volume })
	check(
		"its shared volumes are made anew elsewhere", op, vm, []string{"n1"},
		want{phase: Placing, says: "the volume berth-d1 of pool wide may be left"},
	)
	op, vm = start(func(o *Operation) { o.Pinned = "n1" })
	check("a start on that node only", op, vm, []string{"n1"}, want{phase: Ended, result: Failed})

	_, vm = migrating()
	stop := Operation{ID: "op", Kind: Stop, VM: vm.ID, Source: "n1", SourceName: "node1", Epoch: 4, Phase: Dispatched, Step: 1}
	check("a stop has come true", stop, vm, []string{"n1"}, want{phase: Ended, result: Done})

	op, vm = migrate(Copying, none)
	check("a copy from a node that is off is judged", op, vm, []string{"n1"}, want{phase: Judging, holder: "n1"})
	check("a copy to a node that is off goes on until its end is told", op, vm, []string{"n2"}, want{phase: Copying, holder: "n1"})
	check(
		"a copy between two that are off is lost", op, vm, []string{"n1", "n2"},
		want{phase: Ended, result: Failed, says: "lost during a migration"},
	)
	op, vm = migrate(HandedOver, func(_ *Operation, vm *model.VM) { vm.Holder, vm.Epoch = "n2", 5 })
	check("handed over to a node that is off", op, vm, []string{"n2"}, want{phase: Ended, result: Failed, says: "node2 is proven to be off"})
	check("handed over by a node that is off", op, vm, []string{"n1"}, want{phase: HandedOver, holder: "n2"})
	op, vm = migrate(Discarding, func(o *Operation, _ *model.VM) { o.Leftover = "n2" })
	check("its leftover is gone with it", op, vm, []string{"n2"}, want{phase: Ended, result: Failed, holder: "n1", says: "its copy is gone"})
	op, vm = migrate(Discarding, func(o *Operation, _ *model.VM) { o.Leftover, o.Revert = "n2", true })
	check("the source may resume", op, vm, []string{"n2"}, want{phase: Reverting, holder: "n1", says: "its copy is gone"})
	op, vm = migrate(Reverting, none)
	check("the source that was to resume is off", op, vm, []string{"n1"}, want{phase: Judging, holder: "n1"})
	op, vm = migrate(Preparing, func(o *Operation, _ *model.VM) { o.Volumes = volume })
	check(
		"a target that was to make volumes is off", op, vm, []string{"n2"},
		want{phase: Ended, result: Failed, holder: "n1", says: "may be left"},
	)
	op, vm = migrate(Clearing, func(o *Operation, vm *model.VM) { o.Leftover, o.Replaced, vm.Holder = "n1", volume, "n2" })
	check(
		"a source that was to clear its volumes is off", op, vm, []string{"n1"},
		want{phase: Ended, result: Done, holder: "n2", says: "may be left"},
	)

	deleted := Operation{ID: "op", Kind: Delete, VM: vm.ID, Source: "n1", Leftover: "n1", Replaced: volume, Phase: Clearing, Step: 1}
	check("a deletion waits for the node that has the volumes", deleted, model.VM{ID: vm.ID}, []string{"n1"}, want{phase: Clearing})
}

// A source that lost its power in the middle of a copy leaves a paused guest without all of its memory: it is not resumed.
func TestATargetThatStillReceivesIsNotResumed(t *testing.T) {
	for _, receiving := range []bool{true, false} {
		verdict := Judge(
			Observation{State: model.DomainAbsent}, Observation{State: model.DomainPausedMigration, Epoch: 5, JobActive: receiving}, 5,
		)
		if (verdict == Committed) == receiving {
			t.Errorf("receiving %t: %s", receiving, verdict)
		}
	}
}

// A restart that fails leaves the VM as one that is to run: it is tried again.
func TestAFailedRestartIsStillToRun(t *testing.T) {
	for _, restart := range []bool{true, false} {
		op, vm := starting()
		op.Restart, op.Attempt, vm.Desired = restart, MaxAttempts, model.Running
		next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Seen: Observation{State: model.DomainAbsent}})
		abandoned := Abandon(op, vm, "no node fits", noon)
		for _, after := range []Next{next, abandoned} {
			if running := after.VM.Desired == model.Running; after.Operation.Result != Failed || running != restart {
				t.Errorf("restart %t: %s, %s", restart, after.Operation.Result, after.VM.Desired)
			}
		}
	}
}

// FAULTS.md, W13. A restart whose storage is not there yet is no failure of the VM.
func TestARestartWaitsForItsStorage(t *testing.T) {
	op, vm := starting()
	op.Restart, vm.Desired, vm.Restarts = true, model.Running, 2
	late := Answer{Node: "n1", Step: op.Step, Outcome: OutcomeFailed, Code: NoPool, Error: "pool fast is not active"}
	next, moved := Step(op, vm, late, noon)
	const want = "it waits for its storage, and is tried again until that is there: pool fast is not active"
	if !moved || next.Operation.Result != Failed || next.VM.Restarts != 1 || next.VM.Desired != model.Running ||
		!next.VM.Condition.Is(model.StorageLate) || next.VM.Condition.Text != want {
		t.Errorf("%t: %+v, %+v", moved, next.Operation, next.VM)
	}
	op.Restart = false
	if next, _ := Step(op, vm, late, noon); next.Operation.Phase != Placing {
		t.Errorf("a start that somebody asked for: %+v", next.Operation)
	}
}

// A start whose host is lost before it can answer takes the VM to another one, and not to a third.
func TestAStartLosesTwoHostsAtMost(t *testing.T) {
	op, vm := starting()
	op.Restart, op.TargetBoot, vm.Desired = true, "b1", model.Running
	for lost := 1; lost <= model.MaxLosses; lost++ {
		after, holds, _ := drivenOff(op, vm, op.Target)
		want := Placing
		if lost == model.MaxLosses {
			want = Ended
		}
		if after.Phase != want || len(holds.Losses) != lost || holds.Desired != model.Running {
			t.Fatalf("after %d: %s %s %q, %+v", lost, after.Phase, after.Result, after.Message, holds)
		}
		if after.Phase == Placing {
			next := Place(after, holds, Target{Node: "n2", Name: "node2", Boot: "b7"}, noon)
			after, holds = next.Operation, next.VM
		}
		op, vm = after, holds
	}
	if op.Message != "its hosts were lost soon after it had started: "+vm.LossesText() {
		t.Errorf("people are told %q", op.Message)
	}

	op, vm = starting()
	op.Restart, op.TargetBoot, vm.Desired = true, "b1", model.Running
	for lost, boot := range []string{"b2", "b3"} {
		todo := NewDriver(0).Look(Input{Operation: op, VM: vm, Boot: boot}, noon)
		if todo.Commit == nil || len(todo.Commit.VM.Losses) != lost+1 {
			t.Fatalf("boot %s, before the order is repeated: %+v", boot, todo)
		}
		op, vm = todo.Commit.Operation, todo.Commit.VM
		repeated := NewDriver(0).Look(Input{Operation: op, VM: vm, Boot: boot}, noon)
		if again := len(repeated.Orders) == 1 && repeated.Orders[0].Action == ActStart; again != (boot == "b2") {
			t.Errorf("boot %s: %+v", boot, repeated)
		}
	}
	none := map[string]Observation{"n1": {State: model.DomainAbsent, Boot: "b3"}}
	if next, _ := Settle(op, vm, none, noon); next.Operation.Result != Failed || len(next.VM.Losses) != 2 {
		t.Errorf("a start that took its host down twice: %+v", next)
	}
	runs := map[string]Observation{"n1": {State: model.DomainRunning, Epoch: op.Epoch, Boot: "b3"}}
	if next, _ := Settle(op, vm, runs, noon); next.Operation.Result != Done || next.VM.Holder != "n1" {
		t.Errorf("a start that was carried out: %+v", next)
	}

	op, vm = starting()
	op.TargetBoot, op.Phase = "b1", Judging
	for boot, losses := range map[string]int{"b1": 0, "b2": 1, "": 0} {
		next, settled := Settle(op, vm, map[string]Observation{"n1": {State: model.DomainAbsent, Boot: boot}}, noon)
		if !settled || len(next.VM.Losses) != losses {
			t.Errorf("boot %q: %t, %+v", boot, settled, next.VM.Losses)
		}
	}
}
