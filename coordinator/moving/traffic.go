package moving

import (
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// In a cluster, one migration for every nodesPerMove nodes may run for plans at once, and leastMoves in a small one.
const (
	leastMoves   = 5
	nodesPerMove = 20
)

// Traffic counts all running migrations, those of people included, against a plan's limits.
type Traffic struct {
	out, in map[string]int // by node ID
	all     int            // in the plan's cluster

	parallel int // out of a node, and into one
	most     int // in the cluster
}

// TrafficOf counts the migrations of a plan's cluster.
func TrafficOf(records Records, plan *model.Plan) Traffic {
	t := Traffic{out: map[string]int{}, in: map[string]int{}, parallel: plan.Parallel}
	if t.parallel == 0 {
		record, _ := estate.ClusterNamed(records, plan.Cluster)
		t.parallel = model.SettingsOf(&record).ParallelMoves
	}
	inside := map[string]bool{}
	for _, node := range records.Nodes() {
		if node.ClusterName() == plan.Cluster {
			inside[node.ID] = true
		}
	}
	t.most = max(leastMoves, len(inside)/nodesPerMove)
	for _, op := range records.LiveOperations() {
		if op.Kind == operation.Migrate && inside[op.Source] && op.Result != operation.Parked {
			t.add(op.Source, op.Target)
		}
	}
	return t
}

func (t *Traffic) add(source, target string) {
	t.out[source]++
	t.in[target]++
	t.all++
}

// Full tells whether another move has to wait. Without a target it asks only for what is known before a target is chosen.
func (t *Traffic) Full(source, target string) bool {
	return t.all >= t.most || t.out[source] >= t.parallel || t.in[target] >= t.parallel
}
