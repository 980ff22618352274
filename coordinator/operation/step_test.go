package operation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func starting() (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op"}
	op := Operation{ID: "op", Kind: Start, VM: vm.ID, VMName: vm.Name, Created: true}
	next := Place(op, vm, Target{Node: "n1", Name: "node1", Decision: "decision"}, noon)
	return next.Operation, next.VM
}

func migrating() (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op", Holder: "n1", Epoch: 4, LastEpoch: 5}
	return Operation{
		ID: "op", Kind: Migrate, VM: vm.ID, VMName: vm.Name, Source: "n1", SourceName: "node1", SourceEpoch: 4, SourceBoot: "boot-1",
		Target: "n2", TargetName: "node2", Epoch: 5, Phase: Copying, Step: 1,
	}, vm
}

func mustStep(t *testing.T, op Operation, vm model.VM, answer Answer) Next {
	t.Helper()
	answer.Operation, answer.Step = op.ID, op.Step
	next, moved := Step(op, vm, answer, noon)
	if !moved {
		t.Fatalf("%s in phase %s ignored %+v", op.Kind, op.Phase, answer)
	}
	return next
}

func TestStartDone(t *testing.T) {
	op, vm := starting()
	orders := Orders(op, vm, 1)
	if len(orders) != 1 || orders[0].Action != ActStart || orders[0].Node != "n1" || orders[0].Epoch != 1 {
		t.Fatalf("orders %+v", orders)
	}
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 1}})
	if next.Operation.Result != Done || next.VM.Holder != "n1" || next.VM.Epoch != 1 || next.VM.Operation != "" {
		t.Fatalf("ended as %+v, vm %+v", next.Operation, next.VM)
	}
}

// An answer that comes late belongs to an attempt that is over.
func TestAnAnswerOfAnotherStepChangesNothing(t *testing.T) {
	for _, begun := range []func() (Operation, model.VM){starting, migrating} {
		op, vm := begun()
		node := op.Target
		if op.Kind == Migrate {
			node = op.Source
		}
		for _, step := range []uint32{op.Step - 1, op.Step + 1} {
			for _, outcome := range []Outcome{OutcomeDone, OutcomeFailed, OutcomeAmbiguous} {
				answer := Answer{Operation: op.ID, Node: node, Step: step, Outcome: outcome, Seen: Observation{State: model.DomainAbsent}}
				if next, moved := Step(op, vm, answer, noon); moved {
					t.Errorf("%s in step %d took %s of step %d: %+v", op.Kind, op.Step, outcome, step, next.Operation)
				}
			}
		}
	}
}

// A source that says done and still shows the guest has not let go of it.
func TestNothingIsHandedOverThatTheSourceStillShows(t *testing.T) {
	for _, state := range []model.DomainState{model.DomainRunning, model.DomainPausedMigration, model.DomainUnknown} {
		op, vm := migrating()
		next := mustStep(t, op, vm, Answer{Node: op.Source, Outcome: OutcomeDone, Seen: Observation{State: state, Epoch: 4}})
		if next.Operation.Phase != Judging || next.VM.Holder != op.Source {
			t.Errorf("done, and it shows %s: phase %s, holder %s", state, next.Operation.Phase, next.VM.Holder)
		}
	}
}

// A verdict needs both nodes; and where both hold it still, the target's copy goes before the source's is resumed.
func TestAVerdictTakesBothLooksAndOneStepAtATime(t *testing.T) {
	op, vm := migrating()
	op.Phase = Judging
	source, target := Observation{State: model.DomainPausedMigration, Epoch: 4}, Observation{State: model.DomainPaused, Epoch: 5}
	for _, seen := range []map[string]Observation{{}, {"n1": source}, {"n2": target}} {
		if next, settled := Settle(op, vm, seen, noon); settled {
			t.Errorf("%d looks settled it: %+v", len(seen), next.Operation)
		}
	}
	start, web := starting()
	start.Phase = Judging
	if next, settled := Settle(start, web, map[string]Observation{}, noon); settled {
		t.Errorf("a start is settled without a look: %+v", next.Operation)
	}
	next, settled := Settle(op, vm, map[string]Observation{"n1": source, "n2": target}, noon)
	if is := next.Operation; !settled || is.Phase != Discarding || is.Leftover != "n2" || !is.Revert {
		t.Errorf("settled %t: %+v", settled, is)
	}
}

