package consensus

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

func entries(from, to uint64) (logs []*raft.Log) {
	for index := from; index <= to; index++ {
		logs = append(logs, &raft.Log{Index: index, Term: 2})
	}
	return logs
}

func TestALeadersRequestIsMended(t *testing.T) {
	link := newTransport(nil, func() (uint64, uint64) { return 30, 3 })
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
	link := newTransport(nil, func() (uint64, uint64) { return 30, 3 })
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
