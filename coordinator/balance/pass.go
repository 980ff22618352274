package balance

import (
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/cluster"
	"berth/coordinator/placement"
)

// Interval is how often the leader makes a pass.
const Interval = time.Minute

// Found is what a pass came to: at most one VM, or one unit of VMs, to move.
type Found struct {
	Kind cluster.PlanKind // PlanRepair or PlanBalance; empty: no move
	// Moves is the one move, and those of the VMs that hard rules tie to that VM on the same node: they go to the same
	// target, one after the other.
	Moves    []cluster.Move
	Decision placement.Decision // that chose the target; with no ID
	Group    string             // ID: of a repair
	Hard     bool               // of a repair
	Reason   string             // of the move, with figures

	// Of a balance move: the balancer's figure of the cluster before and after, in Unit; lower is better.
	Unit              string
	Before, Predicted float64

	// Idle says why there is no move.
	Idle string
	// Breaches are the rules that do not hold now, and Unrepaired why each was not repaired in this pass, by group ID.
	Breaches   []affinity.Breach
	Unrepaired map[string]string
}

// Pass finds the move to make now. Repairs are looked for if the cluster's enforcement is not off, then balancing if that
// is not off and its window is open. One move: the next pass sees what came of it.
func Pass(fleet *Fleet) Found { return Found{} }

// Even plans all the moves that the balancer would make one after the other, on planned state, at most so many. The plan
// has no ID, state, caller or times.
func Even(fleet *Fleet, most int) cluster.Plan { return cluster.Plan{} }

// Observe compares what a balance plan that has ended predicted with what the cluster is now, in the plan's unit; false
// while the figures of the nodes are older than the move, or the balancer is another one.
func Observe(fleet *Fleet, plan *cluster.Plan) (observed float64, known bool) { return 0, false }

// BackOff tells whether the balancer holds still because its last predictions did not come true, and in words until when.
func BackOff(fleet *Fleet) (why string, holds bool) { return "", false }
