package consensus

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

const (
	// rpcLimit bounds one RPC between members; a snapshot has more, by its size.
	rpcLimit = 5 * time.Second
	// pooled connections to each member: votes, replication and heartbeats side by side.
	pooled = 3
)

// link is what carries Raft's messages.
type link interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
	CloseStreams()
}

// transport is Raft's own over TLS, and remembers what the leader's heartbeats learn of the others.
type transport struct {
	link

	mu   sync.Mutex
	seen map[raft.ServerID]sighting
}

// sighting is the last answer of a member to this one.
type sighting struct {
	at        time.Time
	lastIndex uint64 // of its log
}

func overNetwork(cfg *Config, stream *listener) link {
	return raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{
		Stream: stream, MaxPool: pooled, Timeout: rpcLimit, Logger: cfg.Logger.Named("transport"),
		MsgpackUseNewTimeFormat: true,
	})
}

func newTransport(below link) *transport {
	return &transport{link: below, seen: make(map[raft.ServerID]sighting)}
}

// AppendEntries implements raft.Transport. Heartbeats come this way, so the leader hears of each member several times a
// second.
func (t *transport) AppendEntries(
	id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, answer *raft.AppendEntriesResponse,
) error {
	if err := t.link.AppendEntries(id, target, request, answer); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[id] = sighting{at: time.Now(), lastIndex: answer.LastLog}
	return nil
}

// sightingOf is what is known of a member, and whether anything is.
func (t *transport) sightingOf(id raft.ServerID) (sighting, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	seen, known := t.seen[id]
	return seen, known
}

// forget drops what was learnt as the leader of another term.
func (t *transport) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.seen)
}
