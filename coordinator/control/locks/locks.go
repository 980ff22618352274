// Package locks tries whether locks of files in shared storage pools reach all nodes. What that shows is kept by the leader only: the
// next one tries again.
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
	l.mu.Lock()
	l.trials = evidence.LockTrials{}
	l.mu.Unlock()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		moment := l.Moment(l.Store.Snapshot())
		l.mu.Lock()
		l.trials.Keep(moment)
		trial, due := l.trials.Next(moment)
		l.mu.Unlock()
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
		l.mu.Lock()
		l.trials.Note(trial, verdict, why, l.Now())
		l.mu.Unlock()
	}
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
