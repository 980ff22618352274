package consensus

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"

	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/integration/loopback"
	"berth/shared/pki"
)

func TestMain(m *testing.M) {
	asMember()
	goleak.VerifyTestMain(m, // see play
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*Raft).leadershipTransfer"),
		goleak.IgnoreAnyFunction("github.com/hashicorp/raft.(*Raft).leaderLoop.func2"),
		goleak.IgnoreTopFunction("github.com/hashicorp/raft.(*deferError).Error")) // see send
}

const patience = 30 * time.Second // for things that take a second at most on an idle machine

// authority signs for one cluster.
type authority struct {
	*pki.Authority
	id string
}

func newAuthority(t testing.TB, clusterID string) *authority {
	t.Helper()
	a, err := pki.NewAuthority(clusterID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &authority{a, clusterID}
}

func (a *authority) files(t testing.TB, role pki.Role, id string) pki.Files {
	t.Helper()
	csr, key, err := pki.NewRequest(id)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := a.Sign(csr, pki.Identity{Role: role, ID: id, Name: id, ClusterID: a.id}, []string{"127.0.0.1"},
		time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f := pki.Files{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for path, data := range map[string][]byte{f.CA: a.CertificatePEM(), f.Certificate: certificate, f.Key: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// peer is one member of a test's cluster, over its restarts.
type peer struct {
	t   testing.TB
	cfg Config
	*Consensus
	store *state.Store

	behind atomic.Int64 // by how many nanoseconds its wall clock is late; a test may set it while the member runs

	mu     sync.Mutex
	fatals []error
}

func newPeer(t testing.TB, ca *authority, id string) *peer {
	t.Helper()
	at, err := loopback.Address()
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{t: t}
	p.cfg = Config{
		DataDir: filepath.Join(t.TempDir(), "raft"), MemberID: id, ClusterID: ca.id, Bind: at, Advertise: at,
		TLS: ca.files(t, pki.RolePeer, id), Stability: 200 * time.Millisecond,
		Seals:  func() (seal.Keys, error) { return seal.Keys{{7}}, nil },
		Logger: hclog.New(&hclog.LoggerOptions{Name: id, Output: testLog{t}, Level: hclog.Warn}),
		Fatal: func(err error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.fatals = append(p.fatals, err)
		},
	}
	p.cfg.seams.clock = func() time.Time { return time.Now().Add(-time.Duration(p.behind.Load())) }
	t.Cleanup(p.kill)
	return p
}

func (p *peer) died() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fatals
}

// testLog drops what is logged once the test is over.
type testLog struct{ t testing.TB }

func (l testLog) Write(b []byte) (int, error) {
	if l.t.Context().Err() == nil && testing.Verbose() {
		l.t.Logf("%s", b)
	}
	return len(b), nil
}

func (p *peer) start() {
	p.t.Helper()
	store := state.NewStore()
	c, err := Open(p.cfg, store)
	if err != nil {
		p.t.Fatal(err)
	}
	p.Consensus, p.store = c, store
	go func() {
		for range c.Leadership() { // somebody has to listen
		}
	}()
}

// kill stops the member without a word to the others.
func (p *peer) kill() {
	if p.Consensus == nil {
		return
	}
	p.ending.Do(func() { p.end() })
	p.Consensus = nil
}

func (p *peer) bootstrap() {
	p.t.Helper()
	if err := Bootstrap(p.cfg); err != nil {
		p.t.Fatal(err)
	}
	p.start()
}

// team is a cluster of running peers.
type team []*peer

// newTeam bootstraps the first and lets the others join.
func newTeam(t testing.TB, ca *authority, size int) team { return newTunedTeam(t, ca, size, nil) }

// calm has Raft wait long for a leader, for tests of what one leader does: a busy machine would elect another in the middle of one.
func calm(c *raft.Config) {
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = 5*time.Second, 5*time.Second, 5*time.Second
}

func newTunedTeam(t testing.TB, ca *authority, size int, tune func(*raft.Config)) team {
	t.Helper()
	var all team
	for i := range size {
		p := newPeer(t, ca, fmt.Sprintf("m%d", i+1))
		p.cfg.seams.tune = tune
		all = append(all, p)
		if i == 0 {
			p.bootstrap()
			continue
		}
		p.start()
		all.join(p)
	}
	return all
}

func (all team) join(p *peer) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	leader := all.leader()
	if err := leader.AddNonvoter(ctx, p.cfg.MemberID, p.cfg.Advertise); err != nil {
		p.t.Fatalf("add %s: %v", p.cfg.MemberID, err)
	}
	if err := leader.Promote(ctx, p.cfg.MemberID); err != nil {
		p.t.Fatalf("promote %s: %v", p.cfg.MemberID, err)
	}
}

// leader waits until one of those running leads, and has committed something.
func (all team) leader() *peer {
	t := all[0].t
	t.Helper()
	var leader *peer
	eventually(t, "a leader", func() bool {
		for _, p := range all {
			if p.Consensus != nil && p.VerifyRead(t.Context()) == nil {
				leader = p
				return true
			}
		}
		return false
	})
	return leader
}

func (all team) running() team {
	var running team
	for _, p := range all {
		if p.Consensus != nil {
			running = append(running, p)
		}
	}
	return running
}

// agree waits until all that run have the same state, and compares.
func (all team) agree() {
	t := all[0].t
	t.Helper()
	leader := all.leader()
	want := leader.store.Snapshot()
	for _, p := range all.running() {
		eventually(t, p.cfg.MemberID+" catches up", func() bool { return p.store.Snapshot().Index() >= want.Index() })
		if got := p.store.Snapshot(); got.Index() == want.Index() && got.Hash() != want.Hash() {
			t.Errorf("%s and %s have parted at index %d", p.cfg.MemberID, leader.cfg.MemberID, want.Index())
		}
	}
}

func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func enrol(name string) state.Command {
	return state.Command{
		Key: "enrol-" + name, Kind: "enrol node", Caller: "operator/admin", At: time.Now(),
		Expect: []state.Expectation{{Table: state.Nodes, ID: name}},
		Nodes:  []model.Node{{ID: name, Name: name}},
	}
}

func (p *peer) mustPropose(command state.Command) state.Result {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	result, err := p.Propose(ctx, command)
	if err != nil || result.Refusal != nil {
		p.t.Fatalf("propose %q: %+v, %v", command.Kind, result, err)
	}
	return result
}

// persist proposes to the leader of the moment until the answer is known.
func (all team) persist(ctx context.Context, command state.Command) error {
	for ctx.Err() == nil {
		for _, p := range all {
			c := p.Consensus
			if c == nil || !c.IsLeader() {
				continue
			}
			result, err := c.Propose(ctx, command)
			switch {
			case err == nil && result.Refusal != nil:
				return result.Refusal
			case err == nil:
				return nil
			case !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNotLeader):
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return ctx.Err()
}
