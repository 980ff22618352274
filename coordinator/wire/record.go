package wire

import (
	"cmp"
	"time"

	"berth/coordinator/consensus"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// Event makes the message of one event.
func Event(e model.Event) *berthv1.Event {
	return &berthv1.Event{
		Index:       e.Index,
		At:          timestamp(e.At),
		Kind:        e.Kind,
		Subject:     e.Subject,
		Message:     e.Message,
		Caller:      e.Caller,
		OperationId: e.Operation,
		DecisionId:  e.Decision,
		CallerId:    e.CallerID,
	}
}

// Identity makes the message of one identity.
func Identity(i model.Identity) *berthv1.Identity {
	message := &berthv1.Identity{
		Id: i.ID, Kind: string(i.Kind), Name: i.Name, Role: i.Role, CreatedAt: timestamp(i.CreatedAt), ValidUntil: timestamp(i.ValidUntil()),
		RevokedAt: timestamp(i.Revoked.At), RevokedBy: i.Revoked.By, RevokedReason: i.Revoked.Reason, Unconfirmed: i.Unconfirmed,
	}
	if i.Kind == model.IdentityOperator {
		message.Permit = cmp.Or(i.Permit, model.PermitUnsaid)
	}
	for _, key := range i.Keys {
		message.Keys = append(message.Keys, &berthv1.IdentityKey{
			Hash: key.Hash, ValidUntil: timestamp(key.ValidUntil), AddedAt: timestamp(key.AddedAt), Authority: key.Authority,
		})
	}
	return message
}

// MemberReport is all that one coordinator's message is made of.
type MemberReport struct {
	Member      model.Member
	Voter       bool
	Leader      bool
	Self        bool
	Reachable   bool
	LastIndex   uint64
	LastContact *time.Duration    // since the leader and this member last heard each other; nil when not known
	Trouble     string            // what is wrong with it; empty: it is healthy
	Behind      uint64            // entries
	Told        *consensus.Report // what it last told of itself; nil: nothing lately
}

// Member makes the message of one coordinator.
func Member(report MemberReport) *berthv1.Member {
	member := &berthv1.Member{
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
		Healthy:            report.Trouble == "",
		Health:             report.Trouble,
		Behind:             report.Behind,
	}
	if told := report.Told; told != nil {
		member.Version, member.FeatureLevel, member.LogBytes = told.Version, told.FeatureLevel, int64(told.LogSize)
		member.BackupAt, member.BackupProblem = timestamp(told.Backup.At), told.Backup.Problem
		member.HistoryProblem, member.AgentsMost = told.History, int32(told.AgentsMost)
		member.BackupEverySeconds = told.Backup.Every.Seconds()
		member.MetricsAddress = MemberMetrics(report.Member.APIAddress, told.MetricsPort)
	}
	return member
}
