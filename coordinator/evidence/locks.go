package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"berth/coordinator/model"
)

// QEMU locks the image of a disk that it writes to. Where such locks reach all nodes of a shared storage pool, a second copy of a guest
// ends before it has written anything, even if everything else here were wrong. Whether they do is tried: one node locks a file, and
// another one looks. A pool's nodes are a ring by name, each looks at the lock of the one before it, so that each has held and looked.

// How old a trial may be before it is made again.
const (
	lockTrialLasts = 6 * time.Hour
	lockTrialAgain = 10 * time.Minute // one that did not show that locks reach the other node
)

// LockVerdict is what trials have shown of a pool.
type LockVerdict string

// What trials show.
const (
	LocksUnknown LockVerdict = ""
	LocksReach   LockVerdict = "reach all nodes"
	LocksStay    LockVerdict = "do not reach other nodes"
	NotShared    LockVerdict = "not shared"
)

// LockTrial is one node that locks a file of a pool, and another one that looks.
type LockTrial struct {
	Pool, Source    string // the pool's ID, and libvirt's name of it
	Holder, Witness string // node IDs
}

// lockTried is what one trial has shown.
type lockTried struct {
	holder  string
	at      time.Time
	verdict LockVerdict
	why     string // of LocksUnknown
}

// LockTrials are the last trials, by pool and witness.
type LockTrials map[string]map[string]lockTried

// Locks are what is known of the locks of one pool.
type Locks struct {
	Verdict LockVerdict
	Why     string    // in words; empty: they reach all nodes
	Tried   int       // nodes that have looked
	Nodes   int       // that have the pool in use
	At      time.Time // of the trial that says so; of LocksReach, of the oldest one
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
		for _, trial := range m.lockRing(&pool) {
			last := all[pool.ID][trial.Witness]
			if last.holder != trial.Holder {
				last = lockTried{}
			}
			lasts := lockTrialAgain
			if last.verdict == LocksReach {
				lasts = lockTrialLasts
			}
			if (last.at.IsZero() || m.At.Sub(last.at) >= lasts) && (!due || last.at.Before(oldest)) {
				next, due, oldest = trial, true, last.at
			}
		}
	}
	return next, due
}

// lockRing are the trials of a shared pool: each node that has it in use looks at the lock of the one before it.
func (m Moment) lockRing(pool *model.Resource) []LockTrial {
	source, cluster := model.PoolSettingsOf(pool).Source, m.clusterOf(pool)
	var nodes []model.Node
	for _, node := range m.Nodes() {
		if node.ClusterName() != cluster || node.Held() {
			continue
		}
		facts := m.Facts(node.ID)
		active := func(p model.PoolFacts) bool { return p.Name == source && p.Active }
		if facts.Liveness == model.Up && slices.ContainsFunc(facts.Pools, active) {
			nodes = append(nodes, node)
		}
	}
	if len(nodes) < 2 {
		return nil
	}
	slices.SortFunc(nodes, func(a, b model.Node) int { return cmp.Compare(a.Name, b.Name) })
	ring := make([]LockTrial, len(nodes))
	for i := range nodes {
		before := nodes[(i+len(nodes)-1)%len(nodes)].ID
		ring[i] = LockTrial{Pool: pool.ID, Source: source, Holder: before, Witness: nodes[i].ID}
	}
	return ring
}

// Note takes in what a trial has shown; why says it of LocksUnknown.
func (all LockTrials) Note(trial LockTrial, verdict LockVerdict, why string, at time.Time) {
	if all[trial.Pool] == nil {
		all[trial.Pool] = map[string]lockTried{}
	}
	all[trial.Pool][trial.Witness] = lockTried{trial.Holder, at, verdict, why}
}

// Keep forgets pools that are gone, and nodes that are.
func (all LockTrials) Keep(m Moment) {
	for pool, tried := range all {
		if _, known := m.Resource(pool); !known {
			delete(all, pool)
		}
		for node := range tried {
			if _, known := m.Node(node); !known {
				delete(tried, node)
			}
		}
	}
}

// Of is what is known of the locks of a shared pool. What one pair of nodes has shown against them counts for all.
func (all LockTrials) Of(m Moment, pool *model.Resource) Locks {
	ring := m.lockRing(pool)
	locks := Locks{Nodes: len(ring)}
	if len(ring) == 0 {
		locks.Why = "it takes two nodes that have it in use to try that"
		return locks
	}
	unknown := ""
	for _, trial := range ring {
		last, tried := all[pool.ID][trial.Witness]
		if !tried || last.holder != trial.Holder {
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
