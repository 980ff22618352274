package operation

import (
	"strings"
	"testing"

	"berth/coordinator/model"
	"berth/shared/units"
)

// While it goes on the node has to have room for the larger size, and no VM is charged as one that is not there yet.
func TestWhatAChangeOfTheSizeComesTo(t *testing.T) {
	op, vm := standingVM(Resize)
	vm.Spec, vm.RanSize = model.VMSpec{Memory: 4 * units.GiB, VCPUs: 4}, model.Size{Memory: 2 * units.GiB, VCPUs: 2}
	op.Size, op.Memory, op.VCPUs, op.Caller = model.Size{Memory: units.GiB}, 2*units.GiB, 2, "operator/alice"
	orders := Orders(op, vm, 0)
	if len(orders) != 1 || orders[0].Action != ActResize || orders[0].Epoch != 4 || orders[0].Size != op.Size {
		t.Errorf("ordered %+v", orders)
	}
	held, holds := op.Reservation()
	if !holds || held.Node != "n1" || held.Memory != 2*units.GiB || held.VCPUs != 2 || !held.There {
		t.Errorf("it holds %+v, %t", held, holds)
	}
	if _, moved := Step(op, vm, Answer{Node: "n1", Step: op.Step, Outcome: OutcomeAmbiguous}, noon); moved {
		t.Error("an answer in doubt led to something")
	}
	failed := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeRefused, Error: "at most 2 GiB"})
	if failed.Operation.Result != Failed || !strings.Contains(failed.Operation.Message, "at most 2 GiB; without --now") ||
		failed.VM.Spec.Memory != 4*units.GiB || failed.VM.RanSize != vm.RanSize {
		t.Errorf("refused: %+v, %+v", failed.Operation, failed.VM)
	}
	done := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Note: "so far", Seen: shows(model.DomainRunning, 4)})
	is := done.VM
	if done.Operation.Result != Done || done.Operation.Message != "so far" || is.Spec.Memory != units.GiB || is.Spec.VCPUs != 4 ||
		is.RanSize != (model.Size{Memory: units.GiB, VCPUs: 2}) || !is.Ballooned {
		t.Errorf("done: %+v, %+v", done.Operation, is)
	}
	if by := is.ChangedLive(); len(by) != 1 || by[0].Field != model.MemoryField || by[0].By != "operator/alice" {
		t.Errorf("changed by %+v", by)
	}
	late, over := Overdue(op, vm, noon.Add(ResizePatience))
	if !over || !strings.Contains(late.Operation.Message, "node1 did not answer for certain") {
		t.Errorf("overdue %t: %+v", over, late.Operation)
	}
	if _, holds := done.Operation.Reservation(); holds {
		t.Error("it holds room when it is done")
	}
}

// The document of a VM that has one says the same as its record.
func TestTheDocumentHasTheSizeThatAGuestWasGiven(t *testing.T) {
	op, vm := standingVM(Resize)
	vm.Spec = model.VMSpec{
		Memory: 2 * units.GiB, VCPUs: 4,
		XML: "<domain type='kvm'><memory unit='GiB'>2</memory><vcpu current='1'>4</vcpu><name>web</name></domain>",
	}
	op.Size = model.Size{Memory: units.GiB, VCPUs: 2}
	is := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: shows(model.DomainRunning, 4)}).VM
	const want = "<memory unit='KiB'>1048576</memory><vcpu current='2'>4</vcpu>"
	if !strings.Contains(is.Spec.XML, want) || is.Spec.VCPUs != 2 || is.NextSize() != is.SizeOn(nil) {
		t.Errorf("it has %s, %+v", is.Spec.XML, is.NextSize())
	}
}