func TestStartTriesOtherNodesAndThenLeavesNothing(t *testing.T) {
	op, vm := starting()
	for attempt := 1; ; attempt++ {
		next := mustStep(t, op, vm, Answer{Node: op.Target, Outcome: OutcomeFailed, Code: "no_memory", Error: "cannot allocate"})
		op, vm = next.Operation, next.VM
		if op.Phase == Ended {
			if attempt != MaxAttempts || op.Result != Failed || !next.DeleteVM {
				t.Fatalf("ended at attempt %d as %s, delete %t", attempt, op.Result, next.DeleteVM)
			}
			return
		}
		if op.Phase != Placing || len(Orders(op, vm, 1)) != 0 {
			t.Fatalf("phase %s after a failure", op.Phase)
		}
		if _, reserved := op.Reservation(); reserved {
			t.Fatal("a failed node keeps its reservation")
		}
		before := op.Epoch
		placed := Place(op, vm, Target{Node: "n" + string(rune('2'+attempt)), Name: "node", Decision: "decision"}, noon)
		op, vm = placed.Operation, placed.VM
		if op.Epoch <= before {
			t.Fatalf("epoch %d after %d: a second attempt needs an epoch of its own", op.Epoch, before)
		}
	}
}

func TestStartFailsAtOnceWhenAnotherNodeWouldFailToo(t *testing.T) {
	for _, code := range []ErrorCode{InvalidXML, Exists} {
		op, vm := starting()
		next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Code: code, Error: "no"})
		if next.Operation.Result != Failed {
			t.Errorf("%s: phase %s", code, next.Operation.Phase)
		}
	}
}

func TestStartInDoubtIsLookedAtNeverRepeatedBlindly(t *testing.T) {
	op, vm := starting()
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeAmbiguous})
	op, vm = next.Operation, next.VM
	if op.Phase != Judging || Orders(op, vm, 1)[0].Action != ActInspect {
		t.Fatalf("phase %s", op.Phase)
	}
	if _, decided := Settle(op, vm, map[string]Observation{"n1": {State: model.DomainUnknown}}, noon); decided {
		t.Error("decided on a node that cannot tell")
	}
	ran, _ := Settle(op, vm, map[string]Observation{"n1": {State: model.DomainRunning, Epoch: op.Epoch}}, noon)
	if ran.Operation.Result != Done {
		t.Errorf("it runs: %+v", ran.Operation)
	}
	gone, _ := Settle(op, vm, map[string]Observation{"n1": {State: model.DomainAbsent}}, noon)
	if gone.Operation.Phase != Placing {
		t.Errorf("it does not run: phase %s", gone.Operation.Phase)
	}
}

func TestMigrationHandsOverBeforeTheTargetRuns(t *testing.T) {
	op, vm := migrating()
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	op, vm = next.Operation, next.VM
	if op.Phase != HandedOver || vm.Holder != "n2" || vm.Epoch != 5 || !vm.MovedAt.Equal(noon) {
		t.Fatalf("phase %s, holder %s, epoch %d, moved at %s", op.Phase, vm.Holder, vm.Epoch, vm.MovedAt)
	}
	if orders := Orders(op, vm, 1); len(orders) != 1 || orders[0].Action != ActResume || orders[0].Node != "n2" {
		t.Fatalf("orders %+v", orders)
	}
	next = mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 5}})
	if next.Operation.Result != Done || next.VM.Operation != "" {
		t.Fatalf("ended as %+v", next.Operation)
	}
}

