package api

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/gate"
	"berth/coordinator/api/members"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Three members; every call is made at one that does not lead.
func TestForwarding(t *testing.T) {
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	lead.addNode("n1", "hv1")
	client := follower.operator()
	ctx := t.Context()

	t.Run("a write in the caller's name", func(t *testing.T) {
		answer, err := client.SetNodeMaintenance(ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv1", On: true}))
		if err != nil || !answer.Msg.GetNode().GetMaintenance() {
			t.Fatalf("%v, %v", answer, err)
		}
		events := c.leader().store.Snapshot().Events(1)
		if events[0].Caller != "operator/alice" {
			t.Errorf("the history says %q did it", events[0].Caller)
		}
	})
	t.Run("a refusal with its code and next step", func(t *testing.T) {
		_, err := client.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv9"}))
		wantRefusal(t, err, rpc.NotFound, "node/hv9")
	})
	t.Run("in every protocol", func(t *testing.T) {
		for name, option := range map[string]connect.ClientOption{
			"Connect with JSON": connect.WithProtoJSON(), "gRPC": connect.WithGRPC(), "gRPC-Web": connect.WithGRPCWeb(),
		} {
			speaks := berthv1connect.NewBerthServiceClient(c.as(pki.RoleOperator, "op1", "alice"), follower.url(), option)
			list, err := speaks.ListNodes(ctx, connect.NewRequest(&berthv1.ListNodesRequest{}))
			if err != nil || len(list.Msg.GetNodes()) != 1 {
				t.Errorf("%s: %v, %v", name, list, err)
			}
			_, err = speaks.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: "hv9"}))
			if rpc.Detail(err).GetCode() != rpc.NotFound {
				t.Errorf("%s: a refusal arrives as %v", name, err)
			}
		}
	})
	t.Run("a stream, message by message", func(t *testing.T) {
		stream, err := client.WatchEvents(ctx, connect.NewRequest(&berthv1.WatchEventsRequest{Follow: true, Backlog: 1}))
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		for _, on := range []bool{false, true} {
			if !stream.Receive() {
				t.Fatal(stream.Err())
			}
			if _, err := client.SetNodeMaintenance(ctx, connect.NewRequest(&berthv1.SetNodeMaintenanceRequest{Node: "hv1", On: on})); err != nil {
				t.Fatal(err)
			}
		}
		if !stream.Receive() || stream.Msg().GetEvent().GetKind() != "node.maintenance" {
			t.Errorf("got %v, %v", stream.Msg(), stream.Err())
		}
	})
	t.Run("a stream of the caller's", func(t *testing.T) {
		if _, err := restore(t, follower, []byte("no snapshot at all"), 4); rpc.Detail(err).GetCode() != rpc.Invalid {
			t.Errorf("a broken backup: %v", err)
		}
		if data := save(t, follower); len(data) == 0 {
			t.Error("an empty backup")
		}
	})
	t.Run("an enrolment, with the address that it came from", func(t *testing.T) {
		secret := follower.token(&berthv1.CreateTokenRequest{Purpose: "agent"})
		if _, err := follower.stranger().Enrol(ctx, connect.NewRequest(agentRequest(c, "hv2", secret, 2))); err != nil {
			t.Fatal(err)
		}
		stranger := follower.stranger()
		for range members.TriesPerMinute {
			_, err := stranger.Enrol(ctx, connect.NewRequest(agentRequest(c, "hv3", "guessed", 3)))
			wantRefusal(t, err, rpc.Denied, "token")
		}
		_, err := stranger.Enrol(ctx, connect.NewRequest(agentRequest(c, "hv3", "guessed", 3)))
		if connect.CodeOf(err) != connect.CodeResourceExhausted || rpc.Detail(err).GetSubject() != "address/127.0.0.1" {
			t.Errorf("one guess too many: %v about %s", err, rpc.Detail(err).GetSubject())
		}
	})
	t.Run("nothing of a role that may not", func(t *testing.T) {
		agent := berthv1connect.NewBerthServiceClient(c.as(pki.RoleAgent, "n1", "hv1"), follower.url())
		_, err := agent.ListVMs(ctx, connect.NewRequest(&berthv1.ListVMsRequest{}))
		wantRefusal(t, err, rpc.Denied, "")
	})
	t.Run("the status, but not a stale one", func(t *testing.T) {
		status := func(m *coordinator, stale bool) *berthv1.StatusResponse {
			answer, err := m.operator().Status(ctx, connect.NewRequest(&berthv1.StatusRequest{Stale: stale}))
			if err != nil {
				t.Fatal(err)
			}
			return answer.Msg
		}
		got := status(follower, false)
		if got.GetAnsweredBy() != got.GetLeader() || got.GetStale() || len(got.GetMembers()) != 3 || got.GetNodesTotal() != 2 {
			t.Errorf("the status is %v", got)
		}
		for _, member := range got.GetMembers() {
			if !member.GetReachable() || !member.GetVoter() || member.GetLeader() != (member.GetName() == got.GetLeader()) {
				t.Errorf("the leader sees %v", member)
			}
		}
		got = status(follower, true)
		if got.GetAnsweredBy() != follower.record.Name || !got.GetStale() || got.GetLeader() == "" || len(got.GetProblems()) == 0 {
			t.Errorf("the stale status is %v", got)
		}
	})
	t.Run("not in a circle", func(t *testing.T) {
		// A coordinator that takes the wrong one for the leader.
		request, err := http.NewRequestWithContext(
			ctx, http.MethodPost, follower.url()+berthv1connect.BerthServiceListNodesProcedure, strings.NewReader("{}"),
		)
		c.check(err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Berth-Forwarded-For", forwardedFor(pki.Identity{Role: pki.RoleOperator, ID: "op1", Name: "alice"}))
		response, err := c.as(pki.RolePeer, lead.id, lead.record.Name).Do(request)
		c.check(err)
		response.Body.Close()
		if response.StatusCode != http.StatusServiceUnavailable && !follower.consensus.IsLeader() {
			t.Errorf("forwarded twice: status %d", response.StatusCode)
		}
	})
}

