package operation

import (
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// parked is a migration that no rule could decide. HandedOver tells that the target was made the holder before.
func parked(handedOver bool) (Operation, model.VM) {
	op, vm := migrating()
	op.Phase, op.Step, op.Result, op.Message = Judging, 3, Parked, "both nodes run it"
	vm.Condition.Text = "parked: both nodes run it"
	if handedOver {
		vm.Holder, vm.Epoch, vm.MovedAt = "n2", 5, noon
	}
	return op, vm
}

func shows(state model.DomainState, epoch uint64) Observation {
	return Observation{State: state, Epoch: epoch}
}

var nothing = shows(model.DomainAbsent, 0)

// agents answer every order of a resolved operation as nodes would that show these copies. Their marks follow the orders.
type agents map[string]Observation

func (a agents) answer(order Order) Answer {
	seen := a[order.Node]
	switch order.Action {
	case ActAdopt:
		seen.Epoch = order.Epoch
	case ActResume:
		seen.State = model.DomainRunning
	}
	a[order.Node] = seen
	return Answer{Node: order.Node, Outcome: OutcomeDone, Seen: seen}
}

// carry drives an operation to its end, and gives what the agents were asked for.
func carry(t *testing.T, next Next, nodes agents) (Next, []string) {
	t.Helper()
	var asked []string
	for range 20 {
		op := next.Operation
		if !op.Live() || op.Result == Parked {
			return next, asked
		}
		for _, order := range Orders(op, next.VM, 1) {
			asked = append(asked, string(order.Action)+" "+order.Node)
			next = mustStep(t, op, next.VM, nodes.answer(order))
		}
	}
	t.Fatalf("it never ends: %+v", next.Operation)
	return next, nil
}

func TestResolve(t *testing.T) {
	for name, c := range map[string]struct {
		handedOver bool
		keep       string
		seen       agents
		asked      []string
		result     Result
		holder     string
		desired    model.RunState
	}{
		"the source runs it": {
			false, KeepSource,
			agents{"n1": shows(model.DomainRunning, 4), "n2": nothing},
			[]string{"discard n2", "adopt n1"},
			Failed, "n1", model.Running,
		},
		"the source was paused by the migration": {
			false, KeepSource,
			agents{"n1": shows(model.DomainPausedMigration, 4), "n2": nothing},
			[]string{"discard n2", "adopt n1", "resume n1"},
			Failed, "n1", model.Running,
		},
		"the source was paused by somebody": {
			false, KeepSource,
			agents{"n1": shows(model.DomainPaused, 4), "n2": nothing},
			[]string{"discard n2", "adopt n1"},
			Failed, "n1", model.Running,
		},
		"the source has it back after it was handed over": {
			true, KeepSource,
			agents{"n1": shows(model.DomainRunning, 4), "n2": shows(model.DomainShutoff, 5)},
			[]string{"discard n2", "adopt n1"},
			Failed, "n1", model.Running,
		},
		"the target runs it": {
			false, KeepTarget,
			agents{"n1": nothing, "n2": shows(model.DomainRunning, 5)},
			[]string{"discard n1", "adopt n2"},
			Done, "n2", model.Running,
		},
		"the target waits": {
			true, KeepTarget,
			agents{"n1": shows(model.DomainShutoff, 4), "n2": shows(model.DomainPaused, 5)},
			[]string{"discard n1", "adopt n2", "resume n2"},
			Done, "n2", model.Running,
		},
		"neither": {
			true, KeepNone, agents{"n1": nothing, "n2": nothing}, []string{"discard n2", "discard n1"}, Failed, "", model.Stopped,
		},
	} {
		t.Run(name, func(t *testing.T) {
			op, vm := parked(c.handedOver)
			next, obstacle := Resolve(op, vm, c.keep, c.seen, "operator/ann", noon)
			if obstacle != nil {
				t.Fatalf("in the way: %+v", obstacle)
			}
			if _, reserved := next.Operation.Reservation(); !reserved {
				t.Error("it lost its reservation before its end")
			}
			end, asked := carry(t, next, c.seen)
			if !slices.Equal(asked, c.asked) || end.Operation.Result != c.result || end.VM.Holder != c.holder || end.VM.Desired != c.desired {
				t.Errorf("asked %v, ended %s with %+v", asked, end.Operation.Result, end.VM)
			}
			if c.holder != "" && (end.VM.Epoch != 6 || end.VM.LastEpoch != 6 || c.seen[c.holder].Epoch != 6) {
				t.Errorf("epoch %d of %d, the copy has %d: want one of its own", end.VM.Epoch, end.VM.LastEpoch, c.seen[c.holder].Epoch)
			}
			if end.VM.Operation != "" || end.VM.Condition.Text != "" {
				t.Errorf("the VM is still bound: %+v", end.VM)
			}
			all := strings.Join(end.Operation.Evidence, "\n")
			for _, told := range []string{
				"node1 showed domain", "node2 showed domain", "operator/ann resolved it at 2026-01-02T12:00:00Z: keep " + c.keep,
			} {
				if !strings.Contains(all, told) {
					t.Errorf("the evidence lacks %q:\n%s", told, all)
				}
			}
			if end.Operation.Resolution != c.keep || end.Operation.ResolvedBy != "operator/ann" {
				t.Errorf("resolution %q by %q", end.Operation.Resolution, end.Operation.ResolvedBy)
			}
		})
	}
}

func TestWhatIsInTheWayOfAResolution(t *testing.T) {
	running := shows(model.DomainRunning, 4)
	for name, c := range map[string]struct {
		keep string
		seen agents
		want ObstacleCode
		node string
	}{
		"the other runs":             {KeepSource, agents{"n1": running, "n2": running}, StillThere, "n2"},
		"the other is paused":        {KeepTarget, agents{"n1": shows(model.DomainPausedMigration, 4), "n2": running}, StillThere, "n1"},
		"the other has crashed":      {KeepTarget, agents{"n1": shows(model.DomainCrashed, 4), "n2": running}, StillThere, "n1"},
		"the other is silent":        {KeepSource, agents{"n1": running, "n2": shows(model.DomainUnknown, 0)}, NotHeard, "n2"},
		"the other was never heard":  {KeepSource, agents{"n1": running}, NotHeard, "n2"},
		"the one to keep is silent":  {KeepSource, agents{"n2": nothing}, NotHeard, "n1"},
		"the one to keep is absent":  {KeepTarget, agents{"n1": nothing, "n2": nothing}, NotThere, "n2"},
		"the one to keep is off":     {KeepTarget, agents{"n1": nothing, "n2": shows(model.DomainShutoff, 5)}, NotThere, "n2"},
		"none, and the target runs":  {KeepNone, agents{"n1": nothing, "n2": running}, StillThere, "n2"},
		"none, and the source pends": {KeepNone, agents{"n1": shows(model.DomainPausedMigration, 4), "n2": nothing}, StillThere, "n1"},
		"a word":                     {"both", agents{"n1": nothing, "n2": nothing}, KeepsUnknown, ""},
	} {
		op, vm := parked(false)
		_, obstacle := Resolve(op, vm, c.keep, c.seen, "operator/ann", noon)
		if obstacle == nil || obstacle.Code != c.want || obstacle.Node != c.node {
			t.Errorf("%s: got %+v, want %s of %q", name, obstacle, c.want, c.node)
		}
	}
	op, vm := migrating()
	if _, obstacle := Resolve(
		op, vm, KeepSource, agents{"n1": running, "n2": nothing}, "x", noon,
	); obstacle == nil || obstacle.Code != NotParked {
		t.Errorf("one that works: %+v", obstacle)
	}
	op, vm = parked(true)
	op.CopyStorage = true
	if _, obstacle := Resolve(
		op, vm, KeepSource, agents{"n1": running, "n2": nothing}, "x", noon,
	); obstacle == nil || obstacle.Code != DisksMoved {
		t.Errorf("copied disks: %+v", obstacle)
	}
	op.Phase, op.Result = Ended, Parked
	if _, obstacle := Resolve(
		op, vm, KeepSource, agents{"n1": running, "n2": nothing}, "x", noon,
	); obstacle == nil || obstacle.Code != NotParked {
		t.Errorf("one that a restore has ended: %+v", obstacle)
	}
}

// What changed under the operator's eyes goes back to the operator: it is never judged by a rule, and nothing is killed.
func TestAResolutionThatCannotBeDoneParksAgain(t *testing.T) {
	seen := agents{"n1": shows(model.DomainRunning, 4), "n2": nothing}
	resolved := func() Next {
		op, vm := parked(false)
		next, obstacle := Resolve(op, vm, KeepSource, seen, "operator/ann", noon)
		if obstacle != nil {
			t.Fatal(obstacle)
		}
		return next
	}
	first := resolved()
	back := mustStep(t, first.Operation, first.VM, Answer{Node: "n2", Outcome: OutcomeFailed, Seen: shows(model.DomainRunning, 5)})
	marking := mustStep(t, first.Operation, first.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: nothing})
	gone := mustStep(
		t, marking.Operation, marking.VM, Answer{Node: "n1", Outcome: OutcomeFailed, Error: "there is nothing to adopt", Seen: nothing},
	)
	silent, overdue := Overdue(first.Operation, first.VM, noon.Add(DiscardPatience))
	if !overdue {
		t.Fatal("it waits for ever")
	}
	late, overdue := Overdue(marking.Operation, marking.VM, noon.Add(MarkPatience))
	if !overdue {
		t.Fatal("it waits for ever")
	}
	for name, next := range map[string]Next{"it came back": back, "it is gone": gone, "no answer": silent, "no answer to the mark": late} {
		op, vm := next.Operation, next.VM
		if op.Result != Parked || op.Phase != Judging || op.Resolution != "" || vm.Operation != "op" || vm.Holder != "n1" {
			t.Errorf("%s: %+v, %+v", name, op, vm)
		}
		if !strings.Contains(op.Message, "could not be done") || len(Orders(op, vm, 1)) != 0 {
			t.Errorf("%s: %q, orders %v", name, op.Message, Orders(op, vm, 1))
		}
		if _, obstacle := Resolve(op, vm, KeepSource, seen, "operator/bob", noon); obstacle != nil {
			t.Errorf("%s: it cannot be resolved any more: %+v", name, obstacle)
		}
	}
	if _, moved := Step(
		marking.Operation, marking.VM, Answer{Operation: "op", Step: marking.Operation.Step, Node: "n1", Outcome: OutcomeAmbiguous}, noon,
	); moved {
		t.Error("a mark in doubt is asked for again")
	}
	if _, moved := Step(
		marking.Operation, marking.VM, Answer{Operation: "op", Step: marking.Operation.Step, Node: "n2", Outcome: OutcomeDone}, noon,
	); moved {
		t.Error("the node that loses it cannot mark it")
	}
}

