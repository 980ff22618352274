package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/consensus"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
	"berth/shared/units"
)

// members are all coordinators, by name: those of the Raft configuration, and those that have enrolled and are not in it
// yet. How the others are reached is known to the leader only.
func (s *Server) members(p *picture) []*berthv1.Member {
	stats := s.Consensus.Stats()
	servers := make(map[string]consensus.Server)
	for _, server := range s.Consensus.Configuration() {
		servers[server.ID] = server
	}
	var members []*berthv1.Member
	for _, member := range p.Members() {
		report := wire.MemberReport{
			Member: member,
			Voter:  servers[member.ID].Voter,
			Leader: member.ID == stats.Leader,
			Self:   member.ID == s.Self,
		}
		if seen, known := stats.Members[member.ID]; known {
			report.Reachable, report.LastIndex, report.Behind = seen.Reachable, seen.LastIndex, seen.Behind
			report.Trouble, report.Told = seen.Trouble, seen.Report
			if seen.LastContact >= 0 {
				report.LastContact = &seen.LastContact
			}
		} else if report.Self {
			report.Reachable, report.LastIndex = true, stats.LastIndex
			report.Trouble = onlyLeader
			if stats.LastContact >= 0 {
				report.LastContact = &stats.LastContact
			}
		} else if stats.Members == nil {
			report.Trouble = onlyLeader
		} else {
			report.Trouble = "has not been taken in yet"
		}
		members = append(members, wire.Member(report))
	}
	return members
}

// onlyLeader stands for the health of a member where nobody can tell it.
const onlyLeader = "known to the leader only"

// memberName is what people call a member; its ID before its record has arrived here.
func (s *Server) memberName(snapshot *state.Snapshot, id string) string {
	if id == s.Self {
		return s.SelfName
	}
	if member, known := snapshot.Member(id); known {
		return member.Name
	}
	return id
}

// ListMembers answers with all coordinators.
func (s *Server) ListMembers(
	ctx context.Context, _ *connect.Request[berthv1.ListMembersRequest],
) (*connect.Response[berthv1.ListMembersResponse], error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ListMembersResponse{
		SchemaVersion: wire.SchemaVersion, ClusterId: s.Authority.ClusterID(), Members: s.members(p),
	}), nil
}

func memberByRef(p *picture, ref string) (cluster.Member, bool) {
	if member, known := p.Member(ref); known {
		return member, true
	}
	return p.MemberByName(ref)
}

