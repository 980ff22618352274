package wire

import (
	"testing"
	"time"

	"berth/coordinator/control/plans"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/view"
)

func TestPoolIsWhole(t *testing.T) {
	message := Pool(view.PoolView{
		Record: model.Resource{ID: "p1", Kind: model.KindPool, Name: "fast"}, Cluster: "prod",
		Settings: model.PoolSettings{Scope: model.PoolLocal, Source: "default", OverProvisioning: 2, HAWithoutLock: true},
		Shares: []view.PoolShare{{
			Nodes: []string{"n1"}, Missing: []view.PoolLacks{{Node: "n2", Has: view.HasInactive}},
			Capacity: 4, Available: 3, Promised: 2, Limit: 8, Disks: 1, Images: 1,
		}},
	}, func(node string) string { return "name-" + node })
	message.Disks, message.Images = 1, 1 // counted by the server, over all shares
	message.Locks = PoolLocks(evidence.Locks{
		Verdict: evidence.LocksStay, Why: "x", Tried: 1, Nodes: 2, At: time.Unix(1, 0), Sides: [][]string{{"a"}, {"b"}},
	})
	whole(t, message)
	whole(t, message.GetLocks())
	share := message.GetShares()[0]
	if share.GetNodes()[0] != "name-n1" || share.GetMissing()[0] != "name-n2: the pool is not active there" {
		t.Errorf("shown %v", share)
	}
	if share.GetCapacityBytes() != 4 || share.GetAvailableBytes() != 3 || share.GetPromisedBytes() != 2 || share.GetLimitBytes() != 8 {
		t.Errorf("shown %v", share)
	}
}

func TestSpreadIsWhole(t *testing.T) {
	level := func(n int) plans.SpreadLevel {
		return plans.SpreadLevel{Used: n, Total: n + 1, Most: n + 2, Least: n + 3}
	}
	message := Spread("acme", plans.Spread{VMs: 9, Zones: level(10), Pods: level(20), Clusters: level(30), Nodes: level(40)})
	whole(t, message)
	if l := message.GetClusters(); l.GetUsed() != 30 || l.GetTotal() != 31 || l.GetMost() != 32 || l.GetLeast() != 33 {
		t.Errorf("shown %v", message)
	}
}
