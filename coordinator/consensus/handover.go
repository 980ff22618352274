package consensus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// heirs are the members that this one has tried to hand the leadership over to, in a term. None is tried twice: a follower that
// hangs leaves what Raft (v1.8.0) asked of it in a queue of one, a second try waits for room in that queue without looking at
// anything else, and when the leadership is lost meanwhile the queue is never emptied. From then on this member would
// refuse everything as one that hands over, in every later term as well.
type heirs struct {
	mu    sync.Mutex
	term  uint64
	tried map[raft.ServerID]bool
}

// choose takes the first of the candidates that was not tried in the term.
func (h *heirs) choose(term uint64, candidates []raft.Server) (raft.Server, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term != term {
		h.term, h.tried = term, make(map[raft.ServerID]bool)
	}
	for _, one := range candidates {
		if !h.tried[one.ID] {
			h.tried[one.ID] = true
			return one, true
		}
	}
	return raft.Server{}, false
}

// Transfer hands the leadership to another voter, the most up to date one, within two seconds. The error is
// ErrNotLeader, ErrQuorum when there is no other voter, ErrNoHeir when each was tried in vain in this term, ctx's own, or why
// it did not come about: then this member leads on.
func (c *Consensus) Transfer(ctx context.Context) error { return c.transferTo(ctx, c.otherVoters()) }

// transferTo hands the leadership to the first of these voters that was not tried in the term.
func (c *Consensus) transferTo(ctx context.Context, heirs []raft.Server) error {
	ctx, cancel := context.WithTimeout(ctx, transferLimit)
	defer cancel()
	term := c.termLed()
	if term == 0 {
		return ErrNotLeader
	}
	if len(heirs) == 0 {
		return fmt.Errorf("%w: there is no other voter to lead", ErrQuorum)
	}
	heir, untried := c.heirs.choose(term, heirs)
	if !untried {
		return ErrNoHeir
	}
	err := c.await(ctx, func() error { return c.raft.Load().LeadershipTransferToServer(heir.ID, heir.Address).Error() })
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("hand over the leadership: %w", ctx.Err())
	default:
		return fmt.Errorf("hand over the leadership: %w", err)
	}
}

// otherVoters are those that may lead in this one's place. Those that answer come first, and of these the ones that have most
// of the log.
func (c *self) otherVoters() []raft.Server {
	var others []raft.Server
	for _, server := range c.servers() {
		if server.Suffrage == raft.Voter && string(server.ID) != c.cfg.MemberID {
			others = append(others, server)
		}
	}
	end := func(server raft.Server) (index uint64) {
		if last, known := c.transport.ends.of(server.ID); known && time.Since(last.at) < reachable {
			return last.what
		}
		return 0
	}
	slices.SortStableFunc(others, func(a, b raft.Server) int { return cmp.Compare(end(b), end(a)) })
	return others
}
