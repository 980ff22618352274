package api

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/api/webhooks"
	"berth/coordinator/control/adoption"
	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/control/volumes"
	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/coordinator/webhook"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// untraced are the procedures of operators that write and leave nothing in the history, with the reason.
var untraced = map[string]string{
	"RenewCertificate": "nobody may do anything after it that he might not before: the same key, name and rights",
	"TestWebhook":      "it changes nothing that is stored",
}

// tracer has root call one procedure after the other.
type tracer struct {
	*declarer
	root  berthv1connect.BerthServiceClient
	asked string // the caller that control was told last; empty: it was not asked
	seen  []string
}

// told notes of a request to control whose it is, and refuses it: what control writes down is control's.
func (r *tracer) told(request any) error {
	r.asked = reflect.ValueOf(request).FieldByName("Caller").String()
	return &lead.Error{Code: lead.Conflict, Subject: "cluster", Message: "this is enough", NextStep: "look at the caller"}
}

// own counts the events that name root, and the ID of its identity.
func (r *tracer) own() (n int) {
	for _, event := range r.m.store.Snapshot().Events(0) {
		if event.Caller == "operator/root" && event.CallerID == "id-root" {
			n++
		}
	}
	return n
}

// traced calls a procedure. It fails unless the history has an event of it that names the caller, or control was told whose call it is.
func traced[Q, A any](
	r *tracer, procedure string, call func(context.Context, *connect.Request[Q]) (*connect.Response[A], error), q *Q,
) *A {
	r.t.Helper()
	r.seen = append(r.seen, procedure)
	r.asked, r.m.control.cancelled = "", ""
	before := r.own()
	answer, err := call(r.t.Context(), connect.NewRequest(q))
	if _, by, found := strings.Cut(r.m.control.cancelled, " by "); found {
		r.asked = by
	}
	switch {
	case r.asked == "operator/root":
	case r.asked != "":
		r.t.Errorf("%s: control is told that %q calls", procedure, r.asked)
	case err != nil:
		r.t.Errorf("%s: %v", procedure, err)
	case r.own() == before:
		r.t.Errorf("%s leaves no event that names its caller", procedure)
	}
	if err != nil {
		return new(A)
	}
	return answer.Msg
}

// listen has control note who calls.
func (r *tracer) listen() {
	c := r.m.control
	c.add = func(q lifecycle.AddVM) (a lifecycle.Added, err error) { return a, r.told(q) }
	c.start = func(q lifecycle.StartVM) (a lifecycle.Started, err error) { return a, r.told(q) }
	c.act = func(q lifecycle.ActOnVM) (a operation.Operation, err error) { return a, r.told(q) }
	c.migrate = func(q lifecycle.MigrateVM) (a lifecycle.Migration, err error) { return a, r.told(q) }
	c.batch = func(q lifecycle.StartVMs) ([]lifecycle.StartedVM, error) { return nil, r.told(q) }
	c.drain = func(q plans.DrainNode) (a plans.Drained, err error) { return a, r.told(q) }
	c.undrain = func(q plans.UndrainNode) (a model.Plan, err error) { return a, r.told(q) }
	c.propose = func(q plans.ProposePlan) (a model.Plan, err error) { return a, r.told(q) }
	c.ended = func(_ string, q any) (a model.Plan, err error) { return a, r.told(q) }
	c.deleteVM = func(q lifecycle.DeleteVM) (a operation.Operation, err error) { return a, r.told(q) }
	c.growDisk = func(q volumes.GrowDisk) (a model.Resource, err error) { return a, r.told(q) }
	c.fence = func(q fencing.FenceNode) (a model.Node, err error) { return a, r.told(q) }
	c.adopt = func(q adoption.AdoptVMs) ([]adoption.AdoptedVM, error) { return nil, r.told(q) }
	c.resolve = func(q lifecycle.ResolveOperation) (a operation.Operation, err error) { return a, r.told(q) }
}

