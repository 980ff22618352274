package operation

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
)

// rebooting is the reboot of a VM that n1 has.
func rebooting() (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Holder: "n1", LastNode: "n1", Epoch: 4, LastEpoch: 4, Desired: model.Running, Operation: "op"}
	op := Operation{
		ID: "op", Kind: Reboot, VM: vm.ID, VMName: vm.Name, Source: "n1", SourceName: "node1", Epoch: 4,
		Phase: Dispatched, Step: 1, Attempt: 1, CreatedAt: noon, UpdatedAt: noon,
	}
	return op, vm
}

func TestWhatARebootComesTo(t *testing.T) {
	here, paused, gone := shows(model.DomainRunning, 4), shows(model.DomainPaused, 4), nothing
	for name, c := range map[string]struct {
		force  bool
		answer Answer
		result Result
		says   string
	}{
		"it has restarted": {false, Answer{Outcome: OutcomeDone, Seen: here}, Done, ""},
		"it was reset":     {true, Answer{Outcome: OutcomeDone, Seen: here}, Done, ""},
		"it does not react": {
			false, Answer{Outcome: OutcomeFailed, Error: "slow", Seen: here}, Failed, "slow; 'berth vm reboot web1 --force' resets it",
		},
		"not even reset": {true, Answer{Outcome: OutcomeFailed, Error: "slow", Seen: here}, Failed, "slow"},
		"it is paused":   {false, Answer{Outcome: OutcomeRefused, Error: "it is paused", Seen: paused}, Failed, "it is paused"},
		"it would end":   {false, Answer{Outcome: OutcomeRefused, Error: "it would end", Seen: here}, Failed, "it would end"},
		"it ended":       {false, Answer{Outcome: OutcomeFailed, Error: "it ended", Seen: gone}, Failed, "it ended"},
		"nobody saw it":  {false, Answer{Outcome: OutcomeAmbiguous, Error: "nobody saw", Seen: here}, Failed, "nobody saw"},
		"a stale epoch":  {false, Answer{Outcome: OutcomeRefused, Code: StaleEpoch, Error: "older"}, Failed, "older"},
	} {
		t.Run(name, func(t *testing.T) {
			op, vm := rebooting()
			op.Force = c.force
			c.answer.Node = "n1"
			next := mustStep(t, op, vm, c.answer)
			if next.Operation.Result != c.result || next.Operation.Message != c.says {
				t.Errorf("ended %s with %q", next.Operation.Result, next.Operation.Message)
			}
			if next.VM.Operation != "" || next.VM.Holder != "n1" || next.VM.Epoch != 4 || next.VM.Desired != model.Running || next.DeleteVM {
				t.Errorf("the VM is %+v", next.VM)
			}
		})
	}
}

func TestARebootIsOneOrderAndHoldsNothing(t *testing.T) {
	op, vm := rebooting()
	op.Force = true
	orders := Orders(op, vm, 0)
	if len(orders) != 1 || orders[0].Action != ActReboot || orders[0].Node != "n1" || orders[0].Epoch != 4 || !orders[0].Force {
		t.Errorf("ordered %+v", orders)
	}
	if _, reserved := op.Reservation(); reserved {
		t.Error("it reserves room")
	}
	if op.Kind.Bound() == (Bound{}) || op.Kind.Level() != 3 || op.Kind.Brings() || op.Kind.Stops() {
		t.Errorf("bound %+v, level %d, brings %t, stops %t", op.Kind.Bound(), op.Kind.Level(), op.Kind.Brings(), op.Kind.Stops())
	}
}

func TestARebootDoesNotWaitForEver(t *testing.T) {
	op, vm := rebooting()
	if _, over := Overdue(op, vm, noon.Add(RebootPatience-time.Second)); over {
		t.Error("given up while the node may answer")
	}
	next, over := Overdue(op, vm, noon.Add(RebootPatience))
	said := next.Operation.Message
	if !over || next.Operation.Result != Failed || !strings.Contains(said, "node1 did not answer") || next.VM.Holder != "n1" {
		t.Errorf("overdue %t: %+v", over, next.Operation)
	}
	end, _, _ := drivenOff(op, vm, "n1")
	if end.Result != Failed || end.Message != "node1 is proven to be off" {
		t.Errorf("its node is off: %+v", end)
	}
}

// Whatever the node answers, and however often: a reboot ends, and the VM is where it was.
func TestARebootMovesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		op, vm := rebooting()
		op.Force = rapid.Bool().Draw(t, "force")
		before := vm
		before.Operation = ""
		for at := noon; op.Live(); at = at.Add(time.Minute) {
			if at.Sub(noon) > 2*RebootPatience {
				t.Fatalf("it still runs: %+v", op)
			}
			answer := Answer{
				Operation: op.ID, Node: rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "node"), Step: op.Step,
				Outcome: rapid.SampledFrom([]Outcome{OutcomeDone, OutcomeFailed, OutcomeRefused, OutcomeAmbiguous}).Draw(t, "outcome"),
				Code:    rapid.SampledFrom([]ErrorCode{NoError, StaleTerm, StaleEpoch, Journal, Ambiguous, TooLate}).Draw(t, "code"), Error: "why",
				Seen: Observation{State: rapid.SampledFrom([]model.DomainState{
					model.DomainRunning, model.DomainPaused, model.DomainAbsent, model.DomainUnknown,
				}).Draw(t, "state"), Epoch: 4},
			}
			next, moved := Step(op, vm, answer, at)
			if !moved {
				next, moved = Overdue(op, vm, at)
			}
			if moved {
				op, vm = next.Operation, next.VM
			}
			if next.DeleteVM {
				t.Fatal("the VM is to be forgotten")
			}
		}
		if vm.Holder != before.Holder || vm.Epoch != before.Epoch || vm.Desired != before.Desired || vm.Operation != "" {
			t.Fatalf("the VM was %+v, and is %+v", before, vm)
		}
	})
}
