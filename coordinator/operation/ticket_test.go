package operation

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// promising is a migration that waits for its target's ticket.
func promising() (Operation, model.VM) {
	op, vm := migrating()
	op.Phase, op.UpdatedAt = Preparing, noon
	return op, vm
}

func TestAMigrationBeginsWithATicketOfItsTarget(t *testing.T) {
	op, vm := promising()
	orders := Orders(op, vm, 1)
	if len(orders) != 1 || orders[0].Action != ActPrepare || orders[0].Node != "n2" || orders[0].Epoch != 5 || orders[0].TargetNode != "" {
		t.Fatalf("orders %+v", orders)
	}
	next := mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	if next.Operation.Phase != Copying || next.VM.Holder != "n1" {
		t.Errorf("with a ticket: %+v", next.Operation)
	}
}

// Nothing has been done to the guest, so nothing has to be undone: the VM can go elsewhere at once.
func TestWithoutATicketNothingIsCopied(t *testing.T) {
	for name, c := range map[string]struct {
		without func(op Operation, vm model.VM) (Next, bool)
		says    string
	}{
		"a journal that is full": {func(op Operation, vm model.VM) (Next, bool) {
			return Step(op, vm, Answer{Node: "n2", Step: op.Step, Outcome: OutcomeRefused, Code: Journal, Error: "no space left on device"}, noon)
		}, "node2 could not promise to resume it: no space left on device"},
		"silence": {func(op Operation, vm model.VM) (Next, bool) {
			return Overdue(op, vm, noon.Add(TicketPatience))
		}, "node2 did not promise to resume it within 15s"},
		"a target that turns suspect": {func(op Operation, vm model.VM) (Next, bool) {
			return Suspected(op, vm, "node2 is silent since 12:00:00", noon)
		}, "not begun, because node2 is silent since 12:00:00"},
	} {
		op, vm := promising()
		next, moved := c.without(op, vm)
		if !moved || next.Operation.Result != Failed || next.Operation.Message != c.says || next.VM.Holder != "n1" || next.VM.Operation != "" {
			t.Errorf("%s: %t, %s %q, VM %+v", name, moved, next.Operation.Result, next.Operation.Message, next.VM)
		}
	}
	op, vm := promising()
	if next, moved := Overdue(op, vm, noon.Add(TicketPatience-time.Second)); moved {
		t.Errorf("given up too soon: %+v", next.Operation)
	}
}

// A journal that is full may have carried the order out before: volumes may be there.
func TestATargetThatHasMadeVolumesIsWaitedFor(t *testing.T) {
	op, vm := promising()
	op.Volumes = []model.VolumeOrder{{Name: "berth-r7.qcow2", PoolName: "fast"}}
	next := mustStep(t, op, vm, Answer{Node: "n2", Outcome: OutcomeRefused, Code: Journal, Error: "no space left on device"})
	if next.Operation.Phase != Preparing || next.Operation.Message != "no space left on device" {
		t.Errorf("a full journal: %+v", next.Operation)
	}
	if after, moved := Overdue(op, vm, noon.Add(TicketPatience)); moved {
		t.Errorf("given up: %+v", after.Operation)
	}
	after, moved := Suspected(op, vm, "node2 is silent", noon)
	if !moved || after.Operation.Phase != Clearing || after.Operation.Leftover != "n2" {
		t.Errorf("suspect: %+v", after.Operation)
	}
}

func TestACopyToATargetThatTurnsSuspectIsGivenUp(t *testing.T) {
	const why = "node2 is silent since 12:00:00"
	op, vm := migrating()
	todo := NewDriver(0).Look(Input{Operation: op, VM: vm, Suspect: why}, noon)
	if todo.Commit == nil || !strings.Contains(todo.Commit.Operation.GivenUp, why) || todo.Commit.Operation.Step != op.Step {
		t.Fatalf("at first: %+v", todo)
	}
	op, vm = todo.Commit.Operation, todo.Commit.VM
	// It is told again until the source has answered, also by a leader that finds the target well again.
	for _, now := range []string{why, ""} {
		todo = NewDriver(0).Look(Input{Operation: op, VM: vm, Suspect: now}, noon)
		if todo.Commit != nil || len(todo.Cancels) != 1 || !todo.Orders[0].GivenUp {
			t.Errorf("then, suspect %q: %+v", now, todo)
		}
	}
	running := Observation{State: model.DomainRunning, Epoch: 4}
	back := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeCancelled, Error: "cancelled", Seen: running})
	if back.Operation.Phase != Discarding || back.Operation.Message != "given up before the hand-over, because "+why {
		t.Errorf("given up: %+v", back.Operation)
	}
	late := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	if late.Operation.Phase != HandedOver {
		t.Errorf("the guest had left already: %+v", late.Operation)
	}
}

func TestAGuestThatStandsStillAtASuspectTargetSaysWhatItWaitsFor(t *testing.T) {
	op, vm := migrating()
	op.Phase, vm.Holder = HandedOver, "n2"
	next, moved := Suspected(op, vm, "node2 is silent since 12:00:00", noon)
	const says = "it stands still on node2 until the agent there hears the leader; 'berth node fence node2 --confirmed-off' ends the wait " +
		"if that machine is off"
	if !moved || next.Operation.Message != says || next.Operation.Phase != HandedOver {
		t.Fatalf("%t %+v", moved, next.Operation)
	}
	if again, moved := Suspected(next.Operation, next.VM, "node2 is silent since 12:00:00", noon); moved {
		t.Errorf("said twice: %+v", again.Operation)
	}
}
