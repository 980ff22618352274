package control

import (
	"errors"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// errNotNow says that a move has to wait: for its turn, or because its plan runs no more.
var errNotNow = errors.New("the move has to wait for others")

// At most so many migrations of a cluster run for plans at once: one for each so many nodes, and at least so many.
const (
	leastMoves   = 5
	nodesPerMove = 20
)

// traffic counts the migrations that run, whoever asked for them, against a plan's limits.
type traffic struct {
	out, in map[string]int // by node ID
	all     int            // in the plan's cluster

	parallel int // out of a node, and into one
	most     int // in the cluster
}

func trafficOf(snapshot *state.Snapshot, plan *cluster.Plan) traffic {
	t := traffic{out: map[string]int{}, in: map[string]int{}, parallel: plan.Parallel}
	if t.parallel == 0 {
		record, _ := clusterNamed(snapshot, plan.Cluster)
		t.parallel = cluster.SettingsOf(&record).ParallelMoves
	}
	inside := map[string]bool{}
	for _, node := range snapshot.Nodes() {
		if clusterOf(&node) == plan.Cluster {
			inside[node.ID] = true
		}
	}
	t.most = max(leastMoves, len(inside)/nodesPerMove)
	for _, op := range snapshot.LiveOperations() {
		if op.Kind == operation.Migrate && inside[op.Source] && op.Result != operation.Parked {
			t.add(&op)
		}
	}
	return t
}

func (t *traffic) add(op *operation.Operation) {
	t.out[op.Source]++
	t.in[op.Target]++
	t.all++
}

// full tells whether another move has to wait. With no target it asks only for what is known before one is decided.
func (t *traffic) full(source, target string) bool {
	return t.all >= t.most || t.out[source] >= t.parallel || t.in[target] >= t.parallel
}

// clusterOf is the name of a node's cluster.
func clusterOf(node *cluster.Node) string {
	if node.Cluster == "" {
		return cluster.DefaultCluster
	}
	return node.Cluster
}

// clusterNamed is the record of a cluster. The default one is there without being declared.
func clusterNamed(snapshot *state.Snapshot, name string) (cluster.Resource, bool) {
	if declared, known := snapshot.ResourceByName(cluster.KindCluster, name); known {
		return declared, true
	}
	return cluster.DefaultClusterRecord(), name == cluster.DefaultCluster
}
