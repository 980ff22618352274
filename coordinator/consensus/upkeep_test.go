package consensus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

func TestPaceIsThatOfTheLastMinute(t *testing.T) {
	var p pace
	now := time.Now()
	for i := range 4 {
		p.add(now.Add(time.Duration(i)*time.Second), 3*time.Second)
	}
	if got := p.p99(now); got != 0 {
		t.Errorf("four writes make a pace of %s", got)
	}
	p.add(now.Add(4*time.Second), 2*time.Second)
	if got := p.p99(now.Add(5 * time.Second)); got != 3*time.Second {
		t.Errorf("five slow writes make a pace of %s", got)
	}
	if got := p.p99(now.Add(2 * time.Minute)); got != 0 {
		t.Errorf("two minutes later the pace is %s", got)
	}
	for range paceLast {
		p.add(now.Add(6*time.Second), 10*time.Millisecond)
	}
	p.add(now.Add(7*time.Second), 4*time.Second)
	if got := p.p99(now.Add(8 * time.Second)); got != 10*time.Millisecond {
		t.Errorf("one slow write of %d makes a pace of %s", paceLast, got)
	}
}

// slowly is a disk that takes its time.
type slowly struct {
	backend
	by time.Duration
}

// inMemory is a store that nothing outlives.
type inMemory struct{ *raft.InmemStore }

func (inMemory) Close() error { return nil }

func (s slowly) StoreLogs(logs []*raft.Log) error {
	time.Sleep(s.by)
	return s.backend.StoreLogs(logs)
}

func TestWritesOfTheLogAreTimed(t *testing.T) {
	below := slowly{inMemory{raft.NewInmemStore()}, 20 * time.Millisecond}
	store := &guarded{backend: below, limit: time.Minute, fatal: func(err error) { t.Error(err) }}
	for i := range uint64(paceLeast) {
		if err := store.StoreLog(&raft.Log{Index: i + 1}); err != nil {
			t.Fatal(err)
		}
	}
	if got := store.pace.p99(time.Now()); got < 20*time.Millisecond {
		t.Errorf("writes that wait 20 ms are said to take %s", got)
	}
}

// takes makes the last writes of a member look as if they had taken so long.
func (p *peer) takes(long time.Duration) {
	for range paceLast {
		p.logs.pace.add(time.Now(), long)
	}
}

func TestALeaderWithASlowDiskHandsOverToOneWithAFasterOne(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	others := all.others(leader)
	if _, why := leader.unfit(nil); why != nil {
		t.Fatalf("a leader on a good disk should not lead: %v", why)
	}
	leader.takes(2 * time.Second)
	others[0].takes(1500 * time.Millisecond)
	all.tell(leader)
	heirs, why := leader.unfit(nil)
	if why == nil || !strings.Contains(why.Error(), "slow disk") || !strings.Contains(why.Error(), "took 2s or longer") {
		t.Errorf("why it should not lead: %v", why)
	}
	if len(heirs) != 1 || string(heirs[0].ID) != others[1].cfg.MemberID {
		t.Fatalf("to lead in its place: %v", heirs)
	}
	if seen := leader.Stats().Members; !strings.HasPrefix(seen[leader.cfg.MemberID].Trouble, "has a slow disk") ||
		!strings.HasPrefix(seen[others[0].cfg.MemberID].Trouble, "has a slow disk") || seen[others[1].cfg.MemberID].Trouble != "" {
		t.Errorf("the members are shown as %+v", seen)
	}
	if err := leader.transferTo(t.Context(), heirs); err != nil {
		t.Fatal(err)
	}
	if now := all.leader(); now != others[1] {
		t.Errorf("%s leads", now.cfg.MemberID)
	}
}

// The agents' port of a leader is dead: they come again and again to the others, which send them back.
func TestALeaderThatHearsNoAgentsHandsOverToOneThatTheyReach(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	others := all.others(leader)
	tell := func(hears, one, two int) {
		all.tell(leader)
		for member, report := range map[string]Report{
			leader.cfg.MemberID: {Hearing: hears}, others[0].cfg.MemberID: {Asking: one}, others[1].cfg.MemberID: {Asking: two},
		} {
			leader.Heard(member, report)
		}
	}
	tell(40, 3, 2)
	if heirs, why := leader.unfit(nil); why != nil || len(heirs) != 0 {
		t.Fatalf("a few agents cannot reach it: %v, %v", heirs, why)
	}
	tell(2, 3, 38)
	heirs, why := leader.unfit(nil)
	if why == nil || !strings.Contains(why.Error(), "it hears 2 agents, and 38 that cannot reach it") {
		t.Errorf("why it should not lead: %v", why)
	}
	if len(heirs) != 2 || string(heirs[0].ID) != others[1].cfg.MemberID {
		t.Fatalf("to lead in its place: %v", heirs)
	}
}

func TestALeaderWhoseOthersAreAsSlowLeadsOn(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	for _, p := range all {
		p.takes(2 * time.Second)
	}
	all.tell(leader)
	if heirs, why := leader.unfit(nil); why == nil || len(heirs) != 0 {
		t.Errorf("it should hand over to %v because %v", heirs, why)
	}
}

func TestALeaderWhoseClockIsYearsAheadStampsNothing(t *testing.T) {
	all := newTeam(t, newAuthority(t, "c1"), 3)
	leader := all.leader()
	for _, p := range all.others(leader) {
		p.behind.Store(int64(26_663 * 24 * time.Hour))
	}
	others := all.others(leader)
	leader.Heard(others[0].cfg.MemberID, others[0].Report())
	leader.mustPropose(enrol("undecided")) // one against one proves nothing
	all.tell(leader)
	_, err := leader.Propose(t.Context(), enrol("stamped"))
	if !errors.Is(err, ErrClock) || !strings.Contains(err.Error(), "by 26663 days") {
		t.Errorf("the change gave %v", err)
	}
	if trouble := leader.Stats().Members[leader.cfg.MemberID].Trouble; !strings.Contains(trouble, "changes nothing until it is set right") {
		t.Errorf("it is shown as one that %s", trouble)
	}
	heirs, why := leader.unfit(nil)
	if !errors.Is(why, ErrClock) || len(heirs) != 2 {
		t.Fatalf("it should hand over to %v because %v", heirs, why)
	}
	if err := leader.transferTo(t.Context(), heirs); err != nil {
		t.Fatal(err)
	}
	now := all.leader()
	if now == leader {
		t.Fatal("it leads on")
	}
	all.tell(now)
	now.mustPropose(enrol("stamped"))
	// The other follower alone makes a majority: the one with the wrong clock may answer later.
	eventually(t, "the next leader takes it for one whose clock is ahead", func() bool {
		trouble := now.Stats().Members[leader.cfg.MemberID].Trouble
		return strings.HasPrefix(trouble, "has a clock that is ahead of the leader's by ")
	})
}

func TestAClockIsWrongWhenMostOthersSaySo(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		behind []time.Duration
		heard  int
		want   time.Duration
	}{
		{nil, 1, 0},
		{nil, 3, 0},
		{[]time.Duration{hour}, 2, 0},
		{[]time.Duration{hour}, 3, 0},
		{[]time.Duration{2 * hour, hour}, 3, hour},
		{[]time.Duration{hour, hour}, 5, 0},
		{[]time.Duration{hour, hour, 3 * hour}, 5, hour},
	} {
		if got := leadOf(c.behind, c.heard); got != c.want {
			t.Errorf("%v of %d heard: %s, want %s", c.behind, c.heard, got, c.want)
		}
	}
}
