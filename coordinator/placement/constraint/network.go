package constraint

import (
	"slices"
	"strings"

	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

var network = Constraint{
	Name:    "network",
	Doc:     "The node has every network that the VM's NICs are connected to: an active one of libvirt, or a bridge of the host.",
	Implied: true,
	Check: func(in *rule.Input, node int) rule.Verdict {
		for _, name := range in.Networks {
			switch column := networkColumn(in, name); {
			case column == nil || column.Has[node] == view.HasUnknown:
				return in.AsTold(node, rule.Refuse(unknown))
			case column.Has[node] != view.HasIt:
				return in.AsTold(node, rule.Refuse("no_network"))
			}
		}
		return rule.Pass()
	},
	Say: func(in *rule.Input, node int, refusal rule.Verdict) string {
		if refusal.Code == unknown {
			return "the node's networks and bridges could not be listed"
		}
		var lacking []string
		for _, name := range in.Networks {
			if column := networkColumn(in, name); column == nil || column.Has[node] == view.HasIt {
				continue
			}
			if bridge, is := strings.CutPrefix(name, view.BridgePrefix); is {
				lacking = append(lacking, "no bridge "+bridge)
			} else {
				lacking = append(lacking, "no active network "+name)
			}
		}
		return "the node has " + strings.Join(lacking, " and ")
	},
	Sweep: func(in *rule.Input, out []bool) {
		for _, name := range in.Networks {
			column := networkColumn(in, name)
			for node := range out {
				out[node] = out[node] || column == nil || column.Has[node] != view.HasIt
			}
		}
	},
}

// networkColumn finds the column of a network. It is nil when nothing is known of the network on any node.
func networkColumn(in *rule.Input, name string) *view.NetworkColumn {
	at := slices.IndexFunc(in.Columns.Networks, func(c view.NetworkColumn) bool { return c.Name == name })
	if at < 0 {
		return nil
	}
	return &in.Columns.Networks[at]
}
