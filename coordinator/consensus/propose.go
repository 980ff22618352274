package consensus

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"berth/coordinator/identities"
	"berth/coordinator/state"
)

// proposing is how commands get into the log, and how reads make sure that they see them.
type proposing struct {
	*self
	slots    chan struct{}
	outgoing outgoing
	ready    atomic.Uint64 // the term in which this member has led past a barrier
}

// Propose commits a command and returns what applying it gave. The error is ErrNotLeader, ErrTooLarge, ErrDiskLow, ErrClock or
// state.ErrNotYet, or ctx's own: then nothing was sent. Or it is ErrUnknown (together with ctx's own, when that is why): then the
// command may be committed, and proposing it again with the same key tells.
func (c *proposing) Propose(ctx context.Context, command state.Command) (state.Result, error) {
	answer := c.ProposeTogether(ctx, []state.Command{command})[0]
	return answer.Result, answer.Err
}

// Answer is what became of one of several commands. Err is that of Propose.
type Answer struct {
	Result state.Result
	Err    error
}

// ProposeTogether commits commands in their order, in as few entries of the log as they fit in. Each has its own answer: one
// that is refused or cannot be sent changes nothing for the others.
func (c *proposing) ProposeTogether(ctx context.Context, commands []state.Command) []Answer {
	answers := make([]Answer, len(commands))
	call := &call{through: c}
	for i := range commands {
		data, read, err := c.encode(&commands[i])
		if err != nil {
			answers[i].Err = err
			continue
		}
		call.proposals = append(call.proposals, &proposal{call: call, index: i, data: data, read: read, answer: make(chan Answer, 1)})
	}
	err := call.submit(ctx)
	for _, p := range call.proposals {
		answers[p.index].Err = err
		if err == nil {
			answers[p.index] = c.answerOf(ctx, p)
		}
	}
	return answers
}

// encode gives a command the form that it has in the log, if it may be sent. The level that it is written for may rise before it
// is applied, and never falls.
func (c *proposing) encode(command *state.Command) ([]byte, *state.Command, error) {
	snapshot := c.store.Snapshot()
	identities.Sign(snapshot, command.Events)
	readable, err := command.For(snapshot.FeatureLevel())
	if err != nil {
		return nil, nil, err
	}
	data, read, err := readable.Lean(snapshot).Written()
	if err != nil {
		return nil, nil, err
	}
	if len(data) > state.MaxCommand {
		return nil, nil, fmt.Errorf("%w: %q has %d bytes, at most %d may be", ErrTooLarge, command.Kind, len(data), state.MaxCommand)
	}
	if err := c.checkClock(); err != nil {
		return nil, nil, err
	}
	return data, read, checkDisk(c.cfg.DataDir, c.cfg.MinFree)
}

// answerOf leaves a proposal behind when ctx ends or Raft does: its futures cannot be interrupted. What was sent is then not
// known.
func (c *proposing) answerOf(ctx context.Context, p *proposal) Answer {
	select {
	case answer := <-p.answer:
		return answer
	case <-ctx.Done():
		return Answer{Err: fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())}
	case <-c.stopped:
	}
	select { // it may have been answered just before the end
	case answer := <-p.answer:
		return answer
	default:
		return Answer{Err: errStopped}
	}
}

var errStopped = fmt.Errorf("%w: this coordinator has stopped", ErrUnknown)

func notLeader(s raft.RaftState) error {
	if s == raft.Leader {
		return nil
	}
	return ErrNotLeader
}

// outcome says what an error of Raft's Apply means for the command. Read from raft v1.8.0: followers, candidates, a
// leader that hands over and one that steps down answer before they append. ErrLeadershipLost, ErrAbortedByRestore,
// ErrRaftShutdown and errors of the store come after, or may.
func outcome(err error) error {
	if errors.Is(err, raft.ErrNotLeader) || errors.Is(err, raft.ErrLeadershipTransferInProgress) {
		return ErrNotLeader
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}

// await leaves a call to Raft behind when ctx ends or Raft does: its futures cannot be interrupted. What was sent is then
// not known.
func (c *self) await(ctx context.Context, call func() error) error {
	done := make(chan error, 1)
	go func() { done <- call() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())
	case <-c.stopped:
	}
	select { // it may have been answered just before the end
	case err := <-done:
		return err
	default:
		return errStopped
	}
}

// Barrier returns when everything committed so far has been applied here, while this member leads. The error is
// ErrNotLeader or ctx's own.
func (c *proposing) Barrier(ctx context.Context) error {
	r := c.raft.Load()
	if err := notLeader(r.State()); err != nil {
		return err
	}
	return asLeader(ctx, c.await(ctx, func() error { return r.Barrier(0).Error() }))
}

// asLeader is for calls that change nothing: whatever went wrong, only a leader can answer.
func asLeader(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	default:
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
}

// Established returns once this member has committed something in the term that it leads, and from then on at once. A
// member that was just elected may still lose to another one, and its commit index is behind. The error is ErrNotLeader or
// ctx's own.
func (c *proposing) Established(ctx context.Context) error {
	_, err := c.established(ctx, c.raft.Load())
	return err
}

func (c *proposing) established(ctx context.Context, r *raft.Raft) (term uint64, err error) {
	term = r.CurrentTerm()
	if err := notLeader(r.State()); err != nil {
		return 0, err
	}
	if c.ready.Load() == term {
		return term, nil
	}
	if err := c.Barrier(ctx); err != nil {
		return 0, err
	}
	if r.CurrentTerm() != term {
		return 0, ErrNotLeader
	}
	c.ready.Store(term)
	return term, nil
}

// VerifyRead returns when a snapshot of the store, taken from now on, has everything that was committed anywhere before
// the call. It writes nothing. The error is ErrNotLeader or ctx's own.
//
// It is the read index of Ongaro's thesis, section 6.4: note the commit index in a term of which something is committed,
// have a majority confirm the term, and wait until that index is applied.
func (c *proposing) VerifyRead(ctx context.Context) error {
	r := c.raft.Load()
	term, err := c.established(ctx, r)
	if err != nil {
		return err
	}
	index := r.CommitIndex()
	if err := asLeader(ctx, c.await(ctx, func() error { return r.VerifyLeader().Error() })); err != nil {
		return err
	}
	if r.CurrentTerm() != term {
		return ErrNotLeader
	}
	return c.waitApplied(ctx, index)
}

// waitApplied waits for the last command up to index. The entries above it (barriers, configurations, a leader's first)
// do not reach the state, so the state's index never comes to theirs; and Raft's own applied index is ahead of the state.
func (c *proposing) waitApplied(ctx context.Context, index uint64) error {
	applied := c.store.Snapshot().Index()
	for ; index > applied; index-- {
		var entry raft.Log
		err := c.logs.GetLog(index, &entry)
		if errors.Is(err, raft.ErrLogNotFound) {
			return nil // in a snapshot that the state was restored from
		}
		if err != nil {
			return err
		}
		if entry.Type == raft.LogCommand {
			break
		}
	}
	for {
		now := c.store.Snapshot()
		if now.Index() >= index {
			return nil
		}
		select {
		case <-now.Changed():
		case <-ctx.Done():
			return ctx.Err()
		case <-c.stopped:
			return ErrNotLeader
		}
	}
}
