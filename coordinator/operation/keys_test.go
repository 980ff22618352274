package operation

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
)

var (
	stickyOld = []model.Key{{Class: model.SystemKey, Name: "DS", Value: 1, Weight: 30}}
	stickyNew = []model.Key{{Class: model.SystemKey, Name: "DS", Value: 2, Weight: 30}}
	resident  = []model.ResidentKey{{Class: model.CustomerKey, Name: "Group", Value: 1}}
)

// placed is the start of a VM that ran before, on its way to a node with these sticky keys.
func placed(sticky []model.Key) (Operation, model.VM) {
	vm := model.VM{ID: "vm-id", Name: "web1", Operation: "op", LastEpoch: 3, Sticky: stickyOld}
	op := Operation{ID: "op", Kind: Start, VM: vm.ID}
	next := Place(op, vm, Target{
		Node: "n1", Name: "node1", Sticky: sticky, Resident: resident, Owner: model.Owner{Customer: "acme"},
		Spec: &model.VMSpec{VCPUs: 3}, MakesHome: true,
	}, noon)
	return next.Operation, next.VM
}

func TestAStartThatSucceedsReplacesTheCopiesOfStickyKeys(t *testing.T) {
	for name, sticky := range map[string][]model.Key{"by others": stickyNew, "by none": nil} {
		op, vm := placed(sticky)
		if diff := cmp.Diff(stickyOld, vm.Sticky); diff != "" {
			t.Errorf("%s: replaced before it ran:\n%s", name, diff)
		}
		next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: op.Epoch}})
		if diff := cmp.Diff(sticky, next.VM.Sticky); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if next.VM.Home != "n1" || next.Operation.Spec != nil {
			t.Errorf("%s: home %q, spec %v; want n1 and none", name, next.VM.Home, next.Operation.Spec)
		}
	}
}

func TestAStartThatFailsLeavesTheCopiesAndNoHome(t *testing.T) {
	op, vm := placed(stickyNew)
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeFailed, Code: "invalid_xml", Error: "no"})
	if diff := cmp.Diff(stickyOld, next.VM.Sticky); diff != "" || next.VM.Home != "" || next.Operation.Result != Failed {
		t.Errorf("home %q, copies:\n%s", next.VM.Home, diff)
	}
}

func TestResidentsAreThoseOfTheStartUntilTheNext(t *testing.T) {
	op, vm := placed(nil)
	check := func(when string, vm model.VM) {
		t.Helper()
		if !cmp.Equal(vm.Resident, resident) || vm.Owner.Customer != "acme" {
			t.Errorf("%s: residents %+v of %+v", when, vm.Resident, vm.Owner)
		}
	}
	check("at the decision", vm)
	next := mustStep(t, op, vm, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: op.Epoch}})
	check("running", next.VM)

	move := Operation{ID: "move", Kind: Migrate, VM: vm.ID, Source: "n1", Target: "n2", Epoch: 9, SourceEpoch: 4, Phase: Copying, Step: 1}
	next = mustStep(t, move, next.VM, Answer{Node: "n1", Outcome: OutcomeDone, Seen: Observation{State: model.DomainAbsent}})
	next = mustStep(
		t, next.Operation, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainRunning, Epoch: 9}},
	)
	check("after a migration", next.VM)

	stop := Operation{ID: "stop", Kind: Stop, VM: vm.ID, Source: "n2", Phase: Dispatched, Step: 1}
	next = mustStep(t, stop, next.VM, Answer{Node: "n2", Outcome: OutcomeDone, Seen: Observation{State: model.DomainShutoff}})
	check("stopped", next.VM)
	if next.VM.Holder != "" {
		t.Error("stopped, and yet held: its residents would count")
	}
}

func TestTheOrderOfAStartTellsWhatTheDecisionResolved(t *testing.T) {
	op, vm := placed(nil)
	if orders := Orders(op, vm, 1); orders[0].Spec.VCPUs != 3 {
		t.Errorf("ordered %+v", orders[0].Spec)
	}
	vm.Spec.VCPUs, op.Spec = 2, nil
	if orders := Orders(op, vm, 1); orders[0].Spec.VCPUs != 2 {
		t.Errorf("ordered %+v without a resolved one", orders[0].Spec)
	}
}