// An operator does nothing without a trace: each of its procedures that changes something leaves an event with its name and its identity's
// ID, or hands both on to control with the order. One that is new, and is not tried here, fails.
func TestNoOperatorChangesAnythingWithoutATrace(t *testing.T) {
	r := &tracer{declarer: newRack(t)}
	r.root = r.m.permitted("root", guard.All)
	r.listen()
	r.nodesAndResources()
	r.guests()
	r.operationsAndPlans()
	r.sending()
	r.people()
	rpc.RangeMethods(func(procedure string, _ protoreflect.MethodDescriptor) {
		name, is := strings.CutPrefix(procedure, "/"+berthv1connect.BerthServiceName+"/")
		traits := rpc.TraitsOf(procedure)
		if !is || traits.Class() != berthv1.Class_CLASS_WRITE || !traits.MayCall(pki.RoleOperator) {
			return
		}
		if tried := slices.Contains(r.seen, name); tried == (untraced[name] != "") {
			t.Errorf("%s changes something: tried %t, reason for no trace %q", name, tried, untraced[name])
		}
	})
}

func (r *tracer) nodesAndResources() {
	traced(r, "SetNode", r.root.SetNode, &berthv1.SetNodeRequest{Node: "hv1", Labels: &berthv1.Names{Names: []string{"fast"}}})
	traced(r, "SetNodeMaintenance", r.root.SetNodeMaintenance, &berthv1.SetNodeMaintenanceRequest{Node: "hv3", On: true, Reason: "fans"})
	traced(r, "FenceNode", r.root.FenceNode, &berthv1.FenceNodeRequest{Node: "hv1", ConfirmedOff: true})
	traced(r, "PauseHA", r.root.PauseHA, &berthv1.PauseHARequest{On: true, Reason: "network"})
	traced(r, "RemoveNode", r.root.RemoveNode, &berthv1.RemoveNodeRequest{Node: "hv3"})
	traced(r, "AddResource", r.root.AddResource, &berthv1.AddResourceRequest{Kind: "customer", Name: "other"})
	traced(r, "ChangeResource", r.root.ChangeResource, &berthv1.ChangeResourceRequest{
		Kind: "cluster", Name: "west", Settings: map[string]string{model.SettingSpareNodes: "1"},
	})
	traced(r, "DeleteResource", r.root.DeleteResource, &berthv1.DeleteResourceRequest{Kind: "customer", Name: "other"})
	traced(r, "SetKey", r.root.SetKey, &berthv1.SetKeyRequest{
		Kind: "vdc", Name: "out", Key: &berthv1.Key{Class: "system", Name: "TIER", Value: 1, Weight: 5},
	})
	traced(r, "UnsetKey", r.root.UnsetKey, &berthv1.UnsetKeyRequest{Kind: "vdc", Name: "out", Class: "system", Key: "TIER"})
	traced(r, "DeclareNodeKey", r.root.DeclareNodeKey, &berthv1.DeclareNodeKeyRequest{Cluster: "west", Key: &berthv1.NodeKey{Name: "Premium"}})
	traced(r, "DropNodeKey", r.root.DropNodeKey, &berthv1.DropNodeKeyRequest{Cluster: "west", Key: "Premium"})
	traced(r, "ApplyEstate", r.root.ApplyEstate, &berthv1.ApplyEstateRequest{
		Document: []byte("format: berth/estate/v1\ncustomers:\n  - {name: applied}\n"), File: "estate.yaml",
	})
	group := &berthv1.Group{Name: "g", Vms: []string{"web-1"}, Hosts: []string{"hv1"}, HostsRule: ruled(true, false)}
	traced(r, "CreateGroup", r.root.CreateGroup, &berthv1.CreateGroupRequest{Group: group})
	traced(r, "ChangeGroup", r.root.ChangeGroup, &berthv1.ChangeGroupRequest{Group: "g", AddVms: []string{"web-2"}})
	traced(r, "DeleteGroup", r.root.DeleteGroup, &berthv1.DeleteGroupRequest{Group: "g"})
	r.add("disk", "data", nil, map[string]string{"path": "/srv/data.qcow2", "format": "qcow2"})
	traced(r, "GrowDisk", r.root.GrowDisk, &berthv1.GrowDiskRequest{Disk: "data", SizeBytes: 2 << 30})
}

