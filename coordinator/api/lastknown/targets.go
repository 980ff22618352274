package lastknown

import (
	"berth/coordinator/api/answer"
	berthv1 "berth/shared/gen/berth/v1"
)

// Targets is where figures were read as a leader told it last: of members by their names, of nodes by their IDs; empty: on its own machine
// alone. False: no leader has told. Nil is that, always.
type Targets func() (members, nodes map[string]string, told bool)

// OfMembers adds where the figures of members are read, and says whether that is known.
func (t Targets) OfMembers(known *berthv1.LastKnown, members []*berthv1.Member) {
	if t == nil {
		return
	}
	var addresses map[string]string
	addresses, _, known.Targets = t()
	for _, member := range members {
		member.MetricsAddress = addresses[member.GetName()]
	}
}

// OfNodes makes messages of nodes that have that too, of messages that do not.
func (t Targets) OfNodes(
	known *berthv1.LastKnown, of func(*answer.Moment, string) *berthv1.Node,
) func(*answer.Moment, string) *berthv1.Node {
	if t == nil {
		return of
	}
	var addresses map[string]string
	_, addresses, known.Targets = t()
	return func(p *answer.Moment, id string) *berthv1.Node {
		message := of(p, id)
		if message != nil {
			message.MetricsAddress = addresses[id]
		}
		return message
	}
}
