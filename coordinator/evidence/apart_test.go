package evidence

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
)

// lyingPool is a pool that is declared as shared, and what its nodes really have under its name.
type lyingPool struct {
	*estate
	all  LockTrials
	pool model.Resource
	has  map[string]int // storage by node ID
}

func newLyingPool(has ...int) *lyingPool {
	l := &lyingPool{
		estate: running(), all: LockTrials{}, has: map[string]int{}, pool: model.Resource{
			Kind: model.KindPool, ID: "p1", Name: "nfs", Settings: map[string]string{model.SettingScope: string(model.PoolShared)},
		},
	}
	l.resources, l.nodes, l.facts = []model.Resource{l.pool}, nil, map[string]model.NodeFacts{}
	for i, storage := range has {
		id := fmt.Sprintf("n%02d", i)
		l.nodes = append(l.nodes, model.Node{ID: id, Name: "hv" + id[1:]})
		l.has[id] = storage
		l.facts[id] = model.NodeFacts{Pools: []model.PoolFacts{{Name: "nfs", Active: true, Path: "/srv/nfs", Capacity: 1000}}}
		l.alive(id, true)
	}
	return l
}

func (l *lyingPool) alive(node string, is bool) {
	facts := l.facts[node]
	facts.Liveness = map[bool]model.Liveness{true: model.Up, false: model.Unreachable}[is]
	l.facts[node] = facts
}

// moment is as the leader sees it.
func (l *lyingPool) moment() Moment {
	return Moment{Records: l.estate, At: l.at, Facts: func(node string) model.NodeFacts { return l.facts[node] }}
}

// try makes the next trial, if one is due.
func (l *lyingPool) try() bool {
	l.at = l.at.Add(3 * time.Second)
	l.all.Keep(l.moment())
	trial, due := l.all.Next(l.moment())
	if due {
		verdict := LocksReach
		if l.has[trial.Holder] != l.has[trial.Witness] {
			verdict = NotShared
		}
		l.all.Note(l.moment(), trial, verdict, "", l.at)
	}
	return due
}

func (l *lyingPool) tryAll() {
	for l.try() {
	}
}

func (l *lyingPool) apart(one, other string) bool {
	pool := l.all.Apart(l.moment())["p1"]
	return pool != nil && pool.Apart(one, other)
}

func (l *lyingPool) sides() string {
	var texts []string
	for _, side := range SideNames(l.all.Apart(l.moment())["p1"]) {
		texts = append(texts, strings.Join(side, " "))
	}
	return strings.Join(texts, " | ")
}

// FAULTS.md, W5. What trials show sets nodes apart, and binds nobody else.
func TestNodesWithAnotherPoolAreSetApart(t *testing.T) {
	for _, tc := range []struct {
		has   []int
		sides string
	}{
		{[]int{1, 1, 1, 1}, ""},
		{[]int{1, 2}, "hv00 | hv01"},
		{[]int{1, 1, 2, 1, 1}, "hv00 hv01 hv03 hv04 | hv02"},
		{[]int{1, 2, 3}, "hv00 | hv01 | hv02"},
		{[]int{1, 2, 1, 1, 3, 1}, "hv00 hv02 hv03 hv05 | hv01 | hv04"}, // two wrong ones do not part those between them
		{[]int{1, 2, 1, 2}, "hv00 hv02 | hv01 hv03"},
		{[]int{1, 2, 3, 4, 5}, "hv00 | hv01 | hv02 | hv03 | hv04"},
	} {
		l := newLyingPool(tc.has...)
		if l.sides() != "" {
			t.Errorf("%v: before any trial there are %s", tc.has, l.sides())
		}
		if l.tryAll(); l.sides() != tc.sides {
			t.Errorf("%v: the sides are %q, not %q", tc.has, l.sides(), tc.sides)
		}
		if locks := l.all.Of(l.moment(), &l.pool); (len(locks.Sides) > 0) != (tc.sides != "") {
			t.Errorf("%v: told is %+v", tc.has, locks)
		}
	}
}

// What a leader has put into the record sets the same nodes apart for the next one, and changes no more by itself.
func TestWhatIsRecordedSetsTheSameNodesApart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := newLyingPool(rapid.SliceOfN(rapid.IntRange(1, 3), 2, 12).Draw(r, "storage")...)
		for range rapid.IntRange(0, 40).Draw(r, "trials") {
			l.try()
		}
		apart := l.all.Apart(l.moment())
		if changed := l.all.Record(l.moment(), apart); len(changed) > 0 {
			l.resources = changed
		}
		if changed := l.all.Record(l.moment(), apart); len(changed) > 0 {
			r.Fatalf("it is written again: %+v", changed)
		}
		before := l.sides()
		if l.all = Recorded(l.estate); l.sides() != before {
			r.Fatalf("the next leader has %q, the one before had %q", l.sides(), before)
		}
	})
}

// Each node with a storage for itself is apart from each other one, however many there are.
func TestManyNodesWithPoolsOfTheirOwn(t *testing.T) {
	var has []int
	for i := range 40 {
		has = append(has, i)
	}
	l := newLyingPool(has...)
	l.tryAll()
	if !l.apart("n00", "n20") || !l.apart("n07", "n39") || l.apart("n07", "n07") {
		t.Errorf("the sides are %s", l.sides())
	}
	if made := len(l.all["p1"]); made != 40 {
		t.Errorf("%d trials are kept of 40 neighbours", made)
	}
}

