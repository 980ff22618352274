package wire

import (
	"time"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
)

// Event makes the message of one event.
func Event(e cluster.Event) *berthv1.Event {
	return &berthv1.Event{
		Index:       e.Index,
		At:          timestamp(e.At),
		Kind:        e.Kind,
		Subject:     e.Subject,
		Message:     e.Message,
		Caller:      e.Caller,
		OperationId: e.Operation,
		DecisionId:  e.Decision,
	}
}

// MemberReport is all that one coordinator's message is made of.
type MemberReport struct {
	Member      cluster.Member
	Voter       bool
	Leader      bool
	Self        bool
	Reachable   bool
	LastIndex   uint64
	LastContact *time.Duration // since the leader and this member last heard each other; nil when not known
}

// Member makes the message of one coordinator.
func Member(report MemberReport) *berthv1.Member {
	return &berthv1.Member{
		Id:                 report.Member.ID,
		Name:               report.Member.Name,
		Address:            report.Member.RaftAddress,
		ApiAddress:         report.Member.APIAddress,
		AgentAddress:       report.Member.AgentAddress,
		Voter:              report.Voter,
		Leader:             report.Leader,
		Self:               report.Self,
		Reachable:          report.Reachable,
		LastIndex:          report.LastIndex,
		LastContactSeconds: seconds(report.LastContact),
	}
}
