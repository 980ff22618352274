package evidence

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"berth/coordinator/model"
)

// Locks are what is known of the locks of one pool.
type Locks struct {
	Verdict LockVerdict
	Why     string     // in words; empty: they reach all nodes
	Tried   int        // nodes that have looked
	Nodes   int        // that have the pool in use
	At      time.Time  // of the trial that says so; of LocksReach, of the oldest one
	Sides   [][]string // names of the nodes by what they have under the pool's name, the larger sides first; none: nothing sets them apart
}

// Doubtful tells that a second copy of a guest was seen not to be stopped by a lock, or would have to be of another disk.
func (l *Locks) Doubtful() bool { return l.Verdict == LocksStay || l.Verdict == NotShared }

// Next is the trial that is due: one that was never made, or else the oldest.
func (all LockTrials) Next(m Moment) (next LockTrial, due bool) {
	var oldest time.Time
	for _, pool := range m.Resources(model.KindPool) {
		settings := model.PoolSettingsOf(&pool)
		if settings.Scope != model.PoolShared {
			continue
		}
		for _, trial := range m.trials(&pool, all[pool.ID]) {
			last := all[pool.ID][trial.pair()]
			lasts := lockTrialAgain
			switch {
			case last.looked != m.looks(trial):
				lasts = lockTrialSoon
			case last.verdict == LocksReach:
				lasts = lockTrialLasts
			}
			if (last.last.IsZero() || m.At.Sub(last.last) >= lasts) && (!due || last.last.Before(oldest)) {
				next, due, oldest = trial, true, last.last
			}
		}
	}
	return next, due
}

// Keep forgets pools that are gone, nodes that are, and trials of two nodes that would not be made any more. Those with a node that is out
// of reach stay.
func (all LockTrials) Keep(m Moment) {
	for id, tried := range all {
		pool, known := m.Resource(id)
		if !known || model.PoolSettingsOf(&pool).Scope != model.PoolShared {
			delete(all, id)
			continue
		}
		inRing, due := map[string]bool{}, map[lockPair]bool{}
		for _, trial := range m.trials(&pool, tried) {
			inRing[trial.Holder], inRing[trial.Witness], due[trial.pair()] = true, true, true
		}
		cluster := m.clusterOf(&pool)
		maps.DeleteFunc(tried, func(pair lockPair, _ lockTried) bool {
			holder, there := m.Node(pair.holder)
			witness, too := m.Node(pair.witness)
			return !there || !too || holder.ClusterName() != cluster || witness.ClusterName() != cluster ||
				inRing[pair.holder] && inRing[pair.witness] && !due[pair]
		})
	}
}

// Of is what is known of the locks of a shared pool. What one pair of nodes has shown against them counts for all.
func (all LockTrials) Of(m Moment, pool *model.Resource) Locks {
	ring := m.lockRing(pool)
	locks := Locks{Nodes: len(ring), Sides: SideNames(all.Apart(m)[pool.ID])}
	if len(ring) == 0 {
		locks.Why = "it takes two nodes that have it in use to try that"
		return locks
	}
	unknown := ""
	for _, trial := range ring {
		last, tried := all[pool.ID][trial.pair()]
		if !tried {
			continue
		}
		if locks.Tried++; last.verdict == LocksUnknown {
			unknown = cmp.Or(unknown, last.why)
			continue
		}
		worse := last.verdict != LocksReach && locks.Verdict != NotShared
		older := last.verdict == LocksReach && !locks.Doubtful() && (locks.At.IsZero() || last.at.Before(locks.At))
		if worse || older {
			locks.Verdict, locks.At, locks.Why = last.verdict, last.at, m.lockWhy(trial, last.verdict)
		}
	}
	switch {
	case locks.Doubtful():
	case unknown != "":
		locks.Verdict, locks.At, locks.Why = LocksUnknown, time.Time{}, unknown
	case locks.Tried < locks.Nodes:
		locks.Verdict, locks.At, locks.Why = LocksUnknown, time.Time{}, fmt.Sprintf("%d of %d nodes have tried it", locks.Tried, locks.Nodes)
	}
	return locks
}

func (m Moment) lockWhy(trial LockTrial, verdict LockVerdict) string {
	holder, witness := m.NodeName(trial.Holder), m.NodeName(trial.Witness)
	switch verdict {
	case LocksStay:
		return fmt.Sprintf("%s did not see that %s had locked a file there", witness, holder)
	case NotShared:
		return fmt.Sprintf("%s did not see a file that %s had made there", witness, holder)
	default:
		return ""
	}
}
