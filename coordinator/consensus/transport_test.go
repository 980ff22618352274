package consensus

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"

	"berth/coordinator/consensus/claims"
)

func entries(from, to uint64) (logs []*raft.Log) {
	for index := from; index <= to; index++ {
		logs = append(logs, &raft.Log{Index: index, Term: 2})
	}
	return logs
}

// judging is a link of a member in term 2, which has not led.
func judging(below link) claims.Judged {
	return claims.Judged{Link: below, Book: claims.New(claims.Present{
		Term: func() (uint64, bool) { return 2, true }, Led: func() uint64 { return 0 },
		MemberAt: func(raft.ServerAddress) string { return "" }, Refused: func(error) {},
	})}
}

func TestALeadersRequestIsMended(t *testing.T) {
	link := newTransport(judging(nil), func() (uint64, uint64) { return 30, 3 }, nil)
	for name, c := range map[string]struct{ given, want raft.AppendEntriesRequest }{
		"a heartbeat": {},
		"ahead of what was applied": {
			raft.AppendEntriesRequest{PrevLogEntry: 31, PrevLogTerm: 2, Entries: entries(32, 33), LeaderCommitIndex: 33},
			raft.AppendEntriesRequest{PrevLogEntry: 31, PrevLogTerm: 2, Entries: entries(32, 33), LeaderCommitIndex: 33},
		},
		"only what was sent is committed": {
			raft.AppendEntriesRequest{PrevLogEntry: 31, PrevLogTerm: 2, Entries: entries(32, 33), LeaderCommitIndex: 40},
			raft.AppendEntriesRequest{PrevLogEntry: 31, PrevLogTerm: 2, Entries: entries(32, 33), LeaderCommitIndex: 33},
		},
		"nothing was sent, up to the one before it is committed": {
			raft.AppendEntriesRequest{PrevLogEntry: 31, PrevLogTerm: 2, LeaderCommitIndex: 40},
			raft.AppendEntriesRequest{PrevLogEntry: 31, PrevLogTerm: 2, LeaderCommitIndex: 31},
		},
		"behind the last that was applied": {
			raft.AppendEntriesRequest{PrevLogEntry: 30, PrevLogTerm: 2, Entries: entries(31, 32), LeaderCommitIndex: 32},
			raft.AppendEntriesRequest{Entries: entries(31, 32), LeaderCommitIndex: 32},
		},
		"in part applied": {
			raft.AppendEntriesRequest{PrevLogEntry: 28, PrevLogTerm: 1, Entries: entries(29, 32), LeaderCommitIndex: 31},
			raft.AppendEntriesRequest{Entries: entries(31, 32), LeaderCommitIndex: 31},
		},
		"all applied": {
			raft.AppendEntriesRequest{PrevLogEntry: 20, PrevLogTerm: 1, Entries: entries(21, 22), LeaderCommitIndex: 40},
			raft.AppendEntriesRequest{Entries: []*raft.Log{}, LeaderCommitIndex: 22},
		},
	} {
		link.mend(&c.given)
		if diff := cmp.Diff(c.want, c.given); diff != "" {
			t.Errorf("%s (want -, got +):\n%s", name, diff)
		}
	}
}

func TestASnapshotThatIsOlderThanTheStateIsAnsweredAndNotRestored(t *testing.T) {
	link := newTransport(judging(nil), func() (uint64, uint64) { return 30, 3 }, nil)
	for name, c := range map[string]struct {
		request raft.InstallSnapshotRequest
		takes   bool
	}{
		"older":                 {raft.InstallSnapshotRequest{Term: 3, LastLogIndex: 28}, true},
		"the same":              {raft.InstallSnapshotRequest{Term: 3, LastLogIndex: 30}, true},
		"newer":                 {raft.InstallSnapshotRequest{Term: 3, LastLogIndex: 31}, false},
		"of an older term":      {raft.InstallSnapshotRequest{Term: 2, LastLogIndex: 28}, false},
		"of a term yet unknown": {raft.InstallSnapshotRequest{Term: 4, LastLogIndex: 28}, false},
	} {
		answers := make(chan raft.RPCResponse, 1)
		data := strings.NewReader("the snapshot")
		took := link.outdated(raft.RPC{Reader: data, RespChan: answers}, &c.request)
		if took != c.takes || took != (data.Len() == 0) {
			t.Errorf("%s: taken %v with %d bytes left, want %v", name, took, data.Len(), c.takes)
		}
		if !took {
			continue
		}
		if answer := <-answers; answer.Error != nil || !answer.Response.(*raft.InstallSnapshotResponse).Success {
			t.Errorf("%s: answered %+v", name, answer)
		}
	}
	broken, answers := errors.New("broken"), make(chan raft.RPCResponse, 1)
	link.outdated(raft.RPC{Reader: iotest.ErrReader(broken), RespChan: answers}, &raft.InstallSnapshotRequest{Term: 3, LastLogIndex: 1})
	if answer := <-answers; !errors.Is(answer.Error, broken) {
		t.Errorf("a link that breaks: answered %+v", answer)
	}
}

