package api

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/consensus"
	"berth/coordinator/state"
	"berth/shared/rpc"
)

// maxTries bounds how often a change is made anew because the state moved on under it.
const maxTries = 5

// unknownPause is how long to wait before a command is proposed again whose outcome is not known.
const unknownPause = 100 * time.Millisecond

// errUnchanged tells propose that there is nothing to do.
var errUnchanged = errors.New("nothing to change")

// propose commits the command that build makes of a picture, and has it made anew when a record that it expects has
// changed meanwhile. Build fills what is its own: Kind, Expect, the records and the events.
func (s *Server) propose(
	ctx context.Context, requestID string, build func(*picture) (state.Command, error),
) (*picture, error) {
	var last *state.Refusal
	for range maxTries {
		now, err := s.verified(ctx)
		if err != nil {
			return nil, err
		}
		command, err := build(now)
		if errors.Is(err, errUnchanged) {
			return now, nil
		}
		if err != nil {
			return nil, err
		}
		command.Caller = callerOf(ctx).String()
		command.At = now.at
		command.Key = requestID
		if command.Key == "" {
			command.Key = newID(now.at)
		}
		result, err := s.commit(ctx, command)
		switch {
		case err != nil:
			return nil, err
		case result.Refusal == nil:
			return s.present(), nil
		case result.Refusal.Code != state.Stale:
			return nil, result.Refusal
		}
		last = result.Refusal
	}
	return nil, refusal(rpc.Stale, string(last.Table)+"/"+last.ID, "try again",
		"it changed %d times while this change was made: %s", maxTries, last.Message)
}

// commit proposes the command, and again with the same key while it is not known what became of it. Only a leader can
// tell that, so a loss of the leadership meanwhile leaves it unknown.
func (s *Server) commit(ctx context.Context, command state.Command) (state.Result, error) {
	result, err := s.Consensus.Propose(ctx, command)
	for try := 1; try < maxTries && errors.Is(err, consensus.ErrUnknown) && pause(ctx, unknownPause); try++ {
		again, secondErr := s.Consensus.Propose(ctx, command)
		if errors.Is(secondErr, consensus.ErrNotLeader) {
			break
		}
		result, err = again, secondErr
	}
	return result, err
}

func newID(now time.Time) string { return cluster.NewID(now, random()) }

func newUUID() string { return cluster.NewUUID(random(), random()) }

func random() uint64 {
	var bits [8]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the process instead
	return binary.BigEndian.Uint64(bits[:])
}

func expectNode(n cluster.Node) state.Expectation {
	return state.Expectation{Table: state.Nodes, ID: n.ID, Revision: n.Revision}
}

func expectVM(vm cluster.VM) state.Expectation {
	return state.Expectation{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}
}

// event is one line of history about a change that this package makes.
func (p *picture) event(ctx context.Context, kind, subject, format string, args ...any) cluster.Event {
	return cluster.Event{
		At: p.at, Kind: kind, Subject: subject, Message: fmt.Sprintf(format, args...), Caller: callerOf(ctx).String(),
	}
}
