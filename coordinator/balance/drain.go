package balance

import (
	"slices"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// Preflight is what draining a node would come to, as far as can be known before.
type Preflight struct {
	Plan cluster.Plan // kind, cluster, node, reason and moves; those that cannot move have Stays and the reason
	// Headroom is what the other nodes of the cluster have left to promise once all moves are made, and Largest the largest
	// VM that would still fit on one of them.
	Headroom, Largest units.Bytes
	// Estimate is how long the copies take at the bandwidth, so many at once; 0 when the bandwidth is not known.
	Estimate time.Duration
	Warnings []string // in words: a hard VM rule that does not hold meanwhile, a group that cannot hold without the node
	// Refused says why the node cannot be drained at all and what to do about it: it is the last one, or a hard rule keeps
	// its VMs on it. Empty: it can.
	Refused string
}

// WithoutVMRules is the policy of a drain that ignores hard rules among VMs (placement-semantics 4.7): they weigh, and no
// longer forbid.
func WithoutVMRules(policy placement.Policy) placement.Policy {
	policy.Constraints = slices.DeleteFunc(slices.Clone(policy.Constraints), func(name string) bool { return name == "vm-affinity" })
	return policy
}

// Drain plans how a node is emptied, on planned state: where each VM would go, largest first, VMs that hard rules tie
// together as one unit, and which cannot move and why. The node counts as in maintenance. Bandwidth is a second and move.
func Drain(fleet *Fleet, node string, parallel int, bandwidth units.Bytes) Preflight {
	return Preflight{}
}

// Return plans how the VMs that a drain moved away come back: those that still belong there, because the engine would
// choose the node for them now or no other one is better. The others stay, with the reason.
func Return(fleet *Fleet, drained *cluster.Plan) cluster.Plan { return cluster.Plan{} }