func TestAHeartbeatIsGivenToRaftUnlessThatIsBusyAndNothingChanges(t *testing.T) {
	follows := func(term uint64) (uint64, bool) { return 30, term == 3 }
	beat := func(link *transport, term uint64) (answers chan raft.RPCResponse, over chan struct{}) {
		answers, over = make(chan raft.RPCResponse, 1), make(chan struct{})
		go func() {
			defer close(over)
			header := raft.RPCHeader{ProtocolVersion: 3, ID: []byte("m1"), Addr: []byte("10.0.0.1:7422")}
			link.heartbeat(raft.RPC{Command: &raft.AppendEntriesRequest{RPCHeader: header, Term: term}, RespChan: answers})
		}()
		return answers, over
	}
	synctest.Test(t, func(t *testing.T) {
		link := newTransport(judging(nil), nil, follows)
		answers, over := beat(link, 3) // nobody receives
		<-over
		want := raft.RPCResponse{Response: &raft.AppendEntriesResponse{Term: 3, LastLog: 30, Success: true}}
		if diff := cmp.Diff(want, <-answers); diff != "" {
			t.Errorf("busy, of the term that it follows in (want -, got +):\n%s", diff)
		}
		for _, term := range []uint64{2, 4} {
			answers, over := beat(link, term)
			synctest.Wait()
			select {
			case <-over:
				t.Errorf("busy, of term %d: not waited for", term)
			case rpc := <-link.arrived:
				if got := rpc.Command.(*raft.AppendEntriesRequest).Term; got != term || len(answers) != 0 {
					t.Errorf("busy, of term %d: Raft is given one of term %d, answered %d times", term, got, len(answers))
				}
			}
		}
		_, over = beat(link, 4)
		close(link.closed)
		<-over
	})
	synctest.Test(t, func(t *testing.T) {
		link, given := newTransport(judging(nil), nil, follows), make(chan raft.RPC, 1)
		go func() { given <- <-link.arrived }()
		synctest.Wait()
		answers, over := beat(link, 3)
		<-over
		synctest.Wait()
		if len(given) != 1 || len(answers) != 0 {
			t.Errorf("idle: given to Raft %d times, answered %d times", len(given), len(answers))
		}
	})
}

// The others elect another while a leader's disk hangs in the middle of an addition. It hears of them before its disk does
// anything again, and must neither take up their term beside what it is doing, nor speak to the new member in it.
func TestALeaderWhoseDiskHangsDoesNotLeadInTheNextTerm(t *testing.T) {
	dir := t.TempDir()
	var wrong, trace []string
	play(t, func() {
		d, _ := newWorld(1, sound, dir)
		d.wire.faults = wireFaults{least: time.Millisecond, silence: time.Second}
		if err := d.bootstrap(); err != nil {
			d.violated("%v", err)
			return
		}
		d.revive(true)
		time.Sleep(10 * time.Second)
		h := d.leader()
		if h == nil {
			d.violated("nobody leads")
			return
		}
		old, added := h.running(), d.addHost("added")
		term := old.Term()
		added.run()
		d.hang(h, 8*time.Second)
		d.healing.Go(func() {
			if err := old.AddNonvoter(old.alive, added.id, added.id); err == nil {
				d.violated("added by one member of several")
			}
		})
		time.Sleep(10 * time.Millisecond) // it is being written
		d.cutOff(d.between([]*host{h}, d.others(h), true), 4*time.Second)
		time.Sleep(7900 * time.Millisecond)
		if other := d.leader(); other == nil || other == h || other.running().Term() <= term {
			d.violated("the others have elected nobody")
		}
		if got := old.Term(); got != term || !old.IsLeader() {
			d.violated("while it writes as the leader of term %d it is in term %d, leading: %v", term, got, old.IsLeader())
		}
		d.healing.Wait()
		time.Sleep(5 * time.Second)
		if old.Term() <= term || old.IsLeader() {
			d.violated("it has not heard of the others")
		}
		for _, h := range d.hosts {
			if in := h.running(); in != nil {
				h.end(in)
				<-in.reaped
			}
		}
		time.Sleep(2 * time.Minute)
		wrong, trace = d.seen.wrong, d.seen.trace
	})
	if len(wrong) > 0 {
		t.Errorf("%s\n%s", strings.Join(wrong, "\n"), strings.Join(trace, "\n"))
	}
}
