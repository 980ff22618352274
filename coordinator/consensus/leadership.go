package consensus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
	"golang.org/x/time/rate"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Leadership is a gain or a loss of it by this member.
type Leadership struct {
	Leading bool
	Term    uint64 // that is led; of a loss, the term that was
}

// Leadership tells gains and losses, in turns and in order, to one reader; none is lost while the reader is busy. A gain
// that was lost again before it could be looked at is left out with its loss. The channel is closed when this member
// stops, which is a loss too. When a backup has replaced the state, a leadership ends and the next begins in the same term,
// so that nothing which was begun on the old state goes on.
//
// A gain says only that the election is won: call Barrier before acting on the state.
func (c *Consensus) Leadership() <-chan Leadership { return c.leadership }

// watchLeadership owns the queue of what the reader has not taken, and the lead goroutine.
func (c *Consensus) watchLeadership() {
	defer close(c.leadership)
	var queue []Leadership
	var leading uint64 // the term; 0: not leading
	endLead := func() {}
	turn := func(gained, anew bool) {
		term := uint64(0)
		if gained {
			term = c.termLed()
		}
		if leading != 0 && (leading != term || anew) {
			endLead()
			queue = append(queue, Leadership{Term: leading})
			leading = 0
		}
		if term != 0 && leading == 0 {
			leading = term
			endLead = c.startLead(term)
			queue = append(queue, Leadership{Leading: true, Term: term})
		}
	}
	defer func() { endLead() }()
	for {
		var out chan Leadership
		var next Leadership
		if len(queue) > 0 {
			out, next = c.leadership, queue[0]
		}
		select {
		case gained := <-c.notices:
			turn(gained, false)
		case <-c.replaced:
			turn(leading != 0, true)
		case out <- next:
			queue = queue[1:]
		case <-c.stopped:
			return
		}
	}
}

// termLed is the term that this member leads right now, 0 if it does not. Raft's notice does not say, and the term alone
// may already be another leader's: two readings around the state prove that they belong together.
func (c *self) termLed() uint64 {
	r := c.raft.Load()
	before := r.CurrentTerm()
	if r.State() != raft.Leader || r.CurrentTerm() != before {
		return 0
	}
	return before
}

func (c *Consensus) startLead(term uint64) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		care{c}.lead(ctx, term)
	}()
	return func() {
		cancel()
		<-done
	}
}

// care is what this package itself does as the leader.
type care struct{ *Consensus }

// lead goes on until ctx ends with the leadership.
func (c care) lead(ctx context.Context, term uint64) {
	c.transport.ends.forget()
	c.reports.forget()
	if err := c.Barrier(ctx); err != nil {
		return
	}
	tick := time.NewTicker(leadEvery)
	defer tick.Stop()
	troubles := rate.Sometimes{First: 1, Interval: time.Minute}
	keepingUp := make(map[raft.ServerID]time.Time)
	var compared checks
	for {
		err := errors.Join(
			c.stampCluster(ctx, term), c.promoteJoined(ctx, keepingUp), c.raiseLevel(ctx, term), c.compareStates(ctx, term, &compared),
		)
		if err != nil && ctx.Err() == nil {
			troubles.Do(func() { c.logger.Warn("the leader's care for the cluster failed, trying again", "error", err) })
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// stampCluster puts the cluster's ID into a new state, so that no other cluster takes it for its own.
func (c care) stampCluster(ctx context.Context, term uint64) error {
	if c.store.Snapshot().Meta(state.MetaClusterID) != "" {
		return nil
	}
	_, err := c.Propose(ctx, state.Command{
		Key: fmt.Sprintf("cluster-id/%d", term), Kind: "store the cluster's ID", Caller: c.caller(), At: time.Now().UTC(),
		Meta: map[string]string{state.MetaClusterID: c.cfg.ClusterID, model.MetaGuarded: "yes"},
		// A refusal means that it is there.
		Expect: []state.Expectation{{Table: state.Meta, ID: state.MetaClusterID}},
	})
	if err != nil {
		return fmt.Errorf("store the cluster's ID: %w", err)
	}
	return nil
}

// IsLeader tells whether this member believes that it leads. Only VerifyRead proves it.
func (c *self) IsLeader() bool { return c.raft.Load().State() == raft.Leader }

// Leader is the ID of the member that leads, as far as this one knows.
func (c *self) Leader() (memberID string, ok bool) {
	_, id := c.raft.Load().LeaderWithID()
	return string(id), id != ""
}

// Term is Raft's current term here.
func (c *self) Term() uint64 { return c.raft.Load().CurrentTerm() }
