package estates

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// ListPools answers with the storage pools as they are now, by cluster and name.
func (s *VolumeCalls) ListPools(
	ctx context.Context, request *connect.Request[berthv1.ListPoolsRequest],
) (*connect.Response[berthv1.ListPoolsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.MaxList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	in, only := request.Msg.GetCluster(), request.Msg.GetPool()
	if in != "" {
		record, err := p.NamedResource(model.KindCluster, in)
		if err != nil {
			return nil, err
		}
		in = record.Name
	}
	if only != "" {
		record, err := p.NamedResource(model.KindPool, only)
		if err != nil {
			return nil, err
		}
		only = record.ID
	}
	var pools []view.PoolView
	for _, pool := range p.View().Pools() {
		if (in == "" || pool.Cluster == in) && (only == "" || pool.Record.ID == only) {
			pools = append(pools, pool)
		}
	}
	if only != "" && len(pools) == 0 {
		return nil, refusal.New(rpc.NotFound, "pool/"+request.Msg.GetPool(), "leave the cluster out, or see 'berth pool list'",
			"pool %q is not in cluster %q", request.Msg.GetPool(), in)
	}
	pools, next := answer.Cut(pools, page, answer.Ascending, func(pool view.PoolView) string {
		return answer.KeyOf(pool.Cluster, pool.Record.Name)
	})
	disks, images := inPools(p)
	response := &berthv1.ListPoolsResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, pool := range pools {
		message := wire.Pool(pool, p.NodeName)
		if pool.Settings.Scope == model.PoolShared {
			message.Locks = wire.PoolLocks(s.Control.PoolLocks(p.Snapshot, &pool.Record))
		}
		message.Disks, message.Images = disks[pool.Record.ID], images[pool.Record.ID]
		response.Pools = append(response.Pools, message)
	}
	return connect.NewResponse(response), nil
}

// inPools counts disks and images by the ID of the pool that they are in.
func inPools(p *answer.Moment) (disks, images map[string]int32) {
	count := func(kind model.Kind) map[string]int32 {
		found := make(map[string]int32)
		for _, r := range p.Resources(kind) {
			for volume := range r.Volumes() {
				found[volume.Pool]++
			}
		}
		return found
	}
	return count(model.KindDisk), count(model.KindImage)
}
