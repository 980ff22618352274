package members

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/lastknown"
	"berth/coordinator/api/refusal"
	"berth/coordinator/consensus"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Messages are all coordinators, by name: those of the Raft configuration, and those that have enrolled and are not in it
// yet. How the others are reached is known to the leader only.
func Messages(s *answer.Source, p *answer.Moment) []*berthv1.Member {
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

// Name is what people call a member; its ID before its record has arrived here.
func Name(s *answer.Source, snapshot *state.Snapshot, id string) string {
	if id == s.Self {
		return s.SelfName
	}
	if member, known := snapshot.Member(id); known {
		return member.Name
	}
	return id
}

// ListMembers answers with all coordinators.
func (s *Calls) ListMembers(
	ctx context.Context, _ *connect.Request[berthv1.ListMembersRequest],
) (*connect.Response[berthv1.ListMembersResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.ListMembersResponse{
		SchemaVersion: wire.SchemaVersion, ClusterId: s.Authority().ClusterID(), Members: Messages(s.Source, p),
	}), nil
}

func memberByRef(p *answer.Moment, ref string) (model.Member, bool) {
	if member, known := p.Member(ref); known {
		return member, true
	}
	return p.MemberByName(ref)
}

// forgotten is what the history says of a coordinator that was removed. Its record is gone, and the keys of the authorities that it had
// are not: libvirt of the nodes lets in whoever shows a certificate that is signed with the one of libvirt, until that is replaced.
const forgotten = "forgotten; its certificate is of no more use, but it has the keys of the authorities, and with them it is root on " +
	"every hypervisor: run 'berth ca rotate', 'berth ca rotate libvirt' and 'berth ca rotate qemu'"

// RemoveMember takes a coordinator out of the Raft configuration, and then forgets it: its certificate is of no more use.
// A leader that is to be removed hands the leadership over first, and the next one does it.
func (s *Calls) RemoveMember(
	ctx context.Context, request *connect.Request[berthv1.RemoveMemberRequest],
) (*connect.Response[berthv1.RemoveMemberResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	ref := request.Msg.GetMember()
	member, known := memberByRef(p, ref)
	if !known {
		return nil, refusal.NotFound("coordinator", ref)
	}
	if member.ID == s.Self {
		if err := s.stepAside(ctx, member); err != nil {
			return nil, err
		}
		return gate.Relay(ctx, s.Forward, request.Msg, berthv1connect.BerthServiceClient.RemoveMember)
	}
	if err := s.Consensus.Remove(ctx, member.ID); err != nil && !errors.Is(err, consensus.ErrNoMember) {
		return nil, removeRefused(member, request.Msg.GetForce(), err)
	}
	_, err = s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		member, known := p.Member(member.ID)
		if !known {
			return state.Command{}, answer.ErrUnchanged
		}
		command := state.Command{
			Kind: "remove coordinator", Expect: []state.Expectation{expectMember(member)},
			Delete: []state.Record{{Table: state.Members, ID: member.ID}},
			Events: []model.Event{p.Event(ctx, "coordinator.removed", "coordinator/"+member.Name, forgotten)},
		}
		identities.Remove(p.Snapshot, &command, pki.Identity{Role: pki.RolePeer, ID: member.ID, Name: member.Name}, p.At,
			gate.CallerOf(ctx).String())
		forgetTokens(p, &command, pki.Identity{Role: pki.RolePeer, Name: member.Name}.String())
		return command, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.RemoveMemberResponse{SchemaVersion: wire.SchemaVersion}), nil
}

// stepAside hands the leadership over, and waits until this member knows to whom.
func (s *Calls) stepAside(ctx context.Context, member model.Member) error {
	ctx, cancel := context.WithTimeout(ctx, gate.LeaderPatience)
	defer cancel()
	err := s.Consensus.Transfer(ctx)
	switch {
	case errors.Is(err, consensus.ErrQuorum):
		return refusal.New(rpc.Conflict, "coordinator/"+member.Name,
			"let another coordinator join first, or stop the whole cluster instead",
			"coordinator %s is the only one with a vote", member.Name)
	case errors.Is(err, consensus.ErrNoHeir):
		return refusal.New(rpc.Unavailable, "coordinator/"+member.Name,
			"look at the others with 'berth coordinator list', then stop this coordinator: they elect a leader among themselves",
			"coordinator %s leads the cluster, and no other has taken that over", member.Name)
	case err != nil && !errors.Is(err, consensus.ErrNotLeader):
		return err
	}
	for {
		lead, lost := s.Forward.Await(ctx)
		switch {
		case lost != nil:
			return lost
		case !lead.Self:
			return nil
		case !pause.For(ctx, gate.LeaderPoll):
			return refusal.New(rpc.Unavailable, "coordinator/"+member.Name, refusal.RepeatStep,
				"coordinator %s leads the cluster and could not hand that on", member.Name)
		}
	}
}

func removeRefused(member model.Member, force bool, err error) error {
	if !errors.Is(err, consensus.ErrQuorum) {
		return err
	}
	next := "bring the other coordinators back first, or remove one that does not answer"
	if force {
		next += "; this cannot be forced, because those left could never agree to it"
	}
	return refusal.New(rpc.Conflict, "coordinator/"+member.Name, next, "coordinator %s cannot be removed: %w", member.Name, err)
}

// Join takes the caller into the Raft configuration, and notes the addresses under which it can now be reached. It is
// repeatable: a member asks at every start until it is a part of the cluster.
func (s *Calls) Join(
	ctx context.Context, request *connect.Request[berthv1.JoinRequest],
) (*connect.Response[berthv1.JoinResponse], error) {
	message, id := request.Msg, gate.CallerOf(ctx).ID
	p, err := s.Propose(ctx, "", func(p *answer.Moment) (state.Command, error) {
		member, known := p.Member(id)
		if !known {
			return state.Command{}, refusal.Removed(rpc.Denied, gate.CallerOf(ctx).Name)
		}
		if has, needed := max(message.GetFeatureLevel(), 1), p.FeatureLevel(); has < needed {
			return state.Command{}, refusal.New(rpc.Conflict, "coordinator/"+member.Name,
				"install the release that the other coordinators run, "+state.FirstRelease(needed)+" or a later one, and start it again",
				"coordinator %s runs release %s of feature level %d, and this cluster has come to level %d",
				member.Name, cmp.Or(message.GetVersion(), "unknown"), has, needed)
		}
		moved := member
		moved.APIAddress, moved.AgentAddress, moved.RaftAddress =
			message.GetApiAddress(), message.GetAgentAddress(), message.GetRaftAddress()
		if moved == member {
			return state.Command{}, answer.ErrUnchanged
		}
		if _, err := certificateAddresses(moved, nil); err != nil {
			return state.Command{}, refusal.Invalid("coordinator/"+member.Name, "correct advertise and listen in its configuration", err)
		}
		return state.Command{
			Kind: "move coordinator", Expect: []state.Expectation{expectMember(member)}, Members: []model.Member{moved},
			Events: []model.Event{p.Event(ctx, "coordinator.moved", "coordinator/"+member.Name, "is now at %s", moved.RaftAddress)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := s.Consensus.AddNonvoter(ctx, id, message.GetRaftAddress()); err != nil {
		return nil, fmt.Errorf("add coordinator %s to the Raft configuration: %w", Name(s.Source, p.Snapshot, id), err)
	}
	response := &berthv1.JoinResponse{CoordinatorKeys: s.coordinatorKeys(s.Present().Snapshot)}
	for _, server := range s.Consensus.Configuration() {
		if server.ID == id {
			response.Voter = server.Voter
		}
	}
	return connect.NewResponse(response), nil
}

// coordinatorKeys are the hashes of the keys of all that are in the Raft configuration.
func (s *Calls) coordinatorKeys(x *state.Snapshot) []string {
	var members []string
	for _, server := range s.Consensus.Configuration() {
		members = append(members, server.ID)
	}
	return identities.CoordinatorKeys(x, members)
}

// Report takes what a member tells about itself.
func (s *Calls) Report(
	ctx context.Context, request *connect.Request[berthv1.ReportRequest],
) (*connect.Response[berthv1.ReportResponse], error) {
	message := request.Msg
	report := consensus.Report{
		Version: message.GetVersion(), FeatureLevel: message.GetFeatureLevel(),
		Index: message.GetStateIndex(), Hash: message.GetStateHash(), LogSize: units.Bytes(message.GetLogBytes()),
		Write: time.Duration(message.GetWriteSeconds() * float64(time.Second)), Asking: int(message.GetAgentsAsking()),
		AgentsMost: int(message.GetAgentsMost()), MetricsPort: int(message.GetMetricsPort()), History: message.GetHistoryProblem(),
		Backup: consensus.Backup{
			Every: time.Duration(message.GetBackupEverySeconds() * float64(time.Second)), Problem: message.GetBackupProblem(),
		},
	}
	if message.At != nil {
		report.At = message.GetAt().AsTime()
	}
	if message.BackupAt != nil {
		report.Backup.At = message.GetBackupAt().AsTime()
	}
	s.Consensus.Heard(gate.CallerOf(ctx).ID, report)
	now := s.Present()
	heard, digest := lastknown.Heard(now.View())
	response := &berthv1.ReportResponse{HeardDigest: digest, HeardIndex: now.Index()}
	if digest == "" || digest != message.GetHeardDigest() {
		response.Heard = heard
	}
	return connect.NewResponse(response), nil
}

func expectMember(m model.Member) state.Expectation {
	return state.Expectation{Table: state.Members, ID: m.ID, Revision: m.Revision}
}
