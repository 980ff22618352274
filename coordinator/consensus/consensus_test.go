package consensus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
)

func TestOneMemberLeadsAndKeepsItsStateOverARestart(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	p.bootstrap()
	all := team{p}
	all.leader()
	result := p.mustPropose(enrol("n1"))
	if node, ok := p.store.Snapshot().Node("n1"); !ok || node.Revision != result.Index {
		t.Errorf("the node is at revision %d, the result says %d", node.Revision, result.Index)
	}
	eventually(t, "the cluster's ID is stored", func() bool { return p.store.Snapshot().Meta(state.MetaClusterID) == "c1" })
	eventually(t, "the feature level is raised", func() bool { return p.store.Snapshot().FeatureLevel() == state.FeatureLevel })
	want := p.store.Snapshot()

	p.kill()
	p.start()
	all.leader()
	got := p.store.Snapshot()
	if got.Hash() != want.Hash() || got.Index() != want.Index() {
		t.Errorf("restarted at %d with hash %s, was at %d with %s", got.Index(), got.Hash(), want.Index(), want.Hash())
	}
	if again := p.mustPropose(enrol("n1")); again.Index != result.Index {
		t.Errorf("after a restart the same key got index %d, want %d", again.Index, result.Index)
	}
}

func TestNoAcknowledgedWriteIsLostWithTheLeader(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex
	var acknowledged []string
	written := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acknowledged)
	}
	stop := make(chan struct{})
	victim := all.leader()
	survivors := team{}
	for _, p := range all {
		if p != victim {
			survivors = append(survivors, p)
		}
	}
	for writer := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("n-%d-%d", writer, i)
				command := enrol(name)
				// To the leader that dies first, then with the same key to those that live.
				if _, err := victim.Propose(ctx, command); err != nil {
					if err := survivors.persist(ctx, command); err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
				}
				mu.Lock()
				acknowledged = append(acknowledged, name)
				mu.Unlock()
			}
		})
	}
	eventually(t, "writes before the kill", func() bool { return written() > 50 })
	victim.ending.Do(func() { victim.end() })
	before := written()
	eventually(t, "writes after the kill", func() bool { return written() > before+50 })
	close(stop)
	wg.Wait()

	victim.start() // from its disk
	all.agree()
	for _, p := range all {
		for _, name := range acknowledged {
			if _, ok := p.store.Snapshot().Node(name); !ok {
				t.Fatalf("%s lost %s, which was acknowledged", p.cfg.MemberID, name)
			}
		}
	}
}

func TestWithoutAQuorumNothingIsAcknowledgedAndNothingIsRead(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	leader.mustPropose(enrol("n1"))
	for _, p := range all {
		if p != leader {
			p.kill()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_, err := leader.Propose(ctx, enrol("n2"))
	if !errors.Is(err, ErrUnknown) && !errors.Is(err, ErrNotLeader) {
		t.Errorf("a write without a quorum: %v", err)
	}
	if err := leader.VerifyRead(ctx); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a read without a quorum: %v", err)
	}
	eventually(t, "the leader steps down", func() bool { return !leader.IsLeader() })
	if _, err := leader.Propose(ctx, enrol("n3")); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a write to a follower: %v", err)
	}
	if err := leader.Barrier(ctx); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a barrier on a follower: %v", err)
	}
	if _, ok := leader.store.Snapshot().Node("n1"); !ok {
		t.Error("what was committed before is gone")
	}
}

func TestAnEndedContextLeavesTheOutcomeUnknown(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 2)
	leader := all.leader()
	all[1].kill()
	if leader != all[0] {
		t.Fatal("the second member leads although the first did not fail")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := leader.Propose(ctx, enrol("n1"))
	if !errors.Is(err, ErrUnknown) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the outcome unknown for the deadline", err)
	}
}

func TestAStrongReadSeesEveryAcknowledgedWrite(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	for round := range 5 {
		name := fmt.Sprintf("n%d", round)
		if err := all.persist(t.Context(), enrol(name)); err != nil {
			t.Fatal(err)
		}
		leader := all.leader()
		if err := leader.Transfer(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := all.leader() // verified, so the write has to be here
		if _, ok := next.store.Snapshot().Node(name); !ok {
			t.Fatalf("%s led and had verified a read, but not %s", next.cfg.MemberID, name)
		}
	}
}

func TestLeadershipIsToldInTurns(t *testing.T) {
	ca := newAuthority(t, "c1")
	p := newPeer(t, ca, "m1")
	if err := Bootstrap(p.cfg); err != nil {
		t.Fatal(err)
	}
	p.store = state.NewStore()
	var err error
	if p.Consensus, err = Open(p.cfg, p.store); err != nil {
		t.Fatal(err)
	}
	leadership := p.Leadership()
	first := <-leadership
	if !first.Leading || first.Term == 0 || first.Term != p.Term() {
		t.Fatalf("the first notice is %+v in term %d", first, p.Term())
	}
	other := newPeer(t, ca, "m2")
	other.start()
	all := team{p, other}
	all.join(other)
	for range 3 { // nobody reads meanwhile
		if err := p.Transfer(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the other one leads", func() bool { return other.IsLeader() && other.VerifyRead(t.Context()) == nil })
		if err := other.Transfer(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, "it leads again", func() bool { return p.IsLeader() && p.VerifyRead(t.Context()) == nil })
	}
	last := first
	for range 6 {
		next := <-leadership
		if next.Leading == last.Leading || next.Leading && next.Term <= last.Term || !next.Leading && next.Term != last.Term {
			t.Fatalf("%+v follows %+v", next, last)
		}
		last = next
	}
	if err := p.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	for next := range leadership {
		if next.Leading {
			t.Errorf("a gain after the end: %+v", next)
		}
	}
}

func TestAPlannedStopHandsTheLeadershipOn(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	if err := leader.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := leader.Shutdown(t.Context()); err != nil {
		t.Errorf("stopped twice: %v", err)
	}
	eventually(t, "another one leads", func() bool {
		for _, p := range all {
			if p != leader && p.IsLeader() {
				return true
			}
		}
		return false
	})
	if _, err := leader.Propose(t.Context(), enrol("n1")); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a write after the end: %v", err)
	}
	if err := leader.VerifyRead(t.Context()); !errors.Is(err, ErrNotLeader) {
		t.Errorf("a read after the end: %v", err)
	}
	if stats := leader.Stats(); stats.State != "shutdown" {
		t.Errorf("the state is %q", stats.State)
	}
}

func TestTooLargeACommandIsNotSent(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 1)
	command := enrol("n1")
	command.Events = []model.Event{{Message: strings.Repeat("x", state.MaxCommand)}}
	if _, err := all.leader().Propose(t.Context(), command); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestRefusalsAreAnswersNotErrors(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 1)
	leader := all.leader()
	leader.mustPropose(enrol("n1"))
	command := enrol("n1")
	command.Key = "again"
	result, err := leader.Propose(t.Context(), command)
	if err != nil || result.Refusal == nil || result.Refusal.Code != state.Stale {
		t.Errorf("got %+v, %v", result, err)
	}
}

