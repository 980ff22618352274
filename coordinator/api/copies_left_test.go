package api

import (
	"slices"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// Copies that may be the last of a VM's disks are told of until somebody has decided, also when a start that failed has taken the condition
// that named them.
func TestCopiesOfDisksThatWereLeftAreTold(t *testing.T) {
	d := newRack(t)
	vm, _ := d.m.store.Snapshot().VMByName("web-1")
	vm.Holder, vm.Desired = "", model.Stopped
	vm.Copies = &model.DiskCopies{Operation: "op-7", Node: "gone", Whole: true}
	d.m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}}, VMs: []model.VM{vm},
	})
	const says = "volumes on gone may be the last copy of its disks, and go once it has run with its disks; 'berth operation resolve op-7 " +
		"--keep source' removes them, '--keep target' makes them its disks"
	shown, err := d.client.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web-1"}))
	if err != nil || shown.Msg.GetVm().GetCondition() != says {
		t.Errorf("%q, %v", shown.Msg.GetVm().GetCondition(), err)
	}
	status, err := d.client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil || !slices.Contains(status.Msg.GetProblems(), "VM web-1: "+says) {
		t.Errorf("%q, %v", status.Msg.GetProblems(), err)
	}
}