// A source that is not done with the guest yet does not keep the target waiting, and ends the migration when it is: until then
// its hypervisor would not take the VM back.
func TestMigrationEndsWhenTheSourceHasClearedUp(t *testing.T) {
	op, vm := migrating()
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent, JobActive: true}})
	if next.Operation.Phase != HandedOver || next.VM.Holder != "n2" {
		t.Fatalf("phase %s, holder %s", next.Operation.Phase, next.VM.Holder)
	}
	next = mustStep(
		t, next.Operation, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 5}},
	)
	op, vm = next.Operation, next.VM
	if orders := Orders(op, vm, 1); len(orders) != 1 || orders[0].Action != ActDiscard || orders[0].Node != "n1" || vm.Operation == "" {
		t.Fatalf("phase %s, orders %+v", op.Phase, orders)
	}
	answer := Answer{
		Node: "n1", Step: op.Step, Outcome: OutcomeRefused, Code: "stale_epoch",
		Seen: Observation{State: model.DomainAbsent, JobActive: true},
	}
	if _, moved := Step(op, vm, answer, noon); moved {
		t.Error("ended while the source clears up")
	}
	answer.Seen.JobActive = false
	next = mustStep(t, op, vm, answer)
	if next.Operation.Result != Done || next.VM.Operation != "" || next.VM.Holder != "n2" {
		t.Fatalf("ended as %+v", next.Operation)
	}
}

func TestMigrationThatFailsLeavesTheVMWhereItWas(t *testing.T) {
	op, vm := migrating()
	next := mustStep(
		t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Error: "no route", Seen: Observation{State: model.DomainRunning, Epoch: 4}},
	)
	op, vm = next.Operation, next.VM
	if op.Phase != Discarding || op.Leftover != "n2" || vm.Holder != "n1" || vm.Epoch != 4 {
		t.Fatalf("phase %s, leftover %s, holder %s", op.Phase, op.Leftover, vm.Holder)
	}
	if _, moved := Step(op, vm, Answer{Node: "n2", Step: op.Step, Outcome: OutcomeAmbiguous}, noon); moved {
		t.Error("ended without knowing that the leftover is gone")
	}
	if _, overdue := Overdue(op, vm, noon.Add(DiscardPatience-1)); overdue {
		t.Error("gave up too early")
	}
	silent, overdue := Overdue(op, vm, noon.Add(DiscardPatience))
	if !overdue || silent.Operation.Result != Failed || silent.VM.Holder != "n1" {
		t.Errorf("a silent target: %+v", silent.Operation)
	}
	if want := []model.Discard{{Node: "n2", Epoch: op.Epoch}}; !slices.Equal(silent.VM.Discards, want) {
		t.Errorf("to be discarded: %+v", silent.VM.Discards)
	}
	next = mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	if next.Operation.Result != Failed || !strings.Contains(next.Operation.Message, "no route") {
		t.Fatalf("ended as %+v", next.Operation)
	}
}

// After a discard the node refuses a second one of the same epoch. With a look that shows nothing of it, that is an answer.
func TestALeftoverThatWasDiscardedBeforeIsGone(t *testing.T) {
	op, vm := migrating()
	op.Phase, op.Leftover, op.Revert = Discarding, "n2", true
	refused := Answer{Node: "n2", Step: op.Step, Outcome: OutcomeRefused, Code: "stale_epoch"}
	for state, gone := range map[model.DomainState]bool{
		model.DomainAbsent: true, model.DomainShutoff: true, model.DomainUnknown: false, model.DomainPaused: false, "": false,
	} {
		refused.Seen = Observation{State: state, Epoch: op.Epoch}
		next, moved := Step(op, vm, refused, noon)
		if moved != gone || moved && next.Operation.Phase != Reverting {
			t.Errorf("seen %q: phase %s, moved %t", state, next.Operation.Phase, moved)
		}
	}
}

