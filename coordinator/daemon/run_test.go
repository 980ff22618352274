package daemon

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/cli/clientconfig"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func TestOneCoordinator(t *testing.T) {
	m := newMachine(t, "c1")
	made := m.init()
	var indexes []int // of the states that it led from
	m.run()
	status := m.status("", led)
	if status.GetClusterId() != made.ClusterID || status.GetLeader() != "c1" || len(status.GetMembers()) != 1 ||
		len(status.GetProblems()) > 0 {
		t.Errorf("the status is %v", status)
	}
	_, err := m.operator("").StartVM(t.Context(), connect.NewRequest(&berthv1.StartVMRequest{
		Name: "web",
		Vm:   &berthv1.NewVM{Spec: &berthv1.VMSpec{MemoryBytes: 512 << 20, Vcpus: 1}},
	}))
	if rpc.Detail(err).GetCode() != rpc.NoNodeFits {
		t.Errorf("a start without nodes: %v", err)
	}
	stream, err := m.operator("").WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{Follow: true}))
	m.check(err)
	defer stream.Close()

	began := time.Now()
	m.halt()
	if took := time.Since(began); took > streamsGrace+3*time.Second {
		t.Errorf("it took %s to stop", took)
	}
	for stream.Receive() {
	}
	if rpc.Detail(stream.Err()).GetCode() != rpc.Unavailable {
		t.Errorf("a watcher was told %v", stream.Err())
	}

	m.run()
	again := m.status("", led)
	// Raft applies what was committed before only once there is a leader: work on less would repeat what was done.
	for _, line := range strings.Split(m.log.String(), "\n") {
		if _, index, leads := strings.Cut(line, "state_index="); leads {
			at, err := strconv.Atoi(strings.Fields(index)[0])
			m.check(err)
			indexes = append(indexes, at)
		}
	}
	// Its own record may be stored before or after it says for the first time what it leads from.
	if len(indexes) != 2 || indexes[1] == 0 || indexes[1] < indexes[0] {
		t.Errorf("it has led from states at %v: want all that was committed before, the second time", indexes)
	}
	if again.GetAppliedIndex() <= status.GetAppliedIndex() || len(again.GetMembers()) != 1 {
		t.Errorf("after a restart the status is %v", again)
	}
}

// Three machines: one makes the cluster, two join; the leader is stopped, and the others go on.
func TestThreeCoordinators(t *testing.T) {
	first := newMachine(t, "c1")
	made := first.init()
	first.run()
	first.status("", led)
	all := []*machine{first}
	for _, name := range []string{"c2", "c3"} {
		m := newMachine(t, name)
		joined, err := Join(t.Context(), JoinOptions{
			Address: all[len(all)-1].load().Listen.API, // any of them
			Token:   first.token(&berthv1.CreateTokenRequest{Purpose: "coordinator", Name: name}), ConfigPath: m.config,
			ClientConfig: m.client,
		})
		m.check(err)
		if joined.NoOperator != nil || joined.Operator != "default" {
			t.Errorf("%s has no operator: %q, %v", name, joined.Operator, joined.NoOperator)
		}
		if joined.ClusterID != made.ClusterID {
			t.Errorf("%s joined %+v", name, joined)
		}
		if _, raft := m.files()["raft/raft.db"]; raft {
			t.Error("join made a Raft store: only init may bootstrap")
		}
		m.run()
		all = append(all, m)
		voters := len(all)
		first.status(m.load().Listen.API, func(s *berthv1.StatusResponse) bool {
			return voting(s) == voters
		})
		// Root of each coordinator has a client configuration of its own, with all members.
		loaded, err := clientconfig.Load(m.client)
		m.check(err)
		context, _, err := loaded.Context("", m.client)
		m.check(err)
		if len(context.Coordinators) != voters || !slices.Contains(context.Coordinators, m.load().Listen.API) {
			t.Errorf("the context of %s lists %v", name, context.Coordinators)
		}
		m.status(m.load().Listen.API, led)
	}

	status := first.status("", led)
	var rest []*machine
	for _, m := range all {
		if m.load().Name == status.GetLeader() {
			m.halt()
		} else {
			rest = append(rest, m)
		}
	}
	after := first.status(rest[0].load().Listen.API, func(s *berthv1.StatusResponse) bool { return s.GetLeader() != status.GetLeader() })
	if after.GetTerm() <= status.GetTerm() {
		t.Errorf("term %d after term %d", after.GetTerm(), status.GetTerm())
	}
	_, err := first.operator(rest[1].load().Listen.API).ListNodes(t.Context(), connect.NewRequest(&berthv1.ListNodesRequest{}))
	first.check(err)
}

