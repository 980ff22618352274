package control

import (
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/state"
)

// Picture is the records with what this leader knows of the nodes beside them, all of one moment.
type Picture struct {
	*state.Snapshot
	At    time.Time
	Facts func(node string) cluster.NodeFacts // as of At
}

// picture joins a snapshot with the facts of this moment.
func (c *Control) picture(snapshot *state.Snapshot) Picture {
	at := c.Now()
	return Picture{Snapshot: snapshot, At: at, Facts: func(node string) cluster.NodeFacts { return c.Inventory.Facts(node, at) }}
}
