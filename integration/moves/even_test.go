package moves

import (
	"fmt"
	"math"
	"testing"

	berthv1 "berth/shared/gen/berth/v1"
)

// crowd starts VMs on the first host under a policy that finds three of them too many. A group of one of them, that asks
// nothing, tells of the leader's passes.
func crowd(s *site, balancing string) []string {
	s.Helper()
	s.does("cluster", "set", "default", "--balancing", "off")
	s.does("policy", "copy", "vm-evenly-distributed", "few", "--parameter", "HighVMCount=2,MigrationThreshold=2")
	s.does("cluster", "set", "default", "--policy", "few")
	names := []string{"e1", "e2", "e3", "e4", "e5"}
	for _, name := range names {
		s.firmware(name, "--node", s.lab.Hosts[0].Name)
	}
	s.does("group", "add", "seen", "--vm", names[0])
	s.does("cluster", "set", "default", "--balancing", balancing)
	return names
}

// on counts the VMs of the first host.
func (s *site) on(names []string) (n int) {
	s.Helper()
	for _, host := range s.hosts(names...) {
		if host == s.lab.Hosts[0].Name {
			n++
		}
	}
	return n
}

// proposal waits for a plan that waits to be applied.
func (s *site) proposal() *berthv1.Plan {
	s.Helper()
	var proposed *berthv1.Plan
	s.comes("a plan is proposed", func() error {
		var list berthv1.ListPlansResponse
		if err := s.lab.Ask(s.Context(), &list, "plan", "show"); err != nil {
			return err
		}
		if len(list.GetPlans()) != 1 {
			return fmt.Errorf("%d plans wait", len(list.GetPlans()))
		}
		proposed = list.GetPlans()[0]
		return nil
	})
	return proposed
}

func TestBalancingByHandProposesAndWaits(t *testing.T) {
	s := begin(t)
	names := crowd(s, "manual")
	first := s.proposal()
	s.berth(0, []string{"plan", "show"}, "proposed", s.lab.Hosts[0].Name, "berth plan apply "+first.GetId())
	s.passes("seen", 2)
	if again := s.proposal(); again.GetId() != first.GetId() || s.on(names) != len(names) {
		t.Errorf("nobody has applied plan %s, and now it is %v, with %d VMs left", first.GetId(), again, s.on(names))
	}
	s.berth(0, []string{"plan", "apply", first.GetId()}, "1 VM moved")
	if left := s.on(names); left != len(names)-1 {
		t.Errorf("after the plan %d VMs are left", left)
	}
	second := s.proposal()
	if second.GetId() == first.GetId() || second.GetMoves()[0].GetVm() == first.GetMoves()[0].GetVm() {
		t.Errorf("after plan %v came %v", first, second)
	}
	s.berth(0, []string{"plan", "discard", second.GetId()}, "discarded")
	s.berth(1, []string{"plan", "apply", second.GetId()}, "is discarded")
	if left := s.on(names); left != len(names)-1 {
		t.Errorf("after a plan that was discarded %d VMs are left", left)
	}
	// Somebody may ask for all of it at once.
	s.berth(0, []string{"plan", "new"}, "proposed")
	s.berth(0, []string{"plan", "apply", "last"}, "moved")
	s.berth(0, []string{"plan", "new"}, "nothing to move")
	// What came of it is looked at before anything else changes: a prediction that fails makes the balancer wait.
	s.comes("the effect is as predicted", func() error {
		if plan := s.plan("last"); plan.Observed == nil || math.Abs(plan.GetObserved()-plan.GetPredicted()) > 1e-9 {
			return fmt.Errorf("the plan is %v", plan)
		}
		return nil
	})
}

func TestBalancingEvensOutAndThenLeavesVMsInPeace(t *testing.T) {
	s := begin(t)
	earlier := len(s.plans("balance"))
	names := crowd(s, "automatic")
	s.comes("the VMs are spread", func() error {
		if left := s.on(names); left > 2 {
			return fmt.Errorf("%d are on %s", left, s.lab.Hosts[0].Name)
		}
		return nil
	})
	s.passes("seen", 3)
	after := s.plans("balance")[earlier:]
	times := map[string]int{}
	for _, plan := range after {
		if plan.GetState() != "done" || len(plan.GetMoves()) != 1 || math.Abs(plan.GetObserved()-plan.GetPredicted()) > 1e-9 {
			t.Errorf("the plan is %v", plan)
		}
		for _, move := range plan.GetMoves() {
			if times[move.GetVm()]++; times[move.GetVm()] > 1 {
				t.Errorf("%s was moved again before it had rested: %v", move.GetVm(), plan)
			}
		}
	}
	if len(after) != 3 {
		t.Errorf("%d moves spread five VMs of one host, three are enough", len(after))
	}
	s.passes("seen", 2)
	if now := len(s.plans("balance")) - earlier; now != len(after) {
		t.Errorf("%d more plans were made for VMs that are spread evenly", now-len(after))
	}
}
