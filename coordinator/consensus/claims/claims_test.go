package claims

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site is a member in a term, which may lead it, and its book. m1 to m3 have addresses.
type site struct {
	*Book
	term, led uint64
	starting  bool
	told      []error // of refusals
}

func newSite(term, led uint64) *site {
	s := &site{term: term, led: led}
	s.Book = New(Present{
		Term: func() (uint64, bool) { return s.term, !s.starting },
		Led:  func() uint64 { return s.led },
		MemberAt: func(address raft.ServerAddress) string {
			id, known := strings.CutSuffix(string(address), ".example:7422")
			if !known {
				return ""
			}
			return id
		},
		Refused: func(err error) { s.told = append(s.told, err) },
	})
	return s
}

func header(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: 3, ID: []byte(id), Addr: []byte(id + ".example:7422")}
}

func appends(id string, term uint64) *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{RPCHeader: header(id), Term: term}
}

func votes(id string, term uint64) *raft.RequestVoteRequest {
	return &raft.RequestVoteRequest{RPCHeader: header(id), Term: term}
}

func (s *site) takes(t *testing.T, what string, request any) {
	t.Helper()
	if err := s.Request(request); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}

func (s *site) refuses(t *testing.T, what string, request any) {
	t.Helper()
	if err := s.Request(request); !errors.Is(err, ErrRefused) {
		t.Errorf("%s: %v", what, err)
	}
}

func TestATermHasOneLeader(t *testing.T) {
	s := newSite(7, 0)
	s.takes(t, "the first that speaks as its leader", appends("m1", 7))
	s.takes(t, "it again", appends("m1", 7))
	s.refuses(t, "another one", appends("m3", 7))
	s.refuses(t, "another one with a snapshot", &raft.InstallSnapshotRequest{RPCHeader: header("m3"), Term: 7})
	s.takes(t, "the leader with a snapshot", &raft.InstallSnapshotRequest{RPCHeader: header("m1"), Term: 7})
	s.takes(t, "one of before, which Raft tells so", appends("m3", 6))
	s.takes(t, "the leader of the next", appends("m3", 8))
	s.term = 8
	s.refuses(t, "the one of before in the next", appends("m1", 8))
	s.term, s.led = 9, 9
	s.refuses(t, "one in the term that this member leads", appends("m3", 9))
	s.takes(t, "the leader of a later one", appends("m3", 10))
}

func TestNobodyCallsAnElectionButTheLeader(t *testing.T) {
	now := func(id string) *raft.TimeoutNowRequest { return &raft.TimeoutNowRequest{RPCHeader: header(id)} }
	s := newSite(7, 0)
	s.refuses(t, "somebody before there is a leader", now("m1"))
	s.takes(t, "", appends("m1", 7))
	s.takes(t, "the leader", now("m1"))
	s.refuses(t, "another one", now("m3"))
	s.term = 8
	s.refuses(t, "the leader of the term before", now("m1"))
}

func TestNobodyTakesALeadersPlaceUnasked(t *testing.T) {
	takes := votes("m3", 8)
	takes.LeadershipTransfer = true
	s := newSite(7, 7)
	s.refuses(t, "nobody was asked", takes)
	s.Hand("m1")
	s.refuses(t, "another was asked", takes)
	s.Hand("m3")
	s.takes(t, "it was asked", takes)
	s.term, s.led = 9, 9
	s.refuses(t, "it was asked in another term", takes)
	s.led = 0
	s.takes(t, "one that does not lead cannot know", takes)
}

func TestNobodyPassesForAnother(t *testing.T) {
	s := newSite(7, 0)
	s.refuses(t, "no ID", &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, Addr: []byte("x:1")}, Term: 8})
	s.refuses(t, "no address", &raft.RequestVoteRequest{RPCHeader: raft.RPCHeader{ProtocolVersion: 3, ID: []byte("m3")}, Term: 8})
	posed := header("m3")
	posed.Addr = header("m1").Addr
	for what, request := range map[string]any{
		"a vote": &raft.RequestVoteRequest{RPCHeader: posed, Term: 8}, "a pre-vote": &raft.RequestPreVoteRequest{RPCHeader: posed, Term: 8},
		"entries": &raft.AppendEntriesRequest{RPCHeader: posed, Term: 8},
	} {
		s.refuses(t, what+" at another's address", request)
	}
	moved := header("m3")
	moved.Addr = []byte("new.example.org:7422")
	s.takes(t, "a member at an address that nobody has", &raft.RequestVoteRequest{RPCHeader: moved, Term: 8})
	old := appends("m1", 7)
	old.ProtocolVersion = 0
	s.refuses(t, "a version that Raft refuses", old)
	s.refuses(t, "a request of no kind", &raft.TimeoutNowResponse{RPCHeader: header("m1")})
	s.refuses(t, "what is no request", "hello")
	refusals := len(s.told)
	if refusals != 8 {
		t.Errorf("%d refusals are told", refusals)
	}
	s.starting = true
	s.refuses(t, "before there is a Raft", appends("m1", 7))
	if len(s.told) != refusals {
		t.Errorf("what comes early is told: %v", s.told)
	}
}

func TestATermIsNotDrivenToTheEndOfTheNumbers(t *testing.T) {
	s := newSite(7, 0)
	for _, term := range []uint64{math.MaxUint64, 1 << 62, 8 + Farthest} {
		s.refuses(t, "a vote far ahead", votes("m3", term))
		s.refuses(t, "entries far ahead", appends("m3", term))
		if err := s.Answer("m3", term, 7); !errors.Is(err, ErrRefused) {
			t.Errorf("an answer in term %d: %v", term, err)
		}
	}
	s.takes(t, "a member that was away for long", appends("m1", 1_000_000))
}

