package api

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func moveMember(m *coordinator, to model.Member) state.Command {
	now, _ := m.store.Snapshot().Member(m.id)
	expect := []state.Expectation{{Table: state.Members, ID: now.ID, Revision: now.Revision}}
	return state.Command{Kind: "test", Expect: expect, Members: []model.Member{to}}
}

func TestMembers(t *testing.T) {
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	remove := func(at *coordinator, member string) error {
		_, err := at.operator().RemoveMember(t.Context(), connect.NewRequest(&berthv1.RemoveMemberRequest{Member: member}))
		return err
	}
	join := func(as *coordinator, request *berthv1.JoinRequest) (*berthv1.JoinResponse, error) {
		client := berthv1connect.NewMemberServiceClient(c.as(pki.RolePeer, as.id, as.record.Name), follower.url())
		answer, err := client.Join(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	addresses := func(m model.Member) *berthv1.JoinRequest {
		return &berthv1.JoinRequest{
			ApiAddress: m.APIAddress, AgentAddress: m.AgentAddress, RaftAddress: m.RaftAddress,
			FeatureLevel: state.FeatureLevel, Version: "0.6",
		}
	}

	t.Run("join again without effect", func(t *testing.T) {
		index := lead.store.Snapshot().Index()
		answer, err := join(follower, addresses(follower.record))
		if err != nil || !answer.GetVoter() {
			t.Errorf("%v, %v", answer, err)
		}
		if lead.store.Snapshot().Index() != index {
			t.Error("something was written")
		}
	})
	t.Run("of an older release are not taken in", func(t *testing.T) {
		old := addresses(follower.record)
		old.FeatureLevel, old.Version = 0, ""
		_, err := join(follower, old)
		wantRefusal(t, err, rpc.Conflict, "coordinator/"+follower.record.Name)
		if err != nil && !strings.Contains(err.Error(), "runs release unknown of feature level 1, and this cluster has come to level 3") {
			t.Error(err)
		}
	})
	t.Run("report how they are", func(t *testing.T) {
		client := berthv1connect.NewMemberServiceClient(c.as(pki.RolePeer, follower.id, follower.record.Name), follower.url())
		at := time.Now().Add(-time.Minute).UTC()
		_, err := client.Report(t.Context(), connect.NewRequest(&berthv1.ReportRequest{
			Version: "0.6", FeatureLevel: 2, LogBytes: 5 << 30, BackupEverySeconds: 900, BackupAt: timestamppb.New(at), BackupProblem: "no room",
		}))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := lead.operator().ListMembers(t.Context(), connect.NewRequest(&berthv1.ListMembersRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		for _, member := range answer.Msg.GetMembers() {
			if !member.GetHealthy() || member.GetHealth() != "" {
				t.Errorf("%s is not healthy: %q", member.GetName(), member.GetHealth())
			}
			if member.GetId() == follower.id && (member.GetVersion() != "0.6" || member.GetLogBytes() != 5<<30 ||
				member.GetBackupEverySeconds() != 900 || !member.GetBackupAt().AsTime().Equal(at) || member.GetBackupProblem() != "no room") {
				t.Errorf("what it told came out as %v", member)
			}
		}
	})
	t.Run("tell their new addresses", func(t *testing.T) {
		moved := follower.record
		moved.AgentAddress = "127.0.0.1:9999"
		if _, err := join(follower, addresses(moved)); err != nil {
			t.Fatal(err)
		}
		if member, _ := lead.store.Snapshot().Member(follower.id); member.AgentAddress != "127.0.0.1:9999" {
			t.Errorf("recorded %+v", member)
		}
		_, err := join(follower, &berthv1.JoinRequest{RaftAddress: "nonsense", FeatureLevel: state.FeatureLevel})
		wantRefusal(t, err, rpc.Invalid, "coordinator/"+follower.record.Name)
	})
	t.Run("are listed", func(t *testing.T) {
		list, err := follower.operator().ListMembers(t.Context(), connect.NewRequest(&berthv1.ListMembersRequest{}))
		if err != nil || list.Msg.GetClusterId() != clusterID || len(list.Msg.GetMembers()) != 3 {
			t.Errorf("%v, %v", list, err)
		}
	})
	t.Run("that do not exist are not removed", func(t *testing.T) {
		wantRefusal(t, remove(follower, "c9"), rpc.NotFound, "coordinator/c9")
	})
	t.Run("are not removed when the others could not decide", func(t *testing.T) {
		var third *coordinator
		for _, m := range c.members {
			if m != lead && m != follower {
				third = m
			}
		}
		third.kill()
		c.eventually("the leader misses the third", func() bool { return !lead.consensus.Stats().Members[third.id].Reachable })
		wantRefusal(t, remove(lead, follower.record.Name), rpc.Conflict, "coordinator/"+follower.record.Name)
		if err := remove(lead, third.record.Name); err != nil {
			t.Errorf("the dead one: %v", err)
		}
		_, err := join(third, addresses(third.record))
		wantRefusal(t, err, rpc.Denied, "coordinator/"+third.record.Name)
		said := ""
		for _, event := range lead.store.Snapshot().Events(0) {
			if event.Kind == "coordinator.removed" && event.Caller == "operator/alice" {
				said = event.Message
			}
		}
		for _, command := range []string{"'berth ca rotate'", "'berth ca rotate libvirt'", "'berth ca rotate qemu'"} {
			if !strings.Contains(said, command) { // it has the keys of all three
				t.Errorf("the history does not name %s: %q", command, said)
			}
		}
	})
	t.Run("that lead hand over and go", func(t *testing.T) {
		if err := remove(lead, lead.record.Name); err != nil {
			t.Fatal(err)
		}
		if c.leader() != follower || len(follower.consensus.Configuration()) != 1 {
			t.Errorf("the configuration is %v", follower.consensus.Configuration())
		}
		wantRefusal(t, remove(follower, follower.record.Name), rpc.Conflict, "coordinator/"+follower.record.Name)
	})
	t.Run("that were removed are nobody", func(t *testing.T) {
		peer := berthv1connect.NewBerthServiceClient(c.as(pki.RolePeer, lead.id, lead.record.Name), follower.url())
		_, err := peer.ListNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
		wantRefusal(t, err, rpc.Denied, "coordinator/"+lead.record.Name)
	})
}
