package estate

import (
	"time"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// build makes a state of nothing but a document, with its nodes. The ID of a node is its name, and other IDs are made of kind
// and name, so that they are the same every time.
func build(d *document.Document, at time.Time) (State, []schema.Problem) {
	var from State
	for _, one := range d.Nodes {
		from.Nodes = append(from.Nodes, model.Node{
			ID: one.Name, Name: one.Name, Cluster: model.DefaultCluster, EnrolledAt: at, Revision: 1,
		})
	}
	plan, problems := Diff(from, d, false)
	if len(problems) > 0 {
		return State{}, problems
	}
	plan.Assign(at, schema.Ref)
	return plan.Apply(from), nil
}
