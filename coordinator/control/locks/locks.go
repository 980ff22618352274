// Package locks tries whether locks of files in shared storage pools reach all nodes, and whether all nodes have the same storage there.
// What sets nodes apart is in the pool's record, for the next leader; the rest it tries again.
package locks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

const (
	every = 3 * time.Second // between two trials
	limit = time.Minute     // of one
)

// Locks tries them. It is safe for concurrent use.
type Locks struct {
	*lead.Leader

	mu     sync.Mutex
	trials evidence.LockTrials
	told   model.PoolsApart
}

// New makes a Locks that tries nothing before Try is called.
func New(leader *lead.Leader) *Locks { return &Locks{Leader: leader, trials: evidence.LockTrials{}} }

// PoolLocks is what is known of the locks of a shared pool.
func (l *Locks) PoolLocks(snapshot *state.Snapshot, pool *model.Resource) evidence.Locks {
	moment := l.Moment(snapshot)
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.trials.Of(moment, pool)
}

// TryLocks makes one trial after the other until the context ends.
func (l *Locks) TryLocks(ctx context.Context) {
	l.begin()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := l.Store.Snapshot()
		moment := l.Moment(snapshot)
		trial, due, changed := l.next(snapshot, moment)
		l.keep(ctx, snapshot, changed)
		if !due {
			continue
		}
		verdict, err := l.try(ctx, moment, trial)
		if ctx.Err() != nil {
			return
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		if verdict != evidence.LocksReach {
			l.Logger.Warn("locks in a storage pool were tried", "pool", trial.Source, "verdict", verdict, "held by", moment.NodeName(trial.Holder),
				"seen by", moment.NodeName(trial.Witness), "error", why)
		}
		l.note(moment, trial, verdict, why)
	}
}

// The locks of these are given back even if they panic.

// begin takes over what an earlier leader has recorded.
func (l *Locks) begin() {
	moment := l.Moment(l.Store.Snapshot())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trials = evidence.Recorded(moment)
	l.tell(l.trials.Apart(moment))
}

// next is the trial that is due, if one is, and the pools whose records are to have what was tried.
func (l *Locks) next(snapshot *state.Snapshot, moment evidence.Moment) (trial evidence.LockTrial, due bool, changed []model.Resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ViewComplete(snapshot) { // before that, a ring has gaps that are none
		l.trials.Keep(moment)
	}
	l.tell(l.trials.Apart(moment))
	trial, due = l.trials.Next(moment)
	return trial, due, l.trials.Record(moment, l.told)
}

// note takes in what a trial has shown.
func (l *Locks) note(moment evidence.Moment, trial evidence.LockTrial, verdict evidence.LockVerdict, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trials.Note(moment, trial, verdict, why, l.Now())
	l.tell(l.trials.Apart(moment))
}

// keep puts what sets pools apart into their records.
func (l *Locks) keep(ctx context.Context, snapshot *state.Snapshot, changed []model.Resource) {
	if snapshot.FeatureLevel() < state.TrialsLevel {
		return
	}
	for _, pool := range changed {
		command := l.Command("keep trials of a pool", "", lead.Berth)
		command.Expect = []state.Expectation{{Table: state.Resources, ID: pool.ID, Revision: pool.Revision}}
		command.Resources = []model.Resource{pool}
		l.Try(ctx, command)
	}
}

// tell has decisions be made on which nodes are apart, if there are any or were. The caller holds the lock.
func (l *Locks) tell(apart model.PoolsApart) {
	if len(apart)+len(l.told) > 0 {
		l.Inventory.SetApart(apart)
	}
	l.told = apart
}

// try has one node hold a lock and another one look. With an error nothing is known.
func (l *Locks) try(ctx context.Context, moment evidence.Moment, trial evidence.LockTrial) (evidence.LockVerdict, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	order := lead.TryLock{Pool: trial.Source, Volume: "berth-lock-" + trial.Holder}
	step := func(ctx context.Context, node string, step lead.LockStep) (lead.TaskDone, error) {
		order.Step = step
		done, err := l.Agents.Perform(ctx, node, lead.Task{Lock: &order})
		if err != nil {
			err = fmt.Errorf("%s: %w", moment.NodeName(node), err)
		}
		return done, err
	}
	if _, err := step(limited, trial.Holder, lead.HoldLock); err != nil {
		return evidence.LocksUnknown, err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
		if _, err := step(ctx, trial.Holder, lead.ReleaseLock); err != nil {
			l.Logger.Warn("a lock that was tried could not be released", "pool", trial.Source, "error", err)
		}
	}()
	seen, err := step(limited, trial.Witness, lead.LookAtLock)
	var answer *lead.TaskError
	switch {
	case errors.As(err, &answer) && answer.Code == operation.NoVolume:
		return evidence.NotShared, nil
	case err != nil:
		return evidence.LocksUnknown, err
	case seen.Locked:
		return evidence.LocksReach, nil
	default:
		return evidence.LocksStay, nil
	}
}