func TestMigrationRunningOnBothIsParked(t *testing.T) {
	op, vm := migrating()
	op.Phase = Judging
	next, decided := Settle(op, vm, map[string]Observation{
		"n1": {State: model.DomainRunning, Epoch: 4}, "n2": {State: model.DomainRunning, Epoch: 5},
	}, noon)
	if !decided || next.Operation.Result != Parked || !next.Operation.Live() {
		t.Fatalf("decided %t: %+v", decided, next.Operation)
	}
	if orders := Orders(next.Operation, next.VM, 1); len(orders) != 0 {
		t.Errorf("a parked operation still orders %+v", orders)
	}
	if _, moved := Step(next.Operation, next.VM, Answer{Node: "n1", Step: next.Operation.Step, Outcome: OutcomeDone}, noon); moved {
		t.Error("a parked operation moved by itself")
	}
}

func TestAnOldLeadersRefusalChangesNothing(t *testing.T) {
	op, vm := starting()
	if _, moved := Step(op, vm, Answer{Node: "n1", Step: op.Step, Outcome: OutcomeRefused, Code: "stale_term"}, noon); moved {
		t.Error("moved on the refusal of an order from an older term")
	}
}

// Whatever the agents answer, in whatever order: the target never gets a resume order while the record still names the
// source as the holder, an ended operation never moves, a step is never taken back, and the VM is let go at the end.
func TestMigrationKeepsItsPromises(t *testing.T) {
	outcomes := []Outcome{OutcomeDone, OutcomeFailed, OutcomeRefused, OutcomeAmbiguous, OutcomeCancelled}
	rapid.Check(t, func(t *rapid.T) {
		op, vm := migrating()
		at := noon
		for range rapid.IntRange(1, 40).Draw(t, "answers") {
			for _, order := range Orders(op, vm, 1) {
				switch {
				case order.Action == ActResume && order.Node != vm.Holder:
					t.Fatalf("phase %s: %s is to resume while %s holds the VM", op.Phase, order.Node, vm.Holder)
				case order.Action == ActDiscard && order.Node == vm.Holder:
					t.Fatalf("phase %s: the holder %s is to discard its copy", op.Phase, order.Node)
				}
			}
			look := func(label string) Observation {
				return Observation{
					State: rapid.SampledFrom(shown).Draw(t, label), Epoch: rapid.Uint64Range(4, 5).Draw(t, label+" epoch"),
					JobActive: rapid.Bool().Draw(t, label+" job"),
				}
			}
			var next Next
			var moved bool
			if op.Phase == Judging {
				next, moved = Settle(op, vm, map[string]Observation{"n1": look("source"), "n2": look("target")}, at)
			} else {
				next, moved = Step(op, vm, Answer{
					Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), Step: op.Step - rapid.Uint32Range(0, 1).Draw(t, "late"),
					Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), Seen: look("seen"),
				}, at)
			}
			if !moved {
				continue
			}
			if !op.Live() || op.Result == Parked {
				t.Fatalf("%s moved after it had ended", op.Phase)
			}
			if next.Operation.Live() && next.Operation.Step < op.Step {
				t.Fatalf("step %d after %d", next.Operation.Step, op.Step)
			}
			if next.VM.Epoch < vm.Epoch {
				t.Fatalf("epoch %d after %d", next.VM.Epoch, vm.Epoch)
			}
			if !slices.Contains([]string{"n1", "n2", ""}, next.VM.Holder) || (vm.Holder == "n2" && next.VM.Holder == "n1") {
				t.Fatalf("holder %q after %q", next.VM.Holder, vm.Holder)
			}
			if !next.Operation.Live() && next.VM.Operation != "" {
				t.Fatal("an ended operation still locks its VM")
			}
			if moved := !next.VM.MovedAt.IsZero(); next.VM.Holder == "n1" && moved || next.VM.Holder == "n2" && !moved {
				t.Fatalf("%s holds it, moved at %s", next.VM.Holder, next.VM.MovedAt)
			}
			op, vm = next.Operation, next.VM
		}
	})
}

