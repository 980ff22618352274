package balance

import (
	"time"

	"berth/coordinator/cluster"
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
}

// Drain plans how a node is emptied, on planned state: where each VM would go, largest first, VMs that hard rules tie
// together as one unit, and which cannot move and why. The node counts as in maintenance. Bandwidth is a second and move.
func Drain(fleet *Fleet, node string, parallel int, bandwidth units.Bytes) Preflight {
	return Preflight{}
}

// Return plans how the VMs that a drain moved away come back: those that still belong there, because the engine would
// choose the node for them now or no other one is better. The others stay, with the reason.
func Return(fleet *Fleet, drained *cluster.Plan) cluster.Plan { return cluster.Plan{} }
