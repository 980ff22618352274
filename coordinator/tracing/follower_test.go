package tracing

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/shared/tracing"
)

// told are the spans that a follower has made.
type told struct {
	mu    sync.Mutex
	spans []tracing.Span
	came  chan struct{}
}

func (t *told) Add(spans ...tracing.Span) {
	t.mu.Lock()
	t.spans = append(t.spans, spans...)
	t.mu.Unlock()
	for range spans {
		t.came <- struct{}{}
	}
}

// lines are what was told since the last time, in words.
func (t *told) lines() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.spans {
		begun, ended := s.Begun.Sub(statetest.Noon), s.Ended.Sub(statetest.Noon)
		lines = append(lines, fmt.Sprint(s.Operation, " ", s.Name, s.Kind, " ", begun, " to ", ended, s.Failed))
	}
	t.spans = nil
	return lines
}

// site is a state that is followed.
type site struct {
	*statetest.Site
	*Follower

	told *told
	now  time.Time
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Site: statetest.New(t), told: &told{came: make(chan struct{}, 100)}, now: statetest.Noon}
	s.Follower = &Follower{State: s.Snapshot, Now: func() time.Time { return s.now }, Sink: s.told, live: map[string]*course{}}
	s.after = s.Snapshot().Index()
	return s
}

func after(seconds int) time.Time { return statetest.Noon.Add(time.Duration(seconds) * time.Second) }

// puts writes an operation, and with it decisions.
func (s *site) puts(revision uint64, op operation.Operation, decisions ...placement.Decision) uint64 {
	s.Helper()
	op.VM, op.VMName = "vm-"+op.ID, "web-"+op.ID
	command := state.Command{
		Kind: "operation", Operations: []operation.Operation{op}, Decisions: decisions,
		Expect: []state.Expectation{{Table: state.Operations, ID: op.ID, Revision: revision}},
	}
	if revision == 0 {
		command.VMs = []model.VM{{ID: op.VM, Name: op.VMName}}
		command.Expect = append(command.Expect, state.Expectation{Table: state.VMs, ID: op.VM})
	}
	s.Apply(command)
	return s.Snapshot().Index()
}

func (s *site) tells(want ...string) {
	s.Helper()
	s.look(s.Snapshot())
	if got := s.told.lines(); !slices.Equal(got, want) {
		s.Errorf("told\n%q\nwant\n%q", got, want)
	}
}

// A migration has a span of its decision, of its way into the log, of each phase, and of the whole, and none of them twice.
func TestAnOperationBecomesSpans(t *testing.T) {
	s := newSite(t)
	op := operation.Operation{
		ID: "m1", Kind: operation.Migrate, Phase: operation.Preparing, Decision: "d1", CreatedAt: after(2), UpdatedAt: after(2),
	}
	s.now = after(3)
	revision := s.puts(0, op, placement.Decision{ID: "d1", At: after(1), Operation: "m1", Outcome: "placed"})
	s.tells("m1 decision 1s to 2s", "m1 commit 2s to 3s")
	s.tells()
	op.Phase, op.UpdatedAt = operation.Copying, after(5)
	revision = s.puts(revision, op)
	s.tells("m1 preparing 2s to 5s")
	op.Step, op.UpdatedAt = 2, after(6)
	revision = s.puts(revision, op)
	s.tells()
	op.Phase, op.Result, op.UpdatedAt, op.EndedAt = operation.Ended, operation.Done, after(9), after(9)
	s.puts(revision, op)
	s.tells("m1 copying 5s to 9s", "m1 migrate 1s to 9s")
	s.tells()
	if len(s.live) > 0 {
		t.Errorf("it still follows %v", s.live)
	}
}

// One that failed says why; and one that began and ended between two looks has all spans too.
func TestAShortOperationThatFailed(t *testing.T) {
	s := newSite(t)
	s.now = after(4)
	s.puts(0, operation.Operation{
		ID: "s1", Kind: operation.Start, Phase: operation.Ended, Result: operation.Failed, Message: "no room", CreatedAt: after(1),
		UpdatedAt: after(3), EndedAt: after(3),
	})
	s.tells("s1 commit 1s to 4s", "s1 dispatched 1s to 3s", "s1 start 1s to 3sno room")
}

// A member that begins to follow knows what lives, and tells of that alone.
func TestOneThatBeginsLateFollowsWhatLives(t *testing.T) {
	s := newSite(t)
	s.puts(0, operation.Operation{
		ID: "s1", Kind: operation.Start, Phase: operation.Ended, Result: operation.Done, CreatedAt: after(1), UpdatedAt: after(2),
		EndedAt: after(2),
	})
	live := operation.Operation{ID: "s2", Kind: operation.Start, Phase: operation.Dispatched, CreatedAt: after(3), UpdatedAt: after(4)}
	revision := s.puts(0, live)
	ctx, stop := context.WithCancel(t.Context())
	ended, looked := make(chan struct{}), make(chan struct{})
	s.State = sync.OnceValue(func() *state.Snapshot { defer close(looked); return s.Snapshot() })
	first := s.State
	s.State = func() *state.Snapshot {
		select {
		case <-looked:
			return s.Snapshot()
		default:
			return first()
		}
	}
	go func() {
		defer close(ended)
		s.Run(ctx)
	}()
	<-looked
	live.Phase, live.Result, live.UpdatedAt, live.EndedAt = operation.Ended, operation.Done, after(7), after(7)
	s.puts(revision, live)
	<-s.told.came
	<-s.told.came
	stop()
	<-ended
	if got, want := s.told.lines(), []string{"s2 dispatched 4s to 7s", "s2 start 3s to 7s"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}
