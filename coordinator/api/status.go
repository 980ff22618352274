package api

import (
	"context"
	"slices"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/shared/buildinfo"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// Status answers with the state of the cluster as the leader sees it, or with what this member alone has. The latter
// works without a leader, and says so.
func (s *Server) Status(
	ctx context.Context, request *connect.Request[berthv1.StatusRequest],
) (*connect.Response[berthv1.StatusResponse], error) {
	if request.Msg.GetStale() {
		return connect.NewResponse(s.staleStatus()), nil
	}
	waiting, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	lead, lost := s.forward.await(waiting)
	if lost != nil {
		return nil, lost
	}
	switch {
	case lead.self:
	case callerOf(ctx).forwarded:
		refused := moved()
		refused.Meta().Set(notLeaderHeader, "1")
		return nil, refused
	default:
		return relay(ctx, s.forward, request.Msg, berthv1connect.BerthServiceClient.Status)
	}
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	members := s.members(p)
	status := s.status(p, members)
	status.Problems = slices.Concat(s.fenceProblems(p), p.problems(members))
	return connect.NewResponse(status), nil
}

func (s *Server) staleStatus() *berthv1.StatusResponse {
	p := s.present()
	members := s.members(p)
	status := s.status(p, members)
	status.Stale = true
	if !isMember(p.Snapshot, s.Self) {
		status.Problems = append(status.Problems, removed(rpc.Unavailable, s.SelfName).Message())
	}
	if status.GetLeader() == "" {
		status.Problems = append(status.Problems, "this coordinator knows no leader: nothing can be changed until there is one")
	}
	if !s.Consensus.IsLeader() {
		status.Problems = append(status.Problems, "nodes and running VMs are known to the leader only; these figures leave them out")
	}
	status.Problems = append(status.Problems, append(p.quarantine(s.Consensus.IsLeader()), p.parked()...)...)
	return status
}

func (s *Server) status(p *picture, members []*berthv1.Member) *berthv1.StatusResponse {
	stats := s.Consensus.Stats()
	status := &berthv1.StatusResponse{
		SchemaVersion:     wire.SchemaVersion,
		ClusterId:         s.Authority.ClusterID(),
		Version:           buildinfo.Version(),
		Term:              stats.Term,
		AppliedIndex:      stats.AppliedIndex,
		Members:           members,
		NodesTotal:        int32(len(p.view().Nodes)),
		VmsTotal:          int32(len(p.VMs())),
		OperationsRunning: int32(len(p.LiveOperations())),
		AnsweredBy:        s.memberName(p.Snapshot, s.Self), // of this member, whoever was asked
	}
	if stats.Leader != "" {
		status.Leader = s.memberName(p.Snapshot, stats.Leader)
	}
	for _, node := range p.view().Nodes {
		if node.Facts.Liveness == cluster.Up {
			status.NodesUp++
		}
	}
	running := p.running()
	for _, vm := range p.VMs() {
		if len(running[vm.ID]) > 0 {
			status.VmsRunning++
		}
	}
	return status
}
