package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// A network that no node has is told at once: by who declares it, by who declares a VM with it, by who edits a document, and by who
// attaches it. The node of a guest that runs has to have it itself.
func TestANetworkThatNoNodeHasIsToldAtOnce(t *testing.T) {
	b := newActBench(t)
	show := func(node string, networks []*berthv1.Network, domains ...*berthv1.Domain) {
		session, err := b.m.inventory.OpenSession(node, &berthv1.Hello{NodeId: node, Incarnation: "boot-2"}, 1)
		b.m.cloud.check(err)
		session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 1 << 30, Networks: networks, Bridges: []string{"br0"}}, Domains: domains,
		}}})
	}
	show("n1", []*berthv1.Network{{Name: "default", Active: true}, {Name: "asleep"}}, &berthv1.Domain{
		Uuid: "v1", State: domainRuns, Managed: true, Epoch: 3, Devices: &berthv1.Devices{},
	})
	show("n2", []*berthv1.Network{{Name: "far", Active: true}})
	b.m.addVM(model.VM{ID: "v3", Name: "rest", Desired: model.Stopped, Spec: model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1}})
	client := b.m.operator()

	const asleep = "define it there and start it with `virsh net-start asleep`, or name another one"
	attach := func(vm, network string) *berthv1.ActedVM {
		return b.act(&berthv1.ActOnVMsRequest{Vms: []string{vm}, Action: &berthv1.ActOnVMsRequest_Attach{
			Attach: &berthv1.AttachAction{Device: &berthv1.AttachAction_Network{Network: network}},
		}})[0]
	}
	for _, network := range []string{"default", "far", "bridge:br0"} {
		if acted := attach("rest", network); acted.GetOperation() == nil {
			t.Errorf("%s: %v", network, acted)
		}
	}
	b.refused("asleep everywhere", attach("rest", "asleep"),
		"would not start with it: no node of its cluster has an active network asleep", asleep)
	b.refused("no bridge", attach("rest", "bridge:br9"), "has a bridge br9", "make the bridge br9 there")
	b.refused("on another node", attach("web", "far"),
		`VM "web" runs on node hv1, which does not have an active network far`, "virsh net-start far")
	if acted := attach("web", "default"); acted.GetOperation() == nil {
		t.Errorf("default: %v", acted)
	}

	declare := func(name string) []string {
		made, err := client.AddResource(t.Context(), connect.NewRequest(&berthv1.AddResourceRequest{
			Kind: string(model.KindNetwork), Name: name, Settings: map[string]string{"source": name},
		}))
		b.m.cloud.check(err)
		return made.Msg.GetWarnings()
	}
	if diff := cmp.Diff([]string{"no node has an active network asleep: " + asleep}, declare("asleep")); diff != "" {
		t.Error(diff)
	}
	if warnings := declare("far"); warnings != nil {
		t.Errorf("far: %q", warnings)
	}
	b.m.control.add = func(request lifecycle.AddVM) (lifecycle.Added, error) {
		return lifecycle.Added{VM: model.VM{ID: "v4", Name: request.Name, Spec: request.VM.Spec}}, nil
	}
	added, err := client.AddVM(t.Context(), connect.NewRequest(&berthv1.AddVMRequest{Name: "new", Vm: &berthv1.NewVM{
		Spec: &berthv1.VMSpec{MemoryBytes: 1 << 30, Vcpus: 1, Networks: []string{"asleep", "default"}},
	}}))
	b.m.cloud.check(err)
	if diff := cmp.Diff([]string{"no node of cluster default has an active network asleep: " + asleep}, added.Msg.GetWarnings()); diff != "" {
		t.Error(diff)
	}
	const document = "<domain type='kvm'><name>doc</name><memory unit='MiB'>64</memory><vcpu>1</vcpu><devices></devices></domain>"
	b.m.addVM(model.VM{ID: "v5", Name: "doc", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: document}})
	edited := strings.Replace(document, "</devices>", "<interface type='network'><mac address='52:54:00:00:00:05'/>"+
		"<source network='asleep'/></interface></devices>", 1)
	changed, err := client.SetVMDocument(t.Context(), connect.NewRequest(&berthv1.SetVMDocumentRequest{Vm: "doc", Xml: edited, DryRun: true}))
	b.m.cloud.check(err)
	if diff := cmp.Diff(added.Msg.GetWarnings(), changed.Msg.GetWarnings()); diff != "" {
		t.Error(diff)
	}
}
