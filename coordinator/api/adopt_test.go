package api

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/control/adoption"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestAdoptAndRelease(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	var asked adoption.AdoptVMs
	m.control.adopt = func(request adoption.AdoptVMs) ([]adoption.AdoptedVM, error) {
		asked = request
		return []adoption.AdoptedVM{
			{Name: "db", ID: "u1", Node: "hv1", Operation: operation.Operation{ID: "o1", Kind: operation.Adopt}, Note: "it stays"},
			{Name: "old", ID: "u2", Node: "hv1", Problem: "it is off", NextStep: "start it"},
		}, nil
	}
	answer, err := client.AdoptVMs(ctx, connect.NewRequest(&berthv1.AdoptVMsRequest{All: true, Node: "hv1", RequestId: "r1"}))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(adoption.AdoptVMs{All: true, Node: "n1", RequestID: "r1", Caller: "operator/alice"}, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
	if vms := answer.Msg.GetVms(); len(vms) != 2 || vms[0].GetOperation().GetId() != "o1" || vms[0].GetNote() == "" ||
		vms[1].GetOperation() != nil || vms[1].GetProblem() != "it is off" {
		t.Errorf("got %v", vms)
	}
	for _, wrong := range []*berthv1.AdoptVMsRequest{{}, {All: true, Domains: []string{"db"}}, {Domains: []string{""}}} {
		_, err := client.AdoptVMs(ctx, connect.NewRequest(wrong))
		wantRefusal(t, err, rpc.Invalid, "vm")
	}
	_, err = client.AdoptVMs(ctx, connect.NewRequest(&berthv1.AdoptVMsRequest{All: true, Vdc: "shop"}))
	wantRefusal(t, err, rpc.NotFound, "vdc/shop")

	m.addVM(model.VM{ID: "u1", Name: "db", Holder: "n1", Epoch: 1})
	m.control.act = func(request lifecycle.ActOnVM) (operation.Operation, error) {
		return operation.Operation{ID: "o2", Kind: request.Kind, VMName: request.VM, Caller: request.Caller}, nil
	}
	released, err := client.ReleaseVM(ctx, connect.NewRequest(&berthv1.ReleaseVMRequest{Vm: "db"}))
	if err != nil {
		t.Fatal(err)
	}
	if op := released.Msg.GetOperation(); op.GetKind() != "release" || op.GetVm() != "u1" || op.GetCaller() != "operator/alice" {
		t.Errorf("got %v", op)
	}
	_, err = client.ReleaseVM(ctx, connect.NewRequest(&berthv1.ReleaseVMRequest{Vm: "nobody"}))
	wantRefusal(t, err, rpc.NotFound, "vm/nobody")
}

func TestAParkedOperationIsShownWithBothSidesAndResolved(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	m.addNode("n1", "hv1")
	m.addNode("n2", "hv2")
	at := time.Now().UTC()
	m.addVM(model.VM{ID: "v1", Name: "web", Holder: "n1", Epoch: 3, Desired: model.Running, Operation: "o1"})
	m.update(operation.Operation{
		ID: "o1", Kind: operation.Migrate, VM: "v1", VMName: "web", Source: "n1", SourceName: "hv1", Target: "n2", TargetName: "hv2",
		Phase: operation.Judging, Result: operation.Parked, Message: "both nodes run it", CreatedAt: at, UpdatedAt: at,
	})
	session, err := m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
	m.cloud.check(err)
	session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30, HostUuid: "SAME"},
		Domains: []*berthv1.Domain{{
			Uuid: "v1", Name: "web", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, StateReason: "booted", Managed: true, Epoch: 3,
			JobActive: true,
		}},
	}}})
	got, err := client.GetOperation(ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: "o1"}))
	if err != nil {
		t.Fatal(err)
	}
	views := got.Msg.GetOperation().GetViews()
	if len(views) != 2 || views[0].GetNode() != "hv1" || views[0].GetState() != berthv1.DomainState_DOMAIN_STATE_RUNNING ||
		views[0].GetEpoch() != 3 ||
		!views[0].GetJobActive() || !views[0].GetHolder() || views[0].GetStateReason() != "booted" ||
		views[0].GetNodeState() != berthv1.NodeState_NODE_STATE_UP {
		t.Errorf("views %v", views)
	}
	// A node that is not heard does not show that it has nothing.
	if views[1].GetNode() != "hv2" || views[1].GetState() != berthv1.DomainState_DOMAIN_STATE_UNKNOWN || views[1].GetHolder() {
		t.Errorf("the silent one: %v", views[1])
	}
	other, err := m.inventory.OpenSession("n2", &berthv1.Hello{NodeId: "n2", Incarnation: "boot-1"}, 1)
	m.cloud.check(err)
	other.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30, HostUuid: "same"},
	}}})
	if got, err = client.GetOperation(ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: "o1"})); err != nil {
		t.Fatal(err)
	}
	if views = got.Msg.GetOperation().GetViews(); views[1].GetState() != berthv1.DomainState_DOMAIN_STATE_ABSENT {
		t.Errorf("one that has listed its domains: %v", views[1])
	}
	status, err := client.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(status.Msg.GetProblems(), "\n")
	for _, told := range []string{"'berth operation show o1'", "nodes hv1 and hv2 have the same host UUID same"} {
		if !strings.Contains(all, told) {
			t.Errorf("the problems lack %q:\n%s", told, all)
		}
	}

	m.control.resolve = func(request lifecycle.ResolveOperation) (operation.Operation, error) {
		return operation.Operation{ID: request.ID, Kind: operation.Migrate, Resolution: request.Keep, ResolvedBy: request.Caller}, nil
	}
	resolved, err := client.ResolveOperation(ctx, connect.NewRequest(&berthv1.ResolveOperationRequest{Id: "o1", Keep: "source"}))
	if err != nil || resolved.Msg.GetOperation().GetResolution() != "source" ||
		resolved.Msg.GetOperation().GetResolvedBy() != "operator/alice" {
		t.Errorf("got %v, %v", resolved, err)
	}
	_, err = client.ResolveOperation(ctx, connect.NewRequest(&berthv1.ResolveOperationRequest{Id: "o1", Keep: "both"}))
	wantRefusal(t, err, rpc.Invalid, "operation/o1")
}