// RemoveMember takes a coordinator out of the Raft configuration, and then forgets it: its certificate is of no more use.
// A leader that is to be removed hands the leadership over first, and the next one does it.
func (s *Server) RemoveMember(
	ctx context.Context, request *connect.Request[berthv1.RemoveMemberRequest],
) (*connect.Response[berthv1.RemoveMemberResponse], error) {
	p, err := s.verified(ctx)
	if err != nil {
		return nil, err
	}
	ref := request.Msg.GetMember()
	member, known := memberByRef(p, ref)
	if !known {
		return nil, notFound("coordinator", ref)
	}
	if member.ID == s.Self {
		if err := s.stepAside(ctx, member); err != nil {
			return nil, err
		}
		return relay(ctx, s.forward, request.Msg, berthv1connect.BerthServiceClient.RemoveMember)
	}
	if err := s.Consensus.Remove(ctx, member.ID); err != nil && !errors.Is(err, consensus.ErrNoMember) {
		return nil, removeRefused(member, request.Msg.GetForce(), err)
	}
	_, err = s.propose(ctx, "", func(p *picture) (state.Command, error) {
		member, known := p.Member(member.ID)
		if !known {
			return state.Command{}, errUnchanged
		}
		return state.Command{
			Kind: "remove coordinator", Expect: []state.Expectation{expectMember(member)},
			Delete: []state.Record{{Table: state.Members, ID: member.ID}},
			Events: []cluster.Event{p.event(ctx, "coordinator.removed", "coordinator/"+member.Name, "forgotten; its certificate is of no more use")},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RemoveMemberResponse{SchemaVersion: wire.SchemaVersion}), nil
}

// stepAside hands the leadership over, and waits until this member knows to whom.
func (s *Server) stepAside(ctx context.Context, member cluster.Member) error {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	err := s.Consensus.Transfer(ctx)
	switch {
	case errors.Is(err, consensus.ErrQuorum):
		return refusal(rpc.Conflict, "coordinator/"+member.Name,
			"let another coordinator join first, or stop the whole cluster instead",
			"coordinator %s is the only one with a vote", member.Name)
	case errors.Is(err, consensus.ErrNoHeir):
		return refusal(rpc.Unavailable, "coordinator/"+member.Name,
			"look at the others with 'berth coordinator list', then stop this coordinator: they elect a leader among themselves",
			"coordinator %s leads the cluster, and no other has taken that over", member.Name)
	case err != nil && !errors.Is(err, consensus.ErrNotLeader):
		return err
	}
	for {
		lead, lost := s.forward.await(ctx)
		switch {
		case lost != nil:
			return lost
		case !lead.self:
			return nil
		case !pause(ctx, leaderPoll):
			return refusal(rpc.Unavailable, "coordinator/"+member.Name, repeatStep,
				"coordinator %s leads the cluster and could not hand that on", member.Name)
		}
	}
}

func removeRefused(member cluster.Member, force bool, err error) error {
	if !errors.Is(err, consensus.ErrQuorum) {
		return err
	}
	next := "bring the other coordinators back first, or remove one that does not answer"
	if force {
		next += "; this cannot be forced, because those left could never agree to it"
	}
	return refusal(rpc.Conflict, "coordinator/"+member.Name, next, "coordinator %s cannot be removed: %w", member.Name, err)
}

// Join takes the caller into the Raft configuration, and notes the addresses under which it can now be reached. It is
// repeatable: a member asks at every start until it is a part of the cluster.
func (s *Server) Join(
	ctx context.Context, request *connect.Request[berthv1.JoinRequest],
) (*connect.Response[berthv1.JoinResponse], error) {
	message, id := request.Msg, callerOf(ctx).ID
	p, err := s.propose(ctx, "", func(p *picture) (state.Command, error) {
		member, known := p.Member(id)
		if !known {
			return state.Command{}, removed(rpc.Denied, callerOf(ctx).Name)
		}
		if has, needed := max(message.GetFeatureLevel(), 1), p.FeatureLevel(); has < needed {
			return state.Command{}, refusal(rpc.Conflict, "coordinator/"+member.Name,
				"install the release that the other coordinators run, and start it again",
				"coordinator %s runs release %s of feature level %d, and this cluster has come to level %d",
				member.Name, cmp.Or(message.GetVersion(), "unknown"), has, needed)
		}
		moved := member
		moved.APIAddress, moved.AgentAddress, moved.RaftAddress =
			message.GetApiAddress(), message.GetAgentAddress(), message.GetRaftAddress()
		if moved == member {
			return state.Command{}, errUnchanged
		}
		if _, err := certificateAddresses(moved, nil); err != nil {
			return state.Command{}, invalid("coordinator/"+member.Name, "correct advertise and listen in its configuration", err)
		}
		return state.Command{
			Kind: "move coordinator", Expect: []state.Expectation{expectMember(member)}, Members: []cluster.Member{moved},
			Events: []cluster.Event{p.event(ctx, "coordinator.moved", "coordinator/"+member.Name, "is now at %s", moved.RaftAddress)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.Consensus.AddNonvoter(ctx, id, message.GetRaftAddress()); err != nil {
		return nil, fmt.Errorf("add coordinator %s to the Raft configuration: %w", s.memberName(p.Snapshot, id), err)
	}
	response := &berthv1.JoinResponse{}
	for _, server := range s.Consensus.Configuration() {
		if server.ID == id {
			response.Voter = server.Voter
		}
	}
	return connect.NewResponse(response), nil
}

// Report takes what a member tells about itself.
func (s *Server) Report(
	ctx context.Context, request *connect.Request[berthv1.ReportRequest],
) (*connect.Response[berthv1.ReportResponse], error) {
	message := request.Msg
	report := consensus.Report{
		Version: message.GetVersion(), FeatureLevel: message.GetFeatureLevel(),
		Index: message.GetStateIndex(), Hash: message.GetStateHash(), LogSize: units.Bytes(message.GetLogBytes()),
		Backup: consensus.Backup{
			Every: time.Duration(message.GetBackupEverySeconds() * float64(time.Second)), Problem: message.GetBackupProblem(),
		},
	}
	if message.BackupAt != nil {
		report.Backup.At = message.GetBackupAt().AsTime()
	}
	s.Consensus.Heard(callerOf(ctx).ID, report)
	return connect.NewResponse(&berthv1.ReportResponse{}), nil
}

// removed refuses a coordinator that has a good certificate and no record.
func removed(code, name string) *connect.Error {
	return refusal(code, "coordinator/"+name,
		"to take it in again, empty its data directory and run 'berth coordinator join' with a new token",
		"coordinator %s is not a member of this cluster: it was removed", name)
}

func expectMember(m cluster.Member) state.Expectation {
	return state.Expectation{Table: state.Members, ID: m.ID, Revision: m.Revision}
}
