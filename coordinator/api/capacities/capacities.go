// Package capacities has the call about how many more VMs fit.
package capacities

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
	"berth/coordinator/view"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// CapacityCalls are those about room for VMs.
type CapacityCalls struct{ *answer.Source }

// Bounds of one count. Each VM is a whole decision: capacityWork is how many nodes may be looked at in all, about a second's
// work.
const (
	defaultCapacity = 10_000
	maxCapacity     = 100_000
	capacityWork    = 50_000_000
	maxAdded        = 1000 // nodes
	maxAddedMemory  = 64 * units.TiB
)

// Capacity counts how many more VMs of a size fit, one placed after the other as they would be now.
func (s *CapacityCalls) Capacity(
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
	now := p.View()
	count := func(columns *view.Columns) placement.Capacity {
		bound := min(most, max(1, capacityWork/max(1, columns.Len())))
		return engine.Capacity(columns, now.At, estate.Request(resolved, vm, placement.ForStart), bound)
	}
	found := count(now.Columns(resolved.Cluster))
	response := &berthv1.CapacityResponse{SchemaVersion: wire.SchemaVersion, Cluster: resolved.Cluster}
	if message.GetAddNodes() != 0 {
		columns, what, err := grown(p, resolved.Cluster, message)
		if err != nil {
			return nil, err
		}
		if response.Added = what; !found.Cut {
			response.Without = new(int32(found.Count))
		}
		found = count(columns)
	}
	response.More, response.AtLeast = int32(found.Count), found.Cut
	response.RunsOutOf, response.RunsOutFirst, response.Warnings = found.RunsOut, found.Reason, found.Warnings
	slices.SortFunc(found.Nodes, func(a, b placement.NodeCapacity) int { return cmp.Compare(a.Name, b.Name) })
	for _, node := range found.Nodes {
		one := &berthv1.CapacityNode{
			Node: node.Name, NodeId: node.Node, More: int32(node.Count),
			RunsOutOf: node.RunsOut.Constraint, Message: node.RunsOut.Message, Added: view.Added(node.Node),
		}
		if one.GetAdded() {
			one.NodeId = ""
		}
		response.Nodes = append(response.Nodes, one)
	}
	return connect.NewResponse(response), nil
}

// grown are the columns of a cluster with the nodes that are to be added, and what each of those has.
func grown(p *answer.Moment, cluster string, message *berthv1.CapacityRequest) (*view.Columns, string, error) {
	count, memory := message.GetAddNodes(), units.Bytes(message.GetAddMemoryBytes())
	switch {
	case count < 0 || count > maxAdded:
		return nil, "", refusal.New(rpc.Invalid, "", "give a number in this range", "%d nodes to add: want 1 to %d", count, maxAdded)
	case memory < 0 || memory > maxAddedMemory:
		return nil, "", refusal.New(rpc.Invalid, "", "give a size in this range", "memory of an added node: want more than 0, and at most %s",
			maxAddedMemory)
	}
	like, err := pattern(p, cluster, message.GetAddLike())
	if err != nil {
		return nil, "", err
	}
	memory = cmp.Or(memory, like.Facts.Memory)
	return p.View().Grown(cluster, like, int(count), memory), fmt.Sprintf(
		"as %s is without its VMs: %d CPUs, %s of memory, no labels", like.Node.Name, like.Facts.CPUs, memory), nil
}

// pattern is the node that added ones are like: the one that is named, or the first of the cluster that is up.
func pattern(p *answer.Moment, cluster, ref string) (*view.NodeView, error) {
	if ref != "" {
		named, err := p.NamedNode(ref)
		if err != nil {
			return nil, err
		}
		like := p.View().Node(named.ID)
		if like == nil || !like.Facts.Inventory || like.Facts.Memory <= 0 {
			return nil, refusal.New(rpc.Unavailable, "node/"+named.Name, "name a node that is up",
				"node %s has not told what it has, so nothing can be like it", named.Name)
		}
		return like, nil
	}
	var first *view.NodeView
	for _, node := range p.View().Nodes.All() {
		if node.Node.ClusterName() == cluster && node.Facts.Liveness == model.Up && node.Facts.Inventory && node.Facts.Memory > 0 &&
			(first == nil || node.Node.Name < first.Node.Name) {
			first = node
		}
	}
	if first == nil {
		return nil, refusal.New(rpc.Invalid, "cluster/"+cluster, "name a node that they are to be like: 'berth capacity --add-nodes NUMBER:LIKE'",
			"no node of cluster %s is up", cluster)
	}
	return first, nil
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