// However a term comes, a member has so many turns, and then one in a while. Others have their own.
func TestAMemberBringsTermsAtARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(7, 0)
		bring := func() error {
			var err error
			switch s.term % 3 {
			case 0:
				err = s.Request(votes("m3", s.term+1))
			case 1:
				err = s.Request(appends("m3", s.term+1))
			default:
				err = s.Answer("m3", s.term+1, s.term)
			}
			if err == nil {
				s.term++
			}
			return err
		}
		turns := func() (had int) {
			for ; bring() == nil; had++ {
				if had > 10*Turns {
					t.Fatal("it brings any number of terms")
				}
			}
			return had
		}
		if had := turns(); had != Turns {
			t.Errorf("%d turns in a row, want %d", had, Turns)
		}
		s.takes(t, "the last one again", votes("m3", s.term))
		s.takes(t, "a vote in a pre-vote, which changes nothing", &raft.RequestPreVoteRequest{RPCHeader: header("m3"), Term: s.term + 1})
		s.takes(t, "another member", votes("m1", s.term+1))
		time.Sleep(Again - time.Millisecond)
		if turns() != 0 {
			t.Error("the next turn is early")
		}
		time.Sleep(time.Millisecond)
		if had := turns(); had != 1 {
			t.Errorf("%d turns after %s, want 1", had, Again)
		}
		time.Sleep(1000 * Again)
		if had := turns(); had != Turns {
			t.Errorf("%d turns after a long time, want %d", had, Turns)
		}
	})
}

// One that speaks as a leader in the present term takes a turn as well: it keeps whom the others have elected from leading in it.
func TestToClaimTheTermThatSomebodyElseBroughtTakesATurn(t *testing.T) {
	s := newSite(7, 0)
	for i := range uint64(Turns) {
		s.term = 100 + i
		s.takes(t, "a claim", appends("m3", s.term))
	}
	s.term = 1000
	s.refuses(t, "one more", appends("m3", s.term))
	s.takes(t, "whom the others have elected", appends("m1", s.term))
	for range 10 * Turns {
		s.takes(t, "the same leader in the same term", appends("m1", s.term))
	}
}

// pretended is a link that answers in some term, and takes the request to take a leader's place.
type pretended struct {
	Link
	term  uint64
	asked func()
}

func (p pretended) AppendEntries(
	_ raft.ServerID, _ raft.ServerAddress, _ *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse,
) error {
	answer.Term = p.term
	return nil
}

func (p pretended) RequestVote(
	_ raft.ServerID, _ raft.ServerAddress, _ *raft.RequestVoteRequest, answer *raft.RequestVoteResponse,
) error {
	answer.Term = p.term
	return nil
}

func (p pretended) RequestPreVote(
	_ raft.ServerID, _ raft.ServerAddress, _ *raft.RequestPreVoteRequest, answer *raft.RequestPreVoteResponse,
) error {
	answer.Term = p.term
	return nil
}

func (p pretended) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	p.asked()
	return nil
}

func TestAnswersAreJudged(t *testing.T) {
	s := newSite(7, 7)
	ask := func(term uint64) []error {
		j := Judged{Link: pretended{term: term}, Book: s.Book}
		return []error{
			j.AppendEntries("m3", "a", &raft.AppendEntriesRequest{Term: 7}, &raft.AppendEntriesResponse{}),
			j.RequestVote("m3", "a", &raft.RequestVoteRequest{Term: 7}, &raft.RequestVoteResponse{}),
			j.RequestPreVote("m3", "a", &raft.RequestPreVoteRequest{Term: 7}, &raft.RequestPreVoteResponse{}),
		}
	}
	for i, err := range ask(math.MaxUint64) {
		if !errors.Is(err, ErrRefused) {
			t.Errorf("answer %d is believed: %v", i, err)
		}
	}
	if len(s.told) != 3 {
		t.Errorf("%d refusals are told", len(s.told))
	}
	for i, err := range append(ask(7), ask(9)...) {
		if err != nil {
			t.Errorf("answer %d is refused: %v", i, err)
		}
	}
	takes := votes("m3", 8)
	takes.LeadershipTransfer = true
	asked := false
	j := Judged{Book: s.Book, Link: pretended{asked: func() {
		asked = true
		s.takes(t, "who answers at once", takes)
	}}}
	if err := j.TimeoutNow("m3", "a", &raft.TimeoutNowRequest{}, &raft.TimeoutNowResponse{}); err != nil || !asked {
		t.Errorf("asked %t: %v", asked, err)
	}
}

// What follows a refused snapshot is found, and nobody waits until its content has come.
func TestARefusedSnapshotIsRead(t *testing.T) {
	s := newSite(7, 7)
	content := strings.NewReader("the content")
	for _, one := range []raft.RPC{
		{Command: &raft.InstallSnapshotRequest{RPCHeader: header("m3"), Term: 7}, Reader: content},
		{Command: &raft.InstallSnapshotRequest{RPCHeader: header("m3"), Term: 7}, Reader: iotest.ErrReader(errors.New("cut"))},
		{Command: appends("m3", 7)},
	} {
		answers := make(chan raft.RPCResponse, 1)
		one.RespChan = answers
		if !s.Refuses(one) {
			t.Fatal("it is not refused")
		}
		if answer := <-answers; !errors.Is(answer.Error, ErrRefused) {
			t.Errorf("it is answered %v", answer.Error)
		}
	}
	if content.Len() != 0 {
		t.Errorf("%d bytes of the content are left, and would be read as a request", content.Len())
	}
	if s.Refuses(raft.RPC{Command: appends("m3", 8)}) {
		t.Error("what may be is refused")
	}
}
