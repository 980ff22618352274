// Package heard keeps when a modelled leader has heard its nodes.
package heard

import (
	"time"

	"berth/coordinator/model"
)

// Nodes are the times, by node.
type Nodes struct {
	Last   map[string]time.Time // when it was heard last
	Silent map[string]time.Time // when it had been heard last before it was again, after a while
	Fallen map[string]time.Time // the same, after a while in which it counted as silent
}

// New are those of a leader that has heard nobody.
func New() Nodes {
	return Nodes{Last: map[string]time.Time{}, Silent: map[string]time.Time{}, Fallen: map[string]time.Time{}}
}

// Hear takes note of a node. While is how long nothing has to be heard for it to count.
func (n Nodes) Hear(node string, now time.Time, while time.Duration) {
	before := n.Last[node]
	gap := now.Sub(before)
	if gap > while {
		n.Silent[node] = before
	}
	if gap > model.SuspectAfter {
		n.Fallen[node] = before
	}
	n.Last[node] = now
}

// Fell tells whether a node was heard last at a time, or so long before or after that, until now or until it was heard again.
func (n Nodes) Fell(node string, now, at time.Time, within time.Duration) bool {
	near := func(heard time.Time) bool { return !heard.IsZero() && heard.Sub(at).Abs() <= within }
	return near(n.Fallen[node]) || now.Sub(n.Last[node]) > model.SuspectAfter && near(n.Last[node])
}

// Facts are what a leader knows of a node where nobody reports what it shows: whether it has a session, and else since when it has none.
func Facts(now time.Time, session bool, leads, lost time.Time) model.NodeFacts {
	if session {
		return model.NodeFacts{Liveness: model.Up, HeardAt: now}
	}
	facts := model.NodeFacts{Liveness: model.Unreachable, HeardAt: leads.Add(model.SessionGrace)}
	if lost.After(facts.HeardAt) {
		facts.HeardAt = lost
	}
	return facts
}
