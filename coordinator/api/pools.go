package api

import (
	"context"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// ListPools answers with the storage pools as they are now, by cluster and name.
func (s *Server) ListPools(
	ctx context.Context, request *connect.Request[berthv1.ListPoolsRequest],
) (*connect.Response[berthv1.ListPoolsResponse], error) {
	page, err := extentOf(request.Msg, maxList)
	if err != nil {
		return nil, err
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	in, only := request.Msg.GetCluster(), request.Msg.GetPool()
	if in != "" {
		record, err := p.resource(cluster.KindCluster, in)
		if err != nil {
			return nil, err
		}
		in = record.Name
	}
	if only != "" {
		record, err := p.resource(cluster.KindPool, only)
		if err != nil {
			return nil, err
		}
		only = record.ID
	}
	var pools []cluster.PoolView
	for _, pool := range p.view().Pools() {
		if (in == "" || pool.Cluster == in) && (only == "" || pool.Record.ID == only) {
			pools = append(pools, pool)
		}
	}
	if only != "" && len(pools) == 0 {
		return nil, refusal(rpc.NotFound, "pool/"+request.Msg.GetPool(), "leave the cluster out, or see 'berth pool list'",
			"pool %q is not in cluster %q", request.Msg.GetPool(), in)
	}
	pools, next := cut(pools, page, ascending, func(pool cluster.PoolView) string { return keyOf(pool.Cluster, pool.Record.Name) })
	disks, images := p.inPools()
	response := &berthv1.ListPoolsResponse{SchemaVersion: wire.SchemaVersion, NextPageToken: next}
	for _, pool := range pools {
		message := wire.Pool(pool, p.nodeName)
		message.Disks, message.Images = disks[pool.Record.ID], images[pool.Record.ID]
		response.Pools = append(response.Pools, message)
	}
	return connect.NewResponse(response), nil
}

// inPools counts disks and images by the ID of the pool that they are in.
func (p *picture) inPools() (disks, images map[string]int32) {
	count := func(kind cluster.Kind) map[string]int32 {
		found := make(map[string]int32)
		for _, r := range p.Resources(kind) {
			for volume := range r.Volumes() {
				found[volume.Pool]++
			}
		}
		return found
	}
	return count(cluster.KindDisk), count(cluster.KindImage)
}
