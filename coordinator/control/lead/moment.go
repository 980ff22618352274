package lead

import (
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Moment joins a snapshot with what the nodes have told until now.
func (l *Leader) Moment(snapshot *state.Snapshot) evidence.Moment {
	at := l.Now()
	return evidence.Moment{
		Records: snapshot, At: at, Facts: func(node string) model.NodeFacts { return l.Inventory.Facts(node, at) },
		MayShow: l.Inventory.MayShow, WithDisk: l.Inventory.WithDisk, Removed: l.Agents.Removed(),
	}
}

// Heard tells whether a node is heard, so that it can be given an order.
func (l *Leader) Heard(node string) bool { return l.Inventory.Facts(node, l.Now()).Liveness.Answers() }
