package format

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/view"
)

// around writes the pools, networks and CPU models of a node, and returns which of them are not known.
func (r *row) around(facts *model.NodeFacts) (unknown []string) {
	if !facts.Inventory {
		return nil
	}
	words := func(name string, list []string) {
		content := make([]*yaml.Node, len(list))
		for i := range list {
			content[i] = word(list[i])
		}
		r.node(name, &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: content})
	}
	if facts.PoolsKnown && len(facts.Pools) > 0 {
		pools := make([]*yaml.Node, len(facts.Pools))
		for i, pool := range facts.Pools {
			var one row
			one.put("name", pool.Name)
			one.size("capacity", &pool.Capacity)
			if pool.Available != pool.Capacity {
				one.size("available", &pool.Available)
			}
			one.flag("inactive", !pool.Active)
			pools[i] = one.flow()
		}
		r.node("pools", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle, Content: pools})
	}
	if facts.NetworksKnown {
		names := slices.Clone(facts.Networks)
		for _, bridge := range facts.Bridges {
			names = append(names, view.BridgePrefix+bridge)
		}
		words("networks", names)
	}
	if len(facts.CPUModels) > 0 {
		words("cpu_models", facts.CPUModels)
	}
	r.text("host_cpu", facts.HostCPU)
	if !facts.PoolsKnown {
		unknown = append(unknown, "pools")
	}
	if !facts.NetworksKnown {
		unknown = append(unknown, "networks")
	}
	return unknown
}

// volumes are the volumes of disks and images.
func (e *exporter) volumes() []*yaml.Node {
	var rows []*yaml.Node
	for i := range e.state.Resources {
		one := &e.state.Resources[i]
		for volume := range one.Volumes() {
			if volume.Doomed {
				continue
			}
			var r row
			r.put("of", string(one.Kind)+"/"+one.Name)
			r.put("pool", e.nameOf(volume.Pool))
			var nodes []*yaml.Node
			for _, id := range volume.Nodes {
				if node, there := e.state.Node(id); there {
					nodes = append(nodes, word(node.Name))
				}
			}
			r.list("nodes", nodes)
			r.size("capacity", &volume.Capacity)
			rows = append(rows, r.flow())
		}
	}
	return rows
}
