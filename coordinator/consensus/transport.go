package consensus

import (
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/consensus/claims"
)

const (
	// rpcLimit bounds one RPC between members; a snapshot has more, by its size.
	rpcLimit = 5 * time.Second
	// pooled connections to each member: votes, replication and heartbeats side by side.
	pooled = 3
)

// link is what carries Raft's messages.
type link = claims.Link

// transport is Raft's own over TLS. It remembers what the leader's heartbeats learn of the others, and mends what the
// leader sends to this member (see mend and heartbeat).
type transport struct {
	claims.Judged
	applied func() (index, term uint64)                    // the last entry that was applied here, and the present term
	follows func(term uint64) (lastIndex uint64, yes bool) // whether this member follows in this term, and the end of its log
	arrived chan raft.RPC
	opening sync.Once
	closing sync.Once
	closed  chan struct{}

	ends heard[uint64] // of the members' logs, by their last answers: indexes
}

func overNetwork(cfg *Config, stream *listener) link {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream, MaxPool: pooled, Timeout: rpcLimit, Logger: cfg.Logger.Named("transport"),
		MsgpackUseNewTimeFormat: true,
	})
}

func newTransport(
	below claims.Judged, applied func() (index, term uint64), follows func(term uint64) (lastIndex uint64, yes bool),
) *transport {
	return &transport{
		Judged: below, applied: applied, follows: follows,
		arrived: make(chan raft.RPC), closed: make(chan struct{}),
	}
}

// Consumer implements raft.Transport. Raft asks for it once.
func (t *transport) Consumer() <-chan raft.RPC {
	t.opening.Do(func() { go t.receive() })
	return t.arrived
}

func (t *transport) receive() {
	for {
		select {
		case rpc := <-t.Link.Consumer():
			if t.Book.Refuses(rpc) {
				continue
			}
			switch request := rpc.Command.(type) {
			case *raft.AppendEntriesRequest:
				t.mend(request)
			case *raft.InstallSnapshotRequest:
				if t.outdated(rpc, request) {
					continue
				}
			}
			select {
			case t.arrived <- rpc:
			case <-t.closed:
				return
			}
		case <-t.closed:
			return
		}
	}
}

// SetHeartbeatHandler implements raft.Transport. Raft's own handler is not used, see heartbeat.
func (t *transport) SetHeartbeatHandler(func(raft.RPC)) { t.Link.SetHeartbeatHandler(t.heartbeat) }

// heartbeat is called outside Raft's main goroutine, so that a leader gets its answer while that one waits for the disk.
// Raft's own handler (v1.8.0) changes the state and the term right there, and the main goroutine does not expect that:
// a leader that is just writing goes on with the term that another leads, and begins to send in it; a candidate that gets
// its last vote leads in it. So the main goroutine is given every heartbeat. Only when it has no time, and there is nothing
// to change, the answer is given here. The term is not left before that answer, which is all that it promises.
func (t *transport) heartbeat(rpc raft.RPC) {
	if t.Book.Refuses(rpc) {
		return
	}
	select {
	case t.arrived <- rpc:
		return
	default:
	}
	if request, ok := rpc.Command.(*raft.AppendEntriesRequest); ok {
		if lastIndex, yes := t.follows(request.Term); yes {
			rpc.Respond(&raft.AppendEntriesResponse{Term: request.Term, LastLog: lastIndex, Success: true}, nil)
			return
		}
	}
	select {
	case t.arrived <- rpc:
	case <-t.closed:
	}
}

// Close implements raft.WithClose.
func (t *transport) Close() error {
	t.closing.Do(func() { close(t.closed) })
	return t.Link.Close()
}

// What an entry's index was applied for was committed, so every leader of this or a later term has the same entry there.
// Raft (v1.8.0) forgets that in three places, all of which need a member whose log begins behind its snapshot, or a message
// that is late:
//
//   - The entry before the first that is sent has to be the same on both sides, and Raft looks for it in the log. Behind its
//     own snapshot a member may have entries that were never committed, and before it none. It refuses everything, and is
//     sent snapshots for ever.
//   - A snapshot that is older than the state replaces it. What came after it is applied again only when more is committed.
//   - All that a member has up to the leader's commit index counts as committed, also what lies behind the entries that were
//     sent and may be another leader's.

// mend makes of a leader's request what Raft judges rightly.
func (t *transport) mend(request *raft.AppendEntriesRequest) {
	last := request.PrevLogEntry
	if n := len(request.Entries); n > 0 {
		last = request.Entries[n-1].Index
	}
	request.LeaderCommitIndex = min(request.LeaderCommitIndex, last)
	applied, _ := t.applied()
	if request.PrevLogEntry == 0 || request.PrevLogEntry > applied {
		return
	}
	request.PrevLogEntry, request.PrevLogTerm = 0, 0 // nothing to look for
	for len(request.Entries) > 0 && request.Entries[0].Index <= applied {
		request.Entries = request.Entries[1:]
	}
}

// outdated tells whether a snapshot of this term's leader has nothing that was not applied here. It is read and answered.
func (t *transport) outdated(rpc raft.RPC, request *raft.InstallSnapshotRequest) bool {
	applied, term := t.applied()
	if request.Term != term || request.LastLogIndex > applied {
		return false
	}
	if _, err := io.Copy(io.Discard, rpc.Reader); err != nil {
		rpc.Respond(&raft.InstallSnapshotResponse{Term: term}, err)
		return true
	}
	rpc.Respond(&raft.InstallSnapshotResponse{Term: term, Success: true}, nil)
	return true
}

// AppendEntries implements raft.Transport. Heartbeats come this way, so the leader hears of each member several times a
// second.
func (t *transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse,
) error {
	if err := t.Judged.AppendEntries(id, target, request, answer); err != nil {
		return err
	}
	t.ends.put(id, answer.LastLog)
	return nil
}