// A node whose journal takes no entry has promised nothing: the same order may still be carried out there, or has been.
func TestARefusalByABrokenJournalLeadsNowhere(t *testing.T) {
	starts, vm := starting()
	migrates, moved := migrating()
	refused := Answer{Outcome: OutcomeRefused, Code: "journal", Error: "no space left"}
	for _, one := range []struct {
		op   Operation
		vm   model.VM
		node string
	}{{starts, vm, "n1"}, {migrates, moved, "n1"}} {
		refused.Node = one.node
		for _, liar := range []string{"n2", "n3", ""} { // n2 has a part in the migration, and was not asked either
			foreign := refused
			foreign.Node, foreign.Operation, foreign.Step = liar, one.op.ID, one.op.Step
			if next, moved := Step(one.op, one.vm, foreign, noon); moved {
				t.Errorf("%s: the word of node %q, which was not asked, led to %+v", one.op.Kind, liar, next.Operation)
			}
		}
		next := mustStep(t, one.op, one.vm, refused)
		if next.Operation.Phase != one.op.Phase || next.Operation.Step != one.op.Step || next.Operation.Message != "no space left" {
			t.Errorf("%s: led to %+v", one.op.Kind, next.Operation)
		}
		refused.Operation, refused.Step = one.op.ID, one.op.Step
		if again, moved := Step(next.Operation, one.vm, refused, noon); moved {
			t.Errorf("%s: the second refusal led to %+v", one.op.Kind, again.Operation)
		}
	}
}

// A node that has let go of the epoch does not obey the stop. Whether it still has the VM is asked.
func TestAStopOfWhatTheNodeHasLetGoIsJudged(t *testing.T) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op", Holder: "n1", Epoch: 4, LastEpoch: 4}
	op := Operation{ID: "op", Kind: Stop, VM: vm.ID, Source: "n1", Epoch: 4, Phase: Dispatched, Step: 1}
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Code: "stale_epoch", Error: "older"})
	if next.Operation.Phase != Judging {
		t.Fatalf("led to %+v", next.Operation)
	}
	settled, decided := Settle(next.Operation, next.VM, map[string]Observation{"n1": {State: model.DomainAbsent}}, noon)
	if !decided || settled.Operation.Result != Done || settled.VM.Holder != "" {
		t.Errorf("a node without it led to %+v, VM %+v", settled.Operation, settled.VM)
	}
}

// A hypervisor that hung may carry out a stop after it shows the guest again, so the stop is not given up at once.
func TestAStopOfWhichNobodySawTheEndIsAskedForAgain(t *testing.T) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op", Holder: "n1", Epoch: 4, LastEpoch: 4}
	begun := Operation{ID: "op", Kind: Stop, VM: vm.ID, Source: "n1", Epoch: 4, Phase: Dispatched, Step: 1, Attempt: 1}
	judged := func(op Operation, epoch uint64) Next {
		doubtful := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeAmbiguous, Error: "the connection broke"})
		next, decided := Settle(doubtful.Operation, vm, map[string]Observation{"n1": {State: model.DomainRunning, Epoch: epoch}}, noon)
		if !decided {
			t.Fatalf("nothing was decided about %+v", op)
		}
		return next
	}
	op, orders := begun, 1
	for op.Live() {
		if op = judged(op, 4).Operation; op.Phase == Dispatched {
			orders++
		}
	}
	if orders != MaxAttempts || op.Result != Failed || !strings.Contains(op.Message, "the node still shows it running") {
		t.Errorf("%d orders, ended as %s: %s", orders, op.Result, op.Message)
	}
	cancelled := begun
	cancelled.Cancel = true
	for name, next := range map[string]Next{"cancelled": judged(cancelled, 4), "another epoch": judged(begun, 7)} {
		if next.Operation.Result != Failed {
			t.Errorf("%s: %+v", name, next.Operation)
		}
	}
}