// The leader dies while it works on a call that was forwarded to it: the caller is told that the outcome is not known,
// and the next call finds the next leader.
func TestTheLeaderDies(t *testing.T) {
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	client := follower.operator()
	watched, err := client.WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{Follow: true}))
	c.check(err)
	defer watched.Close()

	working := make(chan struct{})
	dead := make(chan struct{})
	lead.control.start = func(lifecycle.StartVM) (lifecycle.Started, error) {
		close(working)
		<-dead
		return lifecycle.Started{}, errors.New("nobody hears this")
	}
	go func() {
		defer close(dead)
		<-working
		lead.kill()
	}()
	_, err = client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{Name: "web", RequestId: "r1"}))
	wantRefusal(t, err, rpc.Unavailable, "coordinator/"+lead.record.Name)
	<-dead

	for watched.Receive() {
		t.Logf("event %v", watched.Msg())
	}
	if connect.CodeOf(watched.Err()) == connect.CodeUnknown || watched.Err() == nil {
		t.Errorf("the stream ended with %v", watched.Err())
	}

	for _, m := range c.members {
		m.control.start = func(lifecycle.StartVM) (lifecycle.Started, error) {
			return lifecycle.Started{Operation: operation.Operation{ID: "o1"}}, nil
		}
	}
	began := time.Now()
	answer, err := client.StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{Name: "web", RequestId: "r1"}))
	if err != nil || answer.Msg.GetOperation().GetId() != "o1" {
		t.Errorf("the same request, %s after the leader's death: %v, %v", time.Since(began), answer, err)
	}
}