func (r *tracer) guests() {
	attached := model.DeviceEdit{
		Kind: "disk", Key: "vdb", Is: "/srv/more.qcow2", Source: model.DiskSource{Path: "/srv/more.qcow2"}, XML: "<disk/>",
	}
	for i, name := range []string{"kept", "reverted"} {
		r.m.addVM(model.VM{
			ID: fmt.Sprint("d", i), Name: name, Desired: model.Stopped, LastNode: "n1", Epoch: 3,
			Drift: &model.Drift{Node: "n1", Edits: []model.DeviceEdit{attached}},
		})
	}
	r.m.addVM(model.VM{ID: "w", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	made := &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: 1 << 30, Vcpus: 1}}
	traced(r, "AddVM", r.root.AddVM, &berthv1.AddVMRequest{Name: "new", Vm: made})
	traced(r, "ChangeVM", r.root.ChangeVM, &berthv1.ChangeVMRequest{Vm: "idle", Change: &berthv1.VMChange{Description: new("front")}})
	traced(r, "StartVM", r.root.StartVM, &berthv1.StartVMRequest{Name: "new", Vm: made})
	traced(r, "StopVM", r.root.StopVM, &berthv1.StopVMRequest{Vm: "web-1"})
	traced(r, "RebootVM", r.root.RebootVM, &berthv1.RebootVMRequest{Vm: "web-1"})
	traced(r, "ActOnVMs", r.root.ActOnVMs, &berthv1.ActOnVMsRequest{
		Vms: []string{"web-1"}, Action: &berthv1.ActOnVMsRequest_Pause{Pause: &berthv1.PauseAction{}},
	})
	traced(r, "MigrateVM", r.root.MigrateVM, &berthv1.MigrateVMRequest{Vm: "web-1"})
	traced(r, "DeleteVM", r.root.DeleteVM, &berthv1.DeleteVMRequest{Vm: "idle"})
	traced(r, "AdoptVMs", r.root.AdoptVMs, &berthv1.AdoptVMsRequest{Domains: []string{"strange"}, Node: "hv1"})
	traced(r, "ReleaseVM", r.root.ReleaseVM, &berthv1.ReleaseVMRequest{Vm: "web-1"})
	traced(r, "AcceptDrift", r.root.AcceptDrift, &berthv1.AcceptDriftRequest{Vm: "kept"})
	traced(r, "RevertDrift", r.root.RevertDrift, &berthv1.RevertDriftRequest{Vm: "reverted"})
	traced(r, "SetVMDocument", r.root.SetVMDocument, &berthv1.SetVMDocumentRequest{
		Vm: "web", Xml: strings.Replace(someDocument, "<devices/>", "<title>front</title><devices/>", 1),
	})
	traced(r, "StartVMs", r.root.StartVMs, &berthv1.StartVMsRequest{Vms: []string{"kept"}})
}

func (r *tracer) operationsAndPlans() {
	r.m.begin(operation.Operation{ID: "o1", Kind: operation.Migrate, VM: "moving", VMName: "moving", Source: "n1", Target: "n2"})
	r.m.keepPlan(aDrain("p1", r.m.now()))
	traced(r, "CancelOperation", r.root.CancelOperation, &berthv1.CancelOperationRequest{Id: "o1"})
	traced(r, "ResolveOperation", r.root.ResolveOperation, &berthv1.ResolveOperationRequest{Id: "o1", Keep: "source"})
	traced(r, "DrainNode", r.root.DrainNode, &berthv1.DrainNodeRequest{Node: "hv1"})
	traced(r, "UndrainNode", r.root.UndrainNode, &berthv1.UndrainNodeRequest{Node: "hv1"})
	traced(r, "ProposePlan", r.root.ProposePlan, &berthv1.ProposePlanRequest{Cluster: "default"})
	traced(r, "ApplyPlan", r.root.ApplyPlan, &berthv1.ApplyPlanRequest{Id: "p1"})
	traced(r, "DiscardPlan", r.root.DiscardPlan, &berthv1.DiscardPlanRequest{Id: "p1"})
	traced(r, "CancelPlan", r.root.CancelPlan, &berthv1.CancelPlanRequest{Id: "p1"})
}

