package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// site is some members that apply one log, each when it likes.
type site struct {
	t       *testing.T
	log     []*raft.Log
	members []*member
}

// member is one of them.
type member struct {
	*Keeper
	site    *site
	store   *state.Store
	applied int
	silent  bool
}

func (m *member) Page(_ context.Context, after, through uint64) (Page, error) {
	if m.silent {
		return Page{}, errors.New("it does not answer")
	}
	return m.Keeper.Page(after, through)
}

func newSite(t *testing.T, n int) *site {
	t.Helper()
	s := &site{t: t}
	for range n {
		m := &member{site: s, store: state.NewStore()}
		s.members = append(s.members, m)
		m.begin(t.TempDir())
	}
	return s
}

// begin makes the member's Keeper anew, as a restart does.
func (m *member) begin(dir string) {
	m.site.t.Helper()
	m.Keeper = NewKeeper(Config{
		Dir: dir, State: func() *state.Snapshot { return m.store.Snapshot() }, Now: func() time.Time { return begun },
		Last: func() uint64 { return uint64(len(m.site.log)) }, Log: hclog.NewNullLogger(),
		Peers: func() []Peer {
			var others []Peer
			for _, other := range m.site.members {
				if other != m {
					others = append(others, other)
				}
			}
			return others
		},
	})
	if err := m.open(); err != nil {
		m.site.t.Fatal(err)
	}
}

// happens puts one entry with so many events into the log.
func (s *site) happens(events int) {
	s.t.Helper()
	index := uint64(len(s.log) + 1)
	at := begun.Add(time.Duration(index) * time.Second)
	command := state.Command{Key: fmt.Sprintf("k%d", index), Kind: "test", Caller: "operator/alice", At: at}
	for i := range events {
		command.Events = append(command.Events, model.Event{
			At: at, Kind: "vm.changed", Subject: "vm/web1", Message: fmt.Sprintf("change %d", i),
		})
	}
	data, err := command.Encode()
	if err != nil {
		s.t.Fatal(err)
	}
	s.log = append(s.log, &raft.Log{Index: index, Data: data})
}

// apply applies the log up to an entry.
func (m *member) apply(to int) {
	for ; m.applied < to; m.applied++ {
		m.store.FSM().Apply(m.site.log[m.applied])
	}
}

// installs takes another member's state over, as one does that the log has left behind.
func (m *member) installs(from *member) {
	t := m.site.t
	t.Helper()
	var saved bytes.Buffer
	if err := from.store.Snapshot().Save(&saved); err != nil {
		t.Fatal(err)
	}
	if err := m.store.FSM().Restore(io.NopCloser(&saved)); err != nil {
		t.Fatal(err)
	}
	m.applied = from.applied
}

func (m *member) does(step func() error) {
	m.site.t.Helper()
	if err := step(); err != nil {
		m.site.t.Fatal(err)
	}
}

// Members that look at their states at other times, are restarted and are away for longer than the state keeps its events have the same
// rows in the end, each once.
func TestAllMembersHaveTheSameHistory(t *testing.T) {
	random := draw(t)
	s := newSite(t, 3)
	away := s.members[2]
	events := 0
	for range 120 {
		n := random.IntN(300)
		events += n
		s.happens(n)
		for _, m := range s.members[:2] {
			m.apply(m.applied + random.IntN(len(s.log)-m.applied+1))
			if random.IntN(3) == 0 {
				m.does(m.follow)
			}
			if random.IntN(20) == 0 {
				m.begin(m.Dir)
			}
		}
		if len(s.log) == 10 {
			away.apply(10)
			away.does(away.follow)
		}
	}
	for _, m := range s.members[:2] {
		m.apply(len(s.log))
		m.does(m.follow)
	}
	away.installs(s.members[0])
	away.does(away.follow)
	if lacks := away.Health().Lacks; events > 2*state.MaxEvents && lacks == 0 {
		t.Fatal("nothing is missing of a member that was away: this test looks at the wrong place")
	}
	s.members[0].silent = true // one that answers is enough
	away.does(func() error { return away.tend(t.Context()) })
	away.begin(away.Dir)
	want := content(t, s.members[0].opened(), Query{})
	rows := 0
	for range s.members[0].Backwards(Query{}) {
		rows++
	}
	if rows != events {
		t.Errorf("%d events, and %d rows", events, rows)
	}
	for i, m := range s.members {
		if content(t, m.opened(), Query{}) != want {
			t.Errorf("member %d has another history", i)
		}
		if h := m.Health(); h.Lacks > 0 || h.Behind > 0 {
			t.Errorf("member %d: %+v", i, h)
		}
	}
}

// A member that is new gets all that the others have of the time before it, and asks no more for what nobody has.
func TestANewMemberGetsWhatTheOthersHave(t *testing.T) {
	s := newSite(t, 2)
	old, late := s.members[0], s.members[1]
	for range 150 {
		s.happens(100)
	}
	old.apply(len(s.log)) // it was upgraded to a release with a history just now, and has what its state has kept
	old.does(old.follow)
	late.installs(old)
	s.happens(1)
	for _, m := range s.members {
		m.apply(len(s.log))
		m.does(m.follow)
		m.does(func() error { return m.tend(t.Context()) })
		if missing, _ := m.opened().Missing(); len(missing) > 0 {
			t.Errorf("it still asks for %v", missing)
		}
	}
	if content(t, late.opened(), Query{}) != content(t, old.opened(), Query{}) {
		t.Error("the new member has another history")
	}
}

// While the disk is full nothing else waits, and afterwards nothing is missing.
func TestAFullDiskStopsTheHistoryAlone(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	whole := m.opened().writeAt
	m.opened().writeAt = func(*os.File, []byte, int64) error { return errors.New("no space left on device") }
	for range 5 {
		s.happens(3)
		m.apply(len(s.log))
		if m.told(m.follow()) {
			t.Fatal("it has written to a full disk")
		}
	}
	if h := m.Health(); h.Problem == "" || h.Behind != 5 {
		t.Errorf("it tells %+v", h)
	}
	m.opened().writeAt = whole
	m.told(m.follow())
	if h := m.Health(); h.Problem != "" || h.Rows != 15 || h.Behind != 0 {
		t.Errorf("it tells %+v", h)
	}
}

// A store that knows more entries than there are in the log is of another log.
func TestAHistoryOfAnotherLogIsSetAside(t *testing.T) {
	s := newSite(t, 1)
	m := s.members[0]
	for range 5 {
		s.happens(1)
	}
	m.apply(5)
	m.does(m.follow)
	s.log, m.applied, m.store = nil, 0, state.NewStore()
	s.happens(2)
	m.apply(1)
	m.begin(m.Dir)
	m.does(m.follow)
	if h := m.Health(); h.Rows != 2 {
		t.Errorf("it has %d rows", h.Rows)
	}
	if _, err := os.Stat(m.Dir + ".before-20260101T000000Z"); err != nil {
		t.Error(err)
	}
}

func TestNoKeeperHasNoHistory(t *testing.T) {
	var none *Keeper
	for range none.Backwards(Query{}) {
		t.Error("it has a row")
	}
	if h := none.Health(); h != (Health{}) || none.Whole() != 0 {
		t.Errorf("it has %+v", h)
	}
}
