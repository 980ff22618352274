package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// FAULTS.md, W5. Each node holds a lock once and looks once; what one pair shows against locks counts for the pool.
func TestLocksAreTriedByEachNodeOfAPool(t *testing.T) {
	s := running()
	pool := model.Resource{
		Kind: model.KindPool, ID: "p1", Name: "nfs",
		Settings: map[string]string{model.SettingScope: string(model.PoolShared), model.SettingPoolSource: "vms"},
	}
	s.resources = []model.Resource{pool, {Kind: model.KindPool, ID: "p2", Name: "fast"}}
	for _, node := range []string{"n1", "n2", "n3"} {
		s.change(node, func(f *model.NodeFacts) {
			f.Pools = []model.PoolFacts{{Name: "vms", Active: true}, {Name: "fast", Active: true}}
		})
	}
	s.change("n4", func(f *model.NodeFacts) { f.Pools = []model.PoolFacts{{Name: "vms"}} }) // it is not active there
	all := LockTrials{}
	standing := func() Locks { return all.Of(s.survey().Moment, &pool) }
	want := func(verdict LockVerdict, tried int, why string) {
		t.Helper()
		if locks := standing(); locks.Verdict != verdict || locks.Tried != tried || locks.Nodes != 3 || !strings.Contains(locks.Why, why) {
			t.Errorf("%+v, want %q by %d: %q", locks, verdict, tried, why)
		}
	}
	next := func() (LockTrial, bool) { return all.Next(s.survey().Moment) }
	want(LocksUnknown, 0, "0 of 3 nodes have tried it")

	var order []string
	for trial, due := next(); due && len(order) < 4; trial, due = next() {
		if trial.Pool != "p1" || trial.Source != "vms" {
			t.Fatalf("tried is %+v", trial)
		}
		order = append(order, trial.Holder+" "+trial.Witness)
		all.Note(s.survey().Moment, trial, LocksReach, "", s.at)
		s.at = s.at.Add(time.Second)
	}
	if got := strings.Join(order, ", "); got != "n3 n1, n1 n2, n2 n3" {
		t.Fatalf("tried were %s", got)
	}
	want(LocksReach, 3, "")
	if first := s.at.Add(-3 * time.Second); !standing().At.Equal(first) {
		t.Errorf("the oldest trial was at %s, not %s", first, standing().At)
	}

	s.at = s.at.Add(lockTrialLasts - 3*time.Second)
	trial, due := next()
	if !due || trial.Witness != "n1" {
		t.Fatalf("due is %+v, %t", trial, due)
	}
	all.Note(s.survey().Moment, trial, LocksStay, "", s.at)
	want(LocksStay, 3, "node1 did not see that node3 had locked a file there")
	for range 2 {
		if trial, due = next(); due {
			all.Note(s.survey().Moment, trial, NotShared, "", s.at)
		}
	}
	s.at = s.at.Add(2 * time.Second)
	trial, _ = next()
	all.Note(s.survey().Moment, trial, NotShared, "", s.at)
	if locks := standing(); locks.Verdict != NotShared || !locks.Doubtful() {
		t.Errorf("%+v", locks)
	}
	s.at = s.at.Add(lockTrialAgain)
	for trial, due = next(); due; trial, due = next() {
		all.Note(s.survey().Moment, trial, LocksReach, "", s.at)
	}
	want(LocksReach, 3, "")
	trial = LockTrial{Pool: "p1", Source: "vms", Holder: "n1", Witness: "n2"}
	all.Note(s.survey().Moment, trial, LocksUnknown, "node1: no space", s.at)
	want(LocksUnknown, 3, "node1: no space")

	// Where a neighbour is gone the trial with it says nothing of the one that is the neighbour now.
	s.silent("n1", time.Minute)
	if locks := standing(); locks.Verdict != LocksUnknown || locks.Tried != 1 || locks.Nodes != 2 {
		t.Errorf("%+v", locks)
	}
	s.silent("n2", time.Minute)
	if locks := standing(); locks.Verdict != LocksUnknown || !strings.Contains(locks.Why, "it takes two nodes") {
		t.Errorf("%+v", locks)
	}
	if trial, due = next(); due {
		t.Errorf("tried with one node: %+v", trial)
	}
	s.resources = nil
	if all.Keep(s.survey().Moment); len(all) != 0 {
		t.Errorf("of a pool that is gone there is %+v", all)
	}
}