func TestABackupComesBackOnEveryMember(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	leader.mustPropose(enrol("kept"))
	var backup bytes.Buffer
	if err := leader.SaveSnapshot(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	marker := enrol("later")
	marker.Meta = map[string]string{"later": "yes"}
	leader.mustPropose(marker)

	damaged := bytes.Clone(backup.Bytes())
	damaged[len(damaged)/2] ^= 1
	if err := leader.RestoreSnapshot(t.Context(), bytes.NewReader(damaged), true); !errors.Is(err, seal.ErrChanged) {
		t.Errorf("a damaged backup: %v", err)
	}
	for _, p := range all {
		if p != leader {
			if err := p.RestoreSnapshot(t.Context(), bytes.NewReader(backup.Bytes()), false); !errors.Is(err, ErrNotLeader) {
				t.Errorf("restored on a follower: %v", err)
			}
		}
	}
	if leader.store.Snapshot().Meta("later") == "" {
		t.Fatal("a refused restore changed the state")
	}

	if err := leader.RestoreSnapshot(t.Context(), bytes.NewReader(backup.Bytes()), false); err != nil {
		t.Fatal(err)
	}
	leader.mustPropose(enrol("new"))
	all.agree()
	for _, p := range all {
		x := p.store.Snapshot()
		_, kept := x.Node("kept")
		_, there := x.Node("later") // its certificate is good, and VMs may run there
		_, fresh := x.Node("new")
		if !kept || x.Meta("later") != "" || !there || !fresh || x.Meta(state.MetaQuarantine) == "" {
			t.Errorf("%s: kept %v, later %q, node of later %v, new %v, quarantine %q",
				p.cfg.MemberID, kept, x.Meta("later"), there, fresh, x.Meta(state.MetaQuarantine))
		}
	}

	// And over a restart: the log has a gap where the backup came in.
	for _, p := range all {
		p.kill()
	}
	for _, p := range all {
		p.start()
	}
	all.agree()
	if _, ok := all.leader().store.Snapshot().Node("new"); !ok {
		t.Error("what was written after the restore is gone")
	}
}

func TestABackupOfAnotherClusterIsRefused(t *testing.T) {
	other := newTeam(t, newAuthority(t, "c2"), 1)
	eventually(t, "the cluster's ID", func() bool { return other[0].store.Snapshot().Meta(state.MetaClusterID) != "" })
	var backup bytes.Buffer
	if err := other.leader().SaveSnapshot(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	all := newTeam(t, newAuthority(t, "c1"), 1)
	if err := all.leader().RestoreSnapshot(t.Context(), &backup, false); !errors.Is(err, ErrForeign) {
		t.Errorf("got %v", err)
	}
}

// What was begun on the state of before must not go on, so the leader's work ends and begins anew.
func TestAfterARestoreTheLeadershipBeginsAnew(t *testing.T) {
	p := newPeer(t, newAuthority(t, "c1"), "m1")
	if err := Bootstrap(p.cfg); err != nil {
		t.Fatal(err)
	}
	store := state.NewStore()
	p.store = store
	var err error
	if p.Consensus, err = Open(p.cfg, store); err != nil {
		t.Fatal(err)
	}
	first := <-p.Leadership()
	eventually(t, "the cluster's ID", func() bool { return store.Snapshot().Meta(state.MetaClusterID) != "" })
	var backup bytes.Buffer
	if err := p.SaveSnapshot(t.Context(), &backup); err != nil {
		t.Fatal(err)
	}
	if err := p.RestoreSnapshot(t.Context(), &backup, false); err != nil {
		t.Fatal(err)
	}
	lost, again := <-p.Leadership(), <-p.Leadership()
	if !first.Leading || lost.Leading || lost.Term != first.Term || !again.Leading || again.Term != first.Term {
		t.Errorf("told %+v, %+v, %+v", first, lost, again)
	}
	if store.Snapshot().Meta(state.MetaQuarantine) == "" {
		t.Error("it begins on the state of before")
	}
}