func TestWithoutAQuorum(t *testing.T) {
	c := newCloud(t, 3)
	lead, last := c.leader(), c.follower()
	lead.addNode("n1", "hv1")
	lead.addNode("n2", "hv2")
	lead.stand()
	lead.reportIdle("n1", 64*units.GiB)
	last.stand()
	seen, err := last.operator().Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil || seen.Msg.GetNodesUp() != 1 || seen.Msg.HeardSeconds != nil {
		t.Fatalf("with a leader: %v, %v", seen, err)
	}
	known := last.store.Snapshot()
	reporter := berthv1connect.NewMemberServiceClient(c.as(pki.RolePeer, last.id, last.record.Name), lead.url())
	told, err := reporter.Report(t.Context(), connect.NewRequest(&berthv1.ReportRequest{}))
	c.check(err)
	if told.Msg.GetHeardIndex() < known.Index() {
		t.Errorf("it was told of nodes of %d, and knew those of %d", told.Msg.GetHeardIndex(), known.Index())
	}
	last.api.queryCalls.keeper.Keep(told.Msg.GetHeard(), told.Msg.GetHeardDigest(), last.now(), known)
	again, err := reporter.Report(t.Context(), connect.NewRequest(&berthv1.ReportRequest{HeardDigest: told.Msg.GetHeardDigest()}))
	if c.check(err); told.Msg.GetHeard() == nil || again.Msg.GetHeard() != nil || again.Msg.GetHeardDigest() != told.Msg.GetHeardDigest() {
		t.Errorf("it was told %v, and then %v", told.Msg, again.Msg)
	}
	lead.addNode("n3", "hv3") // nothing is told of it any more
	lead.stand()
	c.eventually("the last one has its record", func() bool { return last.store.Snapshot().HasNode("n3") })
	for _, m := range c.members {
		if m != last {
			m.kill()
		}
	}
	c.eventually("the last one notices", func() bool {
		_, known := last.consensus.Leader()
		return !known
	})
	client := last.operator()
	began := time.Now()
	_, err = client.ListNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
	wantRefusal(t, err, rpc.NoLeader, "")
	if took := time.Since(began); took > gate.LeaderPatience+2*time.Second {
		t.Errorf("it took %s to say so", took)
	}
	_, err = client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	wantRefusal(t, err, rpc.NoLeader, "")
	later := last.now().Add(40 * time.Second)
	last.stands.Store(&later)
	status, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{Stale: true}))
	if err != nil || !status.Msg.GetStale() || status.Msg.GetLeader() != "" || len(status.Msg.GetMembers()) != 3 {
		t.Fatalf("the stale status: %v, %v", status, err)
	}
	if known := status.Msg; known.GetNodesUp() != 1 || known.GetNodesTotal() != 3 || known.GetHeardSeconds() != 40 {
		t.Errorf("what was up is told as %v", known)
	}
	nodes, err := client.LastKnownNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
	const up = berthv1.NodeState_NODE_STATE_UP
	if c.check(err); len(nodes.Msg.GetNodes()) != 3 || nodes.Msg.GetLastKnown().GetAgeSeconds() != 40 ||
		nodes.Msg.GetNodes()[0].GetState() != up || nodes.Msg.GetNodes()[1].GetState() == up ||
		nodes.Msg.GetNodes()[2].GetState() != berthv1.NodeState_NODE_STATE_UNSPECIFIED {
		t.Errorf("the nodes are %v", nodes.Msg)
	}
	if !slices.ContainsFunc(status.Msg.GetProblems(), func(line string) bool { return strings.Contains(line, "no leader") }) {
		t.Errorf("its problems: %q", status.Msg.GetProblems())
	}
	if nodes.Msg.GetLastKnown().GetTargets() {
		t.Error("where figures are read is known to one whom nobody has told")
	}
	last.api.nodeCalls.targets = func() (members, nodes map[string]string, told bool) {
		return map[string]string{last.record.Name: "last:7424"}, map[string]string{"n2": "hv2:7425"}, true
	}
	last.api.queryCalls.targets = last.api.nodeCalls.targets
	nodes, err = client.LastKnownNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
	c.check(err)
	status, err = client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{Stale: true}))
	c.check(err)
	itself := func(m *berthv1.Member) bool {
		return m.GetName() == last.record.Name && m.GetMetricsAddress() == "last:7424"
	}
	if all := nodes.Msg.GetNodes(); !nodes.Msg.GetLastKnown().GetTargets() || !status.Msg.GetLastKnown().GetTargets() ||
		all[0].GetMetricsAddress() != "" || all[1].GetMetricsAddress() != "hv2:7425" || !slices.ContainsFunc(status.Msg.GetMembers(), itself) {
		t.Errorf("figures are read at %v and %v", nodes.Msg, status.Msg.GetMembers())
	}
}

// A leader that is known and cannot be reached: nothing was sent, so the call waits for another one, and then says what
// to check.
func TestUnreachableLeader(t *testing.T) {
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	moved := lead.record
	moved.APIAddress = freeAddress(t) // nobody listens there
	client := follower.operator()
	lead.propose(moveMember(lead, moved))
	c.eventually("the follower knows", func() bool {
		member, _ := follower.store.Snapshot().Member(lead.id)
		return member.APIAddress == moved.APIAddress
	})
	_, err := client.ListNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
	wantRefusal(t, err, rpc.Unreachable, "coordinator/"+lead.record.Name)
	_, err = client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	wantRefusal(t, err, rpc.Unreachable, "coordinator/"+lead.record.Name)

	// Meanwhile another one is elected: the waiting call reaches it.
	done := make(chan error, 1)
	go func() {
		_, err := client.ListNodes(context.WithoutCancel(t.Context()), connect.NewRequest(&berthv1.ListNodesRequest{}))
		done <- err
	}()
	time.Sleep(100 * time.Millisecond) // the call is on its way; if it is not, it finds the new leader at once
	c.check(lead.consensus.Transfer(t.Context()))
	if err := <-done; err != nil {
		t.Errorf("across an election: %v", err)
	}
}

func TestAMemberThatHangsUpIsNotALeader(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	moved := lead.record
	moved.APIAddress = listener.Addr().String()
	lead.propose(moveMember(lead, moved))
	c.eventually("the follower knows", func() bool {
		member, _ := follower.store.Snapshot().Member(lead.id)
		return member.APIAddress == moved.APIAddress
	})
	_, err = follower.operator().ListNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
	wantRefusal(t, err, rpc.Unreachable, "coordinator/"+lead.record.Name)
}