func voting(s *berthv1.StatusResponse) int {
	count := 0
	for _, member := range s.GetMembers() {
		if member.GetVoter() && member.GetReachable() {
			count++
		}
	}
	return count
}

// A member that comes back under another address tells the leader, who tells the others.
func TestAMemberMoves(t *testing.T) {
	first := newMachine(t, "c1")
	first.init()
	first.run()
	first.status("", led)
	m := newMachine(t, "c2")
	_, err := Join(t.Context(), JoinOptions{
		Address: first.load().Listen.API, Token: first.token(&berthv1.CreateTokenRequest{Purpose: "coordinator"}), ConfigPath: m.config,
	})
	m.check(err)
	m.run()
	first.status("", func(s *berthv1.StatusResponse) bool { return voting(s) == 2 })
	m.halt()

	third := newMachine(t, "c2") // for its addresses
	c := third.load()
	c.DataDir = m.data
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, c, hclog.NewNullLogger()) }()
	m.stop = func() error { cancel(); return <-ended }
	api, agent, raft := c.addresses()
	first.status("", func(s *berthv1.StatusResponse) bool {
		for _, member := range s.GetMembers() {
			if member.GetName() == "c2" {
				return member.GetAddress() == raft && member.GetApiAddress() == api && member.GetAgentAddress() == agent &&
					member.GetReachable() && member.GetVoter()
			}
		}
		return false
	})
}

func TestJoinRefusals(t *testing.T) {
	first := newMachine(t, "c1")
	first.init()
	first.run()
	first.status("", led)
	api := first.load().Listen.API
	good := func() string { return first.token(&berthv1.CreateTokenRequest{Purpose: "coordinator"}) }
	other, err := pki.NewAuthority("other", time.Now())
	first.check(err)
	fingerprint, err := pki.Fingerprint(other.CertificatePEM())
	first.check(err)
	foreign, _, err := pki.NewToken("coordinator", fingerprint)
	first.check(err)
	cut := good()

	for name, test := range map[string]struct {
		address, token string
		cause          error
		says           string
	}{
		"a token that was cut":         {api, cut[:len(cut)-4], pki.ErrToken, ""},
		"a token for an agent":         {api, first.token(&berthv1.CreateTokenRequest{Purpose: "agent"}), ErrToken, "--for coordinator"},
		"a token of another cluster":   {api, foreign, nil, "another cluster"},
		"a token for another name":     {api, first.token(&berthv1.CreateTokenRequest{Purpose: "coordinator", Name: "c9"}), nil, `"c9"`},
		"an address that is not one":   {"http://x", good(), rpc.ErrAddress, ""},
		"an address where nobody is":   {freeAddress(t), good(), nil, "refused"},
		"a name that is not its other": {"no-such-host.invalid", good(), nil, "no-such-host.invalid"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, "c2")
			_, err := Join(t.Context(), JoinOptions{Address: test.address, Token: test.token, ConfigPath: m.config})
			if err == nil || test.cause != nil && !errors.Is(err, test.cause) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("refused as %v, want %v saying %q", err, test.cause, test.says)
			}
			if files := mayList(m); len(files) > 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
	t.Run("a machine that is a member already", func(t *testing.T) {
		_, err := Join(t.Context(), JoinOptions{Address: api, Token: good(), ConfigPath: first.config})
		if !errors.Is(err, ErrNotEmpty) {
			t.Errorf("refused as %v", err)
		}
	})
	if members := first.status("", led).GetMembers(); len(members) != 1 {
		t.Errorf("refused machines became members: %v", members)
	}
}

func mayList(m *machine) []string {
	var names []string
	if _, err := os.Stat(m.data); err != nil {
		return nil
	}
	for name := range m.files() {
		names = append(names, name)
	}
	return names
}

// What Raft cannot go on without ends the process, with the reason.
func TestAFatalFaultEndsIt(t *testing.T) {
	m := newMachine(t, "c1")
	m.init()
	d := &daemon{config: m.load(), home: place{m.data}, log: hclog.NewNullLogger(), fatal: make(chan error, 1)}
	m.check(d.identify())
	listeners, err := d.listen(t.Context())
	m.check(err)
	m.check(d.assemble())
	ended := make(chan error, 1)
	go func() { ended <- d.serve(t.Context(), listeners) }()
	m.status("", led)
	full := errors.New("no space left on device")
	d.consensusConfig(nil).Fatal(full)
	select {
	case err := <-ended:
		if !errors.Is(err, full) {
			t.Errorf("it ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it goes on")
	}
	m.check(d.closeConsensus()) // the process would be gone by now
	d.peers.CloseIdleConnections()
}
