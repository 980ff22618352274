package answer

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/consensus"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pause"
	"berth/shared/rpc"
)

// maxTries bounds how often a change is made anew because the state moved on under it.
const maxTries = 5

// unknownPause is how long to wait before a command is proposed again whose outcome is not known.
const unknownPause = 100 * time.Millisecond

// ErrUnchanged tells propose that there is nothing to do.
var ErrUnchanged = errors.New("nothing to change")

// Propose commits the command that build makes of a moment, and has it made anew when a record that it expects has
// changed meanwhile. Build fills what is its own: Kind, Expect, the records and the events.
func (s *Source) Propose(
	ctx context.Context, requestID string, build func(*Moment) (state.Command, error),
) (*Moment, error) {
	var last *state.Refusal
	for range maxTries {
		now, err := s.Verified(ctx)
		if err != nil {
			return nil, err
		}
		command, err := build(now)
		if errors.Is(err, ErrUnchanged) {
			return now, nil
		}
		if err != nil {
			return nil, err
		}
		command.Caller = gate.CallerOf(ctx).String()
		command.At = now.At
		command.Key = requestID
		if command.Key == "" {
			command.Key = NewID(now.At)
		}
		result, err := s.commit(ctx, command)
		switch {
		case err != nil:
			return nil, err
		case result.Refusal == nil:
			return s.Present(), nil
		case result.Refusal.Code != state.Stale:
			return nil, result.Refusal
		}
		last = result.Refusal
	}
	return nil, refusal.New(rpc.Stale, string(last.Table)+"/"+last.ID, "try again",
		"it changed %d times while this change was made: %s", maxTries, last.Message)
}

// commit proposes the command, and again with the same key while it is not known what became of it. Only a leader can
// tell that, so a loss of the leadership meanwhile leaves it unknown.
func (s *Source) commit(ctx context.Context, command state.Command) (state.Result, error) {
	result, err := s.Consensus.Propose(ctx, command)
	for try := 1; try < maxTries && errors.Is(err, consensus.ErrUnknown) && pause.For(ctx, unknownPause); try++ {
		again, secondErr := s.Consensus.Propose(ctx, command)
		if errors.Is(secondErr, consensus.ErrNotLeader) {
			break
		}
		result, err = again, secondErr
	}
	return result, err
}

// NewID is the ID of a new record.
func NewID(now time.Time) string { return model.NewID(now, Random()) }

// NewUUID is the UUID of a new VM.
func NewUUID() string { return model.NewUUID(Random(), Random()) }

// Random is a number that nobody can guess.
func Random() uint64 {
	var bits [8]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the process instead
	return binary.BigEndian.Uint64(bits[:])
}

// ExpectNode guards a change by the revision of a node that it was made of.
func ExpectNode(n model.Node) state.Expectation {
	return state.Expectation{Table: state.Nodes, ID: n.ID, Revision: n.Revision}
}

// ExpectVM guards a change by the revision of a VM that it was made of.
func ExpectVM(vm model.VM) state.Expectation {
	return state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}
}

// Event is one line of history about a change that this package makes.
func (p *Moment) Event(ctx context.Context, kind, subject, format string, args ...any) model.Event {
	who := gate.CallerOf(ctx)
	return model.Event{
		At: p.At, Kind: kind, Subject: subject, Message: fmt.Sprintf(format, args...), Caller: who.String(), CallerID: who.ID,
	}
}

// WhenLeading waits, as long as a call waits for a leader, while control has not begun the work of a leadership that this
// member has won.
func WhenLeading[T any](ctx context.Context, s *Source, do func() (T, error)) (T, error) {
	waiting, cancel := context.WithTimeout(ctx, gate.LeaderPatience)
	defer cancel()
	for {
		done, err := do()
		var refused *lead.Error
		if !errors.As(err, &refused) || refused.Code != lead.NoLeader || !s.Consensus.IsLeader() || !pause.For(waiting, gate.LeaderPoll) {
			return done, err
		}
	}
}