// A node that is proven to be off has lost it without a word.
func TestAResolutionDoesNotWaitForAFencedNode(t *testing.T) {
	op, vm := parked(false)
	next, _ := Resolve(op, vm, KeepTarget, agents{"n1": nothing, "n2": shows(model.DomainRunning, 5)}, "operator/ann", noon)
	todo := NewDriver(0).Look(Input{Operation: next.Operation, VM: next.VM, Fenced: []string{"n1"}}, noon)
	if todo.Commit == nil || todo.Commit.Operation.Phase != Marking {
		t.Errorf("got %+v", todo)
	}
}

func adopting(created bool) (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op", LastEpoch: 3}
	return Operation{
		ID: "op", Kind: Adopt, VM: vm.ID, VMName: vm.Name, Target: "n1", TargetName: "node1", Epoch: 3, Phase: Dispatched, Step: 1,
		Created: created, Memory: 1 << 30, VCPUs: 1, UpdatedAt: noon,
	}, vm
}

func TestAdopt(t *testing.T) {
	op, vm := adopting(true)
	orders := Orders(op, vm, 1)
	if len(orders) != 1 || orders[0].Action != ActAdopt || orders[0].Node != "n1" || orders[0].Epoch != 3 {
		t.Fatalf("orders %+v", orders)
	}
	if _, reserved := op.Reservation(); reserved {
		t.Error("a domain that runs already would count twice")
	}
	done := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 3)})
	if done.Operation.Result != Done || done.VM.Holder != "n1" || done.VM.Epoch != 3 || done.VM.Operation != "" ||
		!done.VM.MovedAt.IsZero() || done.DeleteVM {
		t.Errorf("got %+v", done)
	}
	if _, moved := Step(op, vm, Answer{Operation: "op", Step: 1, Node: "n1", Outcome: OutcomeAmbiguous}, noon); moved {
		t.Error("a mark in doubt is asked for again")
	}
	failed := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Error: "there is nothing to adopt"})
	if failed.Operation.Result != Failed || !failed.DeleteVM {
		t.Errorf("got %+v", failed)
	}
	late, overdue := Overdue(op, vm, noon.Add(MarkPatience))
	if !overdue || late.Operation.Result != Failed || !late.DeleteVM {
		t.Errorf("got %+v, %t", late, overdue)
	}
	if _, overdue := Overdue(op, vm, noon.Add(MarkPatience-time.Second)); overdue {
		t.Error("it is given up too early")
	}
	// A VM that somebody has moved keeps its record, whatever comes of it.
	op, vm = adopting(false)
	vm.Holder, vm.Epoch = "n2", 2
	moved := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 3)})
	if moved.VM.Holder != "n1" || moved.VM.MovedAt != noon {
		t.Errorf("got %+v", moved.VM)
	}
	failed = mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed})
	if failed.DeleteVM || failed.VM.Holder != "n2" || failed.VM.Operation != "" {
		t.Errorf("got %+v", failed)
	}
}

func TestRelease(t *testing.T) {
	vm := model.VM{ID: "vm-id", Name: "web1", Desired: model.Running, Operation: "op", Holder: "n1", Epoch: 3, LastEpoch: 3}
	op := Operation{
		ID: "op", Kind: Release, VM: vm.ID, VMName: vm.Name, Source: "n1", SourceName: "node1", Epoch: 3, Phase: Dispatched, Step: 1,
		UpdatedAt: noon,
	}
	if orders := Orders(op, vm, 1); len(orders) != 1 || orders[0].Action != ActRelease || orders[0].Node != "n1" || orders[0].Epoch != 3 {
		t.Fatalf("orders %+v", orders)
	}
	if done := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone}); done.Operation.Result != Done || !done.DeleteVM {
		t.Errorf("got %+v", done)
	}
	failed := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Error: "it does not run here"})
	if failed.Operation.Result != Failed || failed.DeleteVM || failed.VM.Holder != "n1" {
		t.Errorf("got %+v", failed)
	}
	if late, overdue := Overdue(op, vm, noon.Add(MarkPatience)); !overdue || late.DeleteVM {
		t.Errorf("got %+v, %t", late, overdue)
	}
}
