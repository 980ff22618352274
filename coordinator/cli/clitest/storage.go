package clitest

import (
	"time"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// storageFake answers about pools, images and disks.
type storageFake struct {
	listPools     func(*berthv1.ListPoolsRequest) (*berthv1.ListPoolsResponse, error)
	growDisk      func(*berthv1.GrowDiskRequest) (*berthv1.GrowDiskResponse, error)
	OnImportImage func(start *berthv1.ImportImageStart, file []byte) (*berthv1.ImportImageResponse, error)
}

func (f *storageFake) listen(l listener) {
	unary(l, berthv1connect.BerthServiceListPoolsProcedure, &f.listPools)
	unary(l, berthv1connect.BerthServiceGrowDiskProcedure, &f.growDisk)
	upload(
		l, berthv1connect.BerthServiceImportImageProcedure, func(sent []*berthv1.ImportImageRequest) (*berthv1.ImportImageResponse, error) {
			start := sent[0].GetStart()
			l.record(start)
			var file []byte
			for _, part := range sent[1:] {
				file = append(file, part.GetData()...)
			}
			return f.OnImportImage(start, file)
		},
	)
}

func cannedStorageAnswers() storageFake {
	return storageFake{
		listPools: func(r *berthv1.ListPoolsRequest) (*berthv1.ListPoolsResponse, error) {
			answer := &berthv1.ListPoolsResponse{SchemaVersion: "1"}
			for _, pool := range cannedPools() {
				if r.GetPool() == "" || r.GetPool() == pool.GetName() {
					answer.Pools = append(answer.Pools, pool)
				}
			}
			return answer, nil
		},
		growDisk: func(r *berthv1.GrowDiskRequest) (*berthv1.GrowDiskResponse, error) {
			return &berthv1.GrowDiskResponse{SchemaVersion: "1", Disk: &berthv1.Resource{Kind: "disk", Name: r.GetDisk()}}, nil
		},
		OnImportImage: func(start *berthv1.ImportImageStart, _ []byte) (*berthv1.ImportImageResponse, error) {
			return &berthv1.ImportImageResponse{SchemaVersion: "1", Image: &berthv1.Resource{
				Kind: "image", Name: start.GetName(), Volume: &berthv1.ResourceVolume{
					Pool: start.GetPool(), Name: "berth-i1.qcow2", Format: start.GetFormat(), CapacityBytes: Gib, Sha256: start.GetSha256(),
				},
			}}, nil
		},
	}
}

// cannedPools are a local one that a node lacks, and a shared one.
func cannedPools() []*berthv1.Pool {
	return []*berthv1.Pool{
		{
			Name: "fast", Cluster: "default", Scope: "local", Source: "default", OverProvisioning: 2, Disks: 3, Images: 1,
			Shares: []*berthv1.PoolShare{
				{
					Nodes: []string{"node1"}, CapacityBytes: 100 * Gib, AvailableBytes: 80 * Gib, PromisedBytes: 45 * Gib, LimitBytes: 200 * Gib,
					Disks: 2,
				},
				{Nodes: []string{"node2"}, CapacityBytes: 50 * Gib, AvailableBytes: 49 * Gib, PromisedBytes: 25 * Gib, LimitBytes: 100 * Gib, Disks: 1},
				{Missing: []string{"node3: the pool is not active there"}},
			},
		},
		{
			Name: "nfs", Cluster: "prod", Scope: "shared", Source: "nfs", OverProvisioning: 1,
			Shares: []*berthv1.PoolShare{{
				Nodes: []string{"node4", "node5"}, CapacityBytes: 4096 * Gib, AvailableBytes: 4000 * Gib, LimitBytes: 4096 * Gib,
			}},
			Locks: &berthv1.PoolLocks{
				Verdict: berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_STAY, Why: "node5 did not see that node4 had locked a file there",
				TriedAt: Ago(5 * time.Minute), Tried: 2, Nodes: 2,
			},
		},
		{
			Name: "san", Cluster: "prod", Scope: "shared", Source: "san", OverProvisioning: 1,
			Shares: []*berthv1.PoolShare{{
				Nodes: []string{"node4", "node5", "node6"}, CapacityBytes: 50 * Gib, AvailableBytes: 40 * Gib, LimitBytes: 50 * Gib,
			}},
			Locks: &berthv1.PoolLocks{
				Verdict: berthv1.PoolLocksVerdict_POOL_LOCKS_VERDICT_NOT_SHARED, Why: "node6 did not see a file that node5 had made there",
				TriedAt: Ago(5 * time.Minute), Tried: 3, Nodes: 3,
				Sides: []*berthv1.PoolSide{{Nodes: []string{"node4", "node5"}}, {Nodes: []string{"node6"}}},
			},
		},
	}
}
