package operation

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// An order is given up once, on the record, when its node was silent for long enough; what is wanted however late is not.
func TestWhatASilentNodeMayNotHaveBegunIsGivenUp(t *testing.T) {
	for name, c := range map[string]struct {
		kind   Kind
		silent bool
		after  time.Duration
		change func(*Operation)
		wanted bool
	}{
		"a stop":                        {Stop, true, AwaitPatience, nil, true},
		"a reboot":                      {Reboot, true, AwaitPatience, nil, true},
		"a moment before":               {Stop, true, AwaitPatience - time.Second, nil, false},
		"its node is heard":             {Stop, false, time.Hour, nil, false},
		"it is wanted however late":     {Stop, true, time.Hour, func(op *Operation) { op.WhenBack = true }, false},
		"it was ordered before":         {Stop, true, time.Hour, func(op *Operation) { op.Attempt = 2 }, false},
		"it is cancelled, so it is now": {Stop, true, time.Second, func(op *Operation) { op.Cancel = true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			op, vm := rebooting()
			op.Kind = c.kind
			if c.change != nil {
				c.change(&op)
			}
			driver, at := NewDriver(1), noon.Add(c.after)
			todo := driver.Look(Input{Operation: op, VM: vm, Silent: c.silent}, at)
			if todo.Commit != nil {
				op = todo.Commit.Operation
				todo = driver.Look(Input{Operation: op, VM: vm, Silent: c.silent}, at.Add(time.Second))
			}
			if todo.Commit != nil || len(todo.Orders) != 1 || todo.Orders[0].TakenBack != c.wanted {
				t.Fatalf("%+v", todo)
			}
			late := Answer{Node: "n1", Outcome: OutcomeRefused, Code: TooLate, Error: "too late"}
			next := mustStep(t, op, vm, late)
			if next.Operation.Result != Failed || next.VM.Holder != "n1" || next.VM.Desired != model.Running {
				t.Errorf("%+v", next)
			}
			late.Node, late.Operation, late.Step = "n2", op.ID, op.Step
			if _, moved := Step(op, vm, late, at); moved {
				t.Error("another node's answer counts")
			}
		})
	}
}

// A start that is cancelled before its node has begun it runs nowhere, and is placed on no other one.
func TestACancelledStartIsTakenBack(t *testing.T) {
	vm := model.VM{ID: "vm-id", Name: "web1", Epoch: 4, LastEpoch: 5, Desired: model.Running, Operation: "op"}
	op := Operation{
		ID: "op", Kind: Start, VM: vm.ID, VMName: vm.Name, Target: "n1", TargetName: "node1", Epoch: 5,
		Phase: Dispatched, Step: 1, Attempt: 1, CreatedAt: noon, UpdatedAt: noon,
	}
	if todo := NewDriver(1).Look(Input{Operation: op, VM: vm}, noon.Add(time.Hour)); todo.Orders[0].TakenBack {
		t.Fatal("a start has no date: somebody waits for the VM to run")
	}
	op.Cancel = true
	if todo := NewDriver(1).Look(Input{Operation: op, VM: vm}, noon); !todo.Orders[0].TakenBack {
		t.Fatal("it is not taken back")
	}
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Code: TooLate, Error: "too late"})
	op, vm = next.Operation, next.VM
	if op.Result != Failed || op.Message != "cancelled before node1 had begun it" || vm.Desired != model.Stopped || vm.Holder != "" {
		t.Errorf("%+v", next)
	}
}
