package estate

import (
	"time"

	"berth/coordinator/cluster"
)

// Build makes a state of a document alone, its nodes included. IDs are the names with their
// kind, nodes' are their names, so that they are the same every time.
func (d *Document) Build(at time.Time) (State, []Problem) {
	var from State
	for _, one := range d.nodes {
		from.Nodes = append(from.Nodes, cluster.Node{
			ID: one.name, Name: one.name, Cluster: cluster.DefaultCluster, EnrolledAt: at, Revision: 1,
		})
	}
	plan, problems := Diff(from, d, false)
	if len(problems) > 0 {
		return State{}, problems
	}
	plan.Assign(at, ref)
	return plan.Apply(from), nil
}