// sending adds a webhook that has given something up.
func (r *tracer) sending() {
	r.m.api.WebhookCalls.Config = webhooks.Config{
		Sender: &fakeSender{}, Keys: func() (seal.Keys, error) { return seal.Keys{{7}}, nil },
	}
	traced(r, "AddWebhook", r.root.AddWebhook, &berthv1.AddWebhookRequest{
		Name: "tickets", Url: "https://example.com/in", Secret: webhook.SecretText([]byte("thirty-two bytes that are secret")),
	})
	x := r.m.store.Snapshot()
	hook, progress, _ := webhook.Of(x, "tickets")
	progress.Dead = []webhook.Dead{{Place: history.Place{Index: 3}, ID: "msg_3", Reason: "it answered 422"}}
	command := state.Command{Kind: "test"}
	r.m.cloud.check(webhook.Put(x, &command, &hook, &progress))
	r.m.propose(command)
	traced(r, "RetryDeliveries", r.root.RetryDeliveries, &berthv1.RetryDeliveriesRequest{Name: "tickets", Ids: []string{"msg_3"}})
	traced(r, "DeleteWebhook", r.root.DeleteWebhook, &berthv1.DeleteWebhookRequest{Name: "tickets"})
}

func (r *tracer) people() {
	r.m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Members, ID: "m9"}}, Members: []model.Member{{ID: "m9", Name: "c9"}},
	})
	r.m.permitted("bob", guard.None)
	r.m.permitted("carol", guard.None)
	r.m.cameBack("carol")
	traced(r, "SetIdentity", r.root.SetIdentity, &berthv1.SetIdentityRequest{Identity: "operator/bob", Permit: "host-paths"})
	traced(r, "ConfirmIdentity", r.root.ConfirmIdentity, &berthv1.ConfirmIdentityRequest{Identity: "operator/carol"})
	traced(r, "RevokeIdentity", r.root.RevokeIdentity, &berthv1.RevokeIdentityRequest{Identity: "operator/bob", Reason: "left"})
	traced(r, "CreateToken", r.root.CreateToken, &berthv1.CreateTokenRequest{Purpose: pki.PurposeAgent, Name: "hv7"})
	tokens, err := r.root.ListTokens(r.t.Context(), connect.NewRequest(&berthv1.ListTokensRequest{}))
	r.m.cloud.check(err)
	traced(r, "RevokeToken", r.root.RevokeToken, &berthv1.RevokeTokenRequest{Id: tokens.Msg.GetTokens()[0].GetId()})
	traced(r, "OfferSession", r.root.OfferSession, &berthv1.OfferSessionRequest{})
	sessions, err := r.root.ListSessions(r.t.Context(), connect.NewRequest(&berthv1.ListSessionsRequest{}))
	r.m.cloud.check(err)
	traced(r, "RevokeSession", r.root.RevokeSession, &berthv1.RevokeSessionRequest{Id: sessions.Msg.GetSessions()[0].GetId()})
	traced(r, "RemoveMember", r.root.RemoveMember, &berthv1.RemoveMemberRequest{Member: "c9"})
	c := r.m.cloud
	r.m.beginRecords(c.bearer(c.certify(r.t.TempDir(), pki.RoleOperator, "op9", "founder")))
	traced(r, "RotateAuthority", r.root.RotateAuthority, &berthv1.RotateAuthorityRequest{})
}
