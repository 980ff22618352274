package api

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/key"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Bounds of one count. Each VM is a whole decision: capacityWork is how many nodes may be looked at in all, about a second's
// work.
const (
	defaultCapacity = 10_000
	maxCapacity     = 100_000
	capacityWork    = 50_000_000
)

// Capacity counts how many more VMs of a size fit, one placed after the other as they would be now.
func (s *queryCalls) Capacity(
	ctx context.Context, request *connect.Request[berthv1.CapacityRequest],
) (*connect.Response[berthv1.CapacityResponse], error) {
	message := request.Msg
	most, err := answer.Limited(message.GetMost(), defaultCapacity, maxCapacity)
	if err != nil {
		return nil, refusal.Invalid("", "leave it out, or give a number above 0", err)
	}
	vm := model.VM{Spec: model.VMSpec{Memory: units.Bytes(message.GetMemoryBytes()), VCPUs: int(message.GetVcpus())}}
	if err := model.ValidateSpec(vm.Spec); err != nil {
		return nil, refusal.Invalid("", "see 'berth capacity --help' for the ranges", err)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	resolved, err := whereabouts(p, vm, message.GetCluster(), message.GetVdc())
	if err != nil {
		return nil, err
	}
	policy, _, err := estate.PolicyOf(p, resolved.Record)
	if err != nil {
		return nil, err
	}
	engine, err := placement.NewEngine(policy)
	if err != nil {
		return nil, err
	}
	view := p.View()
	columns := view.Columns(resolved.Cluster)
	most = min(most, max(1, capacityWork/max(1, columns.Len())))
	found := engine.Capacity(columns, view.At, estate.Request(resolved, vm, placement.ForStart), most)
	response := &berthv1.CapacityResponse{
		SchemaVersion: wire.SchemaVersion, More: int32(found.Count), AtLeast: found.Cut, Cluster: resolved.Cluster,
		RunsOutOf: found.RunsOut, RunsOutFirst: found.Reason, Warnings: found.Warnings,
	}
	slices.SortFunc(found.Nodes, func(a, b placement.NodeCapacity) int { return cmp.Compare(a.Name, b.Name) })
	for _, node := range found.Nodes {
		response.Nodes = append(response.Nodes, &berthv1.CapacityNode{
			Node: node.Name, NodeId: node.Node, More: int32(node.Count),
			RunsOutOf: node.RunsOut.Constraint, Message: node.RunsOut.Message,
		})
	}
	return connect.NewResponse(response), nil
}

// whereabouts is what a VM would inherit in a VDC, or in none of a cluster.
func whereabouts(p *answer.Moment, vm model.VM, clusterRef, vdcRef string) (estate.Resolved, error) {
	if vdcRef != "" {
		vdc, err := p.NamedResource(model.KindVDC, vdcRef)
		if err != nil {
			return estate.Resolved{}, err
		}
		vm.VDC = vdc.ID
		if p.ClusterOf(&vm) == "" && clusterRef != "" {
			return estate.ResolveIn(p, vm, clusterRef)
		}
		resolved, err := estate.Resolve(p, vm)
		if err == nil && p.ClusterOf(&vm) == "" {
			return resolved, refusal.New(rpc.Invalid, "vdc/"+vdc.Name, "name one of its clusters with --cluster",
				"the VMs of VDC %q run in more than one cluster, and what fits is counted in one", vdc.Name)
		}
		if err == nil && clusterRef != "" && clusterRef != resolved.Cluster {
			err = refusal.New(rpc.Invalid, "vdc/"+vdc.Name, "leave out the cluster",
				"the VMs of VDC %q run in cluster %s, not in %s", vdc.Name, resolved.Cluster, clusterRef)
		}
		return resolved, err
	}
	record, err := p.NamedResource(model.KindCluster, cmp.Or(clusterRef, model.DefaultCluster))
	if err != nil {
		return estate.Resolved{}, err
	}
	resolved := estate.Resolved{Cluster: record.Name, Record: record}
	resolved.System, resolved.Customer = key.Compile([]key.Layer{{
		Level: key.LevelCluster, Resource: fmt.Sprintf("%s/%s", model.KindCluster, record.Name), Keys: record.Keys,
	}})
	return resolved, nil
}