// One trial that shows another storage proves nothing: not beside others that show the same, and not where nothing else was tried.
func TestOneTrialProvesNothing(t *testing.T) {
	l := newLyingPool(1, 1, 1)
	l.tryAll()
	l.all.Note(l.moment(), LockTrial{Pool: "p1", Source: "nfs", Holder: "n00", Witness: "n01"}, NotShared, "", l.at)
	if l.sides() != "" {
		t.Errorf("it has made sides: %s", l.sides())
	}
	l = newLyingPool(1, 1, 2, 1)
	for range 3 {
		l.try()
	}
	l.alive("n02", false)
	if l.tryAll(); l.apart("n01", "n02") || l.sides() != "" {
		t.Errorf("it has made sides: %s", l.sides())
	}
}

// What was known of a node counts after its death, until it is back and was tried anew.
func TestADeadNodeKeepsItsSide(t *testing.T) {
	l := newLyingPool(1, 1, 2, 1)
	l.tryAll()
	l.alive("n02", false)
	if l.tryAll(); !l.apart("n00", "n02") || l.apart("n00", "n01") {
		t.Errorf("after its death the sides are %s", l.sides())
	}
	pool := l.all.Apart(l.moment())["p1"]
	for _, words := range []string{"pool nfs on hv01 is not the one on hv02: hv", "had made there, tried 20"} {
		if why := pool.Why("n02", "n01"); !strings.Contains(why, words) {
			t.Errorf("told is %q", why)
		}
	}
	l.alive("n02", true)
	l.has["n02"] = 1 // somebody has mounted it
	facts := l.facts["n02"]
	facts.Pools = []model.PoolFacts{{Name: "nfs", Active: true, Path: "/srv/nfs", Capacity: 9000}}
	l.facts["n02"] = facts
	if !l.apart("n00", "n02") {
		t.Error("it counts again before it was tried")
	}
	l.at = l.at.Add(lockTrialSoon)
	if l.tryAll(); l.sides() != "" {
		t.Errorf("what was mounted is seen too late: %s", l.sides())
	}
	// And the other way: a mount that goes away is seen long before its last trial is old.
	l.has["n01"], facts.Pools = 3, []model.PoolFacts{{Name: "nfs", Active: true, Path: "/srv/nfs", Capacity: 5}}
	l.facts["n01"] = facts
	l.at = l.at.Add(lockTrialSoon)
	if l.tryAll(); l.sides() != "hv00 hv02 hv03 | hv01" {
		t.Errorf("what went away is seen too late: %q", l.sides())
	}
	for pair := range l.all["p1"] { // no agent answers any more
		trial := LockTrial{Pool: "p1", Source: "nfs", Holder: pair.holder, Witness: pair.witness}
		l.all.Note(l.moment(), trial, LocksUnknown, "it does not answer", l.at)
	}
	if !l.apart("n00", "n01") {
		t.Error("a trial that shows nothing has taken away what was known")
	}
}

// Whatever comes, goes and is tried meanwhile: nodes with the same storage are not apart, those with another are once all was tried, and
// being apart is mutual.
func TestSidesAreWhatNodesHave(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.IntRange(1, 4).Draw(t, "kinds")
		has := rapid.SliceOfN(rapid.IntRange(1, kinds), 2, 8).Draw(t, "has")
		if rapid.Bool().Draw(t, "one liar") {
			for i := range has {
				has[i] = 1
			}
			has[rapid.IntRange(0, len(has)-1).Draw(t, "liar")] = 2
		}
		l := newLyingPool(has...)
		look := func(all bool) {
			for a, one := range l.has {
				for b, other := range l.has {
					is := l.apart(a, b)
					switch {
					case is != l.apart(b, a):
						t.Fatalf("%v: %s and %s are apart one way: %s", has, a, b, l.sides())
					case is && one == other:
						t.Fatalf("%v: %s and %s have the same: %s", has, a, b, l.sides())
					case all && !is && one != other:
						t.Fatalf("%v: %s and %s have not the same: %s", has, a, b, l.sides())
					}
				}
			}
		}
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			node := fmt.Sprintf("n%02d", rapid.IntRange(0, len(has)-1).Draw(t, "node"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				l.alive(node, rapid.Bool().Draw(t, "alive"))
			case 1:
				l.at = l.at.Add(lockTrialLasts)
			default:
				l.try()
			}
			look(false)
		}
		for node := range l.has {
			l.alive(node, true)
		}
		l.tryAll()
		look(true)
	})
}

// A node that boots without its mount is another side from then on. What it had before is not what it has now: that is kept of it, and of
// no other node, until it has the mount again.
func TestANodeThatHasLostItsMountIsToldFromOthers(t *testing.T) {
	l := newLyingPool(1, 1, 1, 1)
	l.tryAll()
	boots := func(boot string, storage int) *model.PoolApart {
		facts := l.facts["n01"]
		facts.Boot = boot
		l.facts["n01"], l.has["n01"] = facts, storage
		l.at = l.at.Add(time.Minute)
		l.tryAll()
		return l.all.Apart(l.moment())["p1"]
	}
	pool := boots("second", 2)
	if pool == nil || !pool.Apart("n00", "n01") || len(pool.Left) != 1 || pool.Left["n01"].IsZero() {
		t.Fatalf("the sides are %+v", pool)
	}
	left := pool.Left["n01"]
	l.at = l.at.Add(lockTrialLasts)
	l.tryAll()
	if pool = l.all.Apart(l.moment())["p1"]; pool == nil || !pool.Left["n01"].Equal(left) {
		t.Errorf("tried again, it has left at %v, not at %s", pool, left)
	}
	if pool = boots("third", 1); pool != nil {
		t.Errorf("with its mount back the sides are %+v", pool)
	}
}
