package evidence

import (
	"cmp"
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
	lockTrialSoon  = 30 * time.Second // one of nodes of which something was mounted or booted since
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

// lockPair are the nodes of a trial, by ID.
type lockPair struct{ holder, witness string }

// pair are its nodes.
func (t LockTrial) pair() lockPair { return lockPair{t.Holder, t.Witness} }

// lockTried is what one trial has shown.
type lockTried struct {
	at      time.Time // of the trial that has shown it
	last    time.Time // of the last one
	verdict LockVerdict
	why     string            // of LocksUnknown
	looked  [2]model.PoolLook // the pool as holder and witness showed it then
	left    [2]time.Time      // when holder and witness were first seen to have something else there than both had before; zero: they were not
}

// LockTrials are the last trials, by pool and nodes.
type LockTrials map[string]map[lockPair]lockTried

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

// looks is the pool as both nodes of a trial show it.
func (m Moment) looks(trial LockTrial) (looked [2]model.PoolLook) {
	for i, node := range []string{trial.Holder, trial.Witness} {
		facts := m.Facts(node)
		looked[i].Boot = facts.Boot
		for _, pool := range facts.Pools {
			if pool.Name == trial.Source {
				looked[i].Path, looked[i].Capacity = pool.Path, pool.Capacity
			}
		}
	}
	return looked
}

// Note takes in what a trial has shown, of the moment at which it was begun; why says it of LocksUnknown. What is not known now takes
// nothing of what set both nodes apart before: a VM would be started from the wrong file as soon as an agent does not answer.
func (all LockTrials) Note(m Moment, trial LockTrial, verdict LockVerdict, why string, at time.Time) {
	if all[trial.Pool] == nil {
		all[trial.Pool] = map[lockPair]lockTried{}
	}
	pair := trial.pair()
	if before := all[trial.Pool][pair]; verdict == LocksUnknown && before.verdict == NotShared {
		before.last = at
		all[trial.Pool][pair] = before
		return
	}
	now := lockTried{at: at, last: at, verdict: verdict, why: why, looked: m.looks(trial)}
	if before, known := all[trial.Pool][pair]; known && verdict == NotShared {
		now.left = before.left
		for i := range now.left {
			if before.verdict != NotShared && before.verdict != LocksUnknown && before.looked[i] != now.looked[i] {
				now.left[i] = at
			}
		}
	}
	all[trial.Pool][pair] = now
}
