package api

import (
	"context"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/estates"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/guests"
	"berth/coordinator/api/members"
	"berth/coordinator/api/refusal"
	"berth/coordinator/authorities"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/wire"
	"berth/shared/buildinfo"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// Status answers with the state of the cluster as the leader sees it, or with what this member alone has. The latter
// works without a leader, and says so.
func (s *queryCalls) Status(
	ctx context.Context, request *connect.Request[berthv1.StatusRequest],
) (*connect.Response[berthv1.StatusResponse], error) {
	if request.Msg.GetStale() {
		return connect.NewResponse(s.staleStatus()), nil
	}
	waiting, cancel := context.WithTimeout(ctx, gate.LeaderPatience)
	defer cancel()
	lead, lost := s.Forward.Await(waiting)
	if lost != nil {
		return nil, lost
	}
	switch {
	case lead.Self:
	case gate.CallerOf(ctx).Forwarded:
		return nil, gate.NotLeader()
	default:
		return gate.Relay(ctx, s.Forward, request.Msg, berthv1connect.BerthServiceClient.Status)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	coordinators := members.Messages(s.Source, p)
	status := s.status(p, coordinators)
	removed := problems{p}.removedNodes(s.Removed())
	locks := estates.LockProblems(p, s.Control.PoolLocks)
	status.Problems = slices.Concat(
		s.fenceProblems(p), s.authorityProblems(p.At), removed, locks, guests.ShrunkProblems(p, s.Control),
		problems{p}.all(coordinators), guests.ReadinessProblems(p, s.Control),
	)
	return connect.NewResponse(status), nil
}

func (s *queryCalls) staleStatus() *berthv1.StatusResponse {
	p, known := s.lastKnown()
	coordinators := members.Messages(s.Source, p)
	status := s.status(p, coordinators)
	status.Stale, status.LastKnown = true, known
	if known != nil {
		s.targets.OfMembers(known, status.Members)
	}
	if known != nil && !known.GetRecordsOnly() {
		status.HeardSeconds = new(known.GetAgeSeconds())
	}
	if !gate.IsMember(p.Snapshot, s.Self) {
		status.Problems = append(status.Problems, refusal.Removed(rpc.Unavailable, s.SelfName).Message())
	}
	if status.GetLeader() == "" {
		status.Problems = append(status.Problems, "this coordinator knows no leader: nothing can be changed until there is one")
	}
	if known != nil {
		status.Problems = append(status.Problems, "which nodes are up and which VMs run is known to the leader only: here it is unknown")
	}
	status.Problems = append(status.Problems, slices.Concat(problems{p}.quarantine(s.Consensus.IsLeader()), problems{p}.parked())...)
	return status
}

func (s *queryCalls) status(p *answer.Moment, coordinators []*berthv1.Member) *berthv1.StatusResponse {
	stats := s.Consensus.Stats()
	status := &berthv1.StatusResponse{
		SchemaVersion:     wire.SchemaVersion,
		ClusterId:         s.Authority().ClusterID(),
		Version:           buildinfo.Version(),
		Term:              stats.Term,
		AppliedIndex:      stats.AppliedIndex,
		Members:           coordinators,
		NodesTotal:        int32(p.View().Nodes.Len()),
		VmsTotal:          int32(p.CountVMs()),
		OperationsRunning: int32(len(p.LiveOperations())),
		AnsweredBy:        members.Name(s.Source, p.Snapshot, s.Self), // of this member, also when another one was asked
	}
	status.HaPause = haPause(p)
	if first, known := (problems{p}).firstToEnd(); known {
		status.CertificatesUntil, status.CertificatesFirst = timestamppb.New(first.ValidUntil()), identities.Subject(&first)
	}
	first := authorities.Ends(s.Authority(), s.Hypervisors.All())[0]
	status.AuthoritiesUntil, status.AuthoritiesFirst = timestamppb.New(first.At), first.Name
	if stats.Leader != "" {
		status.Leader = members.Name(s.Source, p.Snapshot, stats.Leader)
	}
	for _, node := range p.View().Nodes.All() {
		if node.Facts.Liveness == model.Up {
			status.NodesUp++
		}
	}
	running, untold := p.View().Running()
	status.VmsRunning, status.VmsUntold = int32(running), int32(untold)
	return status
}
