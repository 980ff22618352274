package api

import (
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// What the nodes show of a pool and what is promised of it, by what the records say.
func TestPools(t *testing.T) {
	c := newCloud(t, 1)
	lead := c.leader()
	lead.addNode("n1", "hv1")
	lead.addNode("n2", "hv2")
	session, err := lead.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot"}, 1)
	c.check(err)
	session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
		Node: &berthv1.NodeInventory{
			MemoryBytes: 1 << 30, Cpus: 16, DomainTypes: []string{"kvm"}, CollectedAt: timestamppb.Now(),
			StoragePools: []*berthv1.StoragePool{
				{Name: "vms", Active: true, CapacityBytes: 100 << 30, AvailableBytes: 60 << 30},
			},
		},
	}}})
	lead.declare(model.Resource{ID: "c1", Kind: model.KindCluster, Name: "other"})
	lead.declare(model.Resource{
		ID: "p1", Kind: model.KindPool, Name: "fast", Links: map[string]string{"cluster": model.DefaultCluster},
		Settings: map[string]string{model.SettingScope: "local", model.SettingPoolSource: "vms", model.SettingOverProvisioning: "1.5"},
	})
	lead.declare(model.Resource{
		ID: "p2", Kind: model.KindPool, Name: "nfs", Links: map[string]string{"cluster": "c1"},
		Settings: map[string]string{model.SettingScope: "shared"},
	})
	for _, kind := range []model.Kind{model.KindDisk, model.KindImage} {
		lead.declare(model.Resource{ID: "r-" + string(kind), Kind: kind, Name: "root", Volume: &model.Volume{
			Pool: "p1", Nodes: []string{"n1"}, Name: "v-" + string(kind), Format: "qcow2", Capacity: 5 * units.GiB,
		}})
	}
	client, ctx := lead.operator(), t.Context()
	list := func(in, pool string) []*berthv1.Pool {
		t.Helper()
		answer, err := client.ListPools(ctx, connect.NewRequest(&berthv1.ListPoolsRequest{Cluster: in, Pool: pool}))
		c.check(err)
		return answer.Msg.GetPools()
	}
	if all := list("", ""); len(all) != 2 || all[0].GetName() != "fast" || all[1].GetName() != "nfs" || all[1].GetCluster() != "other" {
		t.Fatalf("all pools are %v", all)
	}
	if some := list("other", ""); len(some) != 1 || some[0].GetName() != "nfs" {
		t.Errorf("the pools of one cluster are %v", some)
	}
	fast := list("", "fast")[0]
	if fast.GetDisks() != 1 || fast.GetImages() != 1 || fast.GetSource() != "vms" || fast.GetScope() != "local" || len(fast.GetShares()) != 2 {
		t.Fatalf("pool fast is %v", fast)
	}
	here, there := fast.GetShares()[0], fast.GetShares()[1]
	if here.GetNodes()[0] != "hv1" || here.GetCapacityBytes() != 100<<30 || here.GetAvailableBytes() != 60<<30 ||
		here.GetPromisedBytes() != 10<<30 || here.GetLimitBytes() != 150<<30 || here.GetDisks() != 1 {
		t.Errorf("on hv1 it is %v", here)
	}
	if len(there.GetNodes()) != 0 || len(there.GetMissing()) != 1 || there.GetMissing()[0] != "hv2: the node's pools could not be listed" {
		t.Errorf("on hv2 it is %v", there)
	}
	for _, r := range []*berthv1.ListPoolsRequest{{Pool: "slow"}, {Cluster: "none"}, {Cluster: "other", Pool: "fast"}} {
		_, err := client.ListPools(ctx, connect.NewRequest(r))
		wantRefusal(t, err, rpc.NotFound, "")
	}
}
