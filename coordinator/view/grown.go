package view

import (
	"fmt"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Grown are the columns of a cluster as if it had more nodes, each like another one without its VMs and up. Memory of 0 is as much as that
// one has. They have no labels, so no group takes them in, and no IDs that a node can have. They come last.
func (v *View) Grown(name string, like *NodeView, count int, memory units.Bytes) *Columns {
	var nodes []*NodeView
	for _, node := range v.Nodes.All() {
		if node.Node.ClusterName() == name {
			nodes = append(nodes, node)
		}
	}
	cluster := v.clusters[name]
	if cluster == nil {
		cluster = v.clusters[model.DefaultCluster]
	}
	facts := like.emptied(v, memory)
	for i := range count {
		nodes = append(nodes, newNodeView(model.Node{
			ID: fmt.Sprintf("%s%06d", addedPrefix, i+1), Name: fmt.Sprintf("%s+%d", like.Node.Name, i+1), Cluster: name,
			Settings: like.Node.Settings, Keys: like.Node.Keys,
		}, cluster.Settings, facts, nil))
	}
	return v.ColumnsOf(name, nodes)
}

// addedPrefix begins the ID of a node that is not there. It sorts behind all IDs.
const addedPrefix = "~"

// Added tells whether an ID is that of a node which is not there.
func Added(id string) bool { return len(id) > 0 && id[:1] == addedPrefix }

// emptied are the facts of a node as they would be without its VMs. What the host itself uses is what is left of what it uses now; what
// cannot be read is not taken off, so the figures are never better than the truth.
func (n *NodeView) emptied(v *View, memory units.Bytes) model.NodeFacts {
	empty := n
	for i := range n.Allocations {
		if reduced, gone := empty.without(n.Allocations[i].VM); gone != nil {
			empty = reduced
		}
	}
	facts := empty.Facts
	own := units.Bytes(0)
	if empty.PhysicalKnown {
		own = max(0, facts.Memory-empty.PhysicalFree-empty.Borrowed)
	}
	if memory > 0 {
		facts.Memory = memory
	}
	facts.Liveness, facts.LivenessReason, facts.Ailing = model.Up, "", ""
	facts.Domains, facts.DomainsKnown, facts.Working = nil, true, nil
	facts.InventoryAt, facts.TelemetryAt, facts.Telemetry = v.At, v.At, true
	facts.Available, facts.KSMSaved = new(max(0, facts.Memory-own)), nil
	if facts.Load1 == nil && facts.CPUBusy == nil {
		facts.Load1 = new(0.0)
	}
	for _, pressure := range []**float64{
		&facts.CPUPressure, &facts.MemoryPressure, &facts.IOPressure, &facts.VCPUDelay, &facts.CPUSteal,
	} {
		*pressure = new(0.0)
	}
	return facts
}
