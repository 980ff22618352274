package balance

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

// loaded has three nodes, the first with four VMs that use so many CPUs each.
func loaded(use ...float64) *site {
	s := newSite("hv1", "hv2", "hv3")
	for i, cpus := range use {
		name := fmt.Sprintf("vm%d", i+1)
		s.vm("hv1", name, func(vm *model.VM) { vm.Spec.VCPUs = 8 })
		s.use[name] = cpus
	}
	s.Balancer = Chosen{Balancer: "even-load"}
	s.policy, _ = policies.Builtin(policies.EvenLoad, s.Settings)
	return s
}

func TestEvenLoadWaitsUntilAThresholdIsHeld(t *testing.T) {
	s := loaded(6, 4, 3, 1)
	expect(t, "at first", s.pass(), "hv1 is at 88 % of its CPUs, over HighCPU 80 %, but not yet for 2m0s")
	s.later(time.Minute)
	expect(t, "a minute later", s.pass(), "hv1 is at 88 % of its CPUs, over HighCPU 80 %, but not yet for 2m0s")
	s.use["vm4"] = 0
	s.use["vm3"] = 2
	s.later(time.Minute)
	expect(t, "when it is less", s.pass(), "no node is over HighCPU 80 % or HighMemory 80 %")
	s.use["vm4"] = 2
	s.later(time.Minute)
	expect(t, "when it is more again", s.pass(), "hv1 is at 88 % of its CPUs, over HighCPU 80 %, but not yet for 2m0s")
	s.later(2 * time.Minute)
	expect(t, "when it was held", s.pass(), "vm1 hv1>hv3: hv1 has been at 88 % of its CPUs, over HighCPU 80 % for 2m0s; "+
		"hv3 is at 38 % of its CPUs and 2 % of its memory with vm1")
	s.later(time.Hour)
	expect(t, "afterwards", s.pass(), "no node is over HighCPU 80 % or HighMemory 80 %")
}

func TestEvenLoadLeavesWhatWouldOnlyMoveTheTrouble(t *testing.T) {
	s := loaded(14)
	s.Balancer.Parameters = map[string]float64{DurationMinutes: 0}
	expect(t, "one VM that is too busy for any node", s.pass(),
		"hv1 is at 88 % of its CPUs, over HighCPU 80 %, but no VM that may be moved would relieve it "+
			"and fit on a node that stays under the thresholds")
	s = newSite("hv1", "hv2")
	s.Balancer = Chosen{Balancer: "even-load", Parameters: map[string]float64{DurationMinutes: 0}}
	for i := range 6 {
		s.vm("hv1", fmt.Sprintf("vm%d", i+1), func(vm *model.VM) { vm.Spec.Memory = 10 * units.GiB })
	}
	expect(t, "a node that is too full", s.pass(),
		"vm1 hv1>hv2: hv1 has been at 94 % of its memory, over HighMemory 80 %; hv2 is at 0 % of its CPUs and 16 % of its memory with vm1")
	s.later(time.Minute)
	expect(t, "the pass after", s.pass(), "no node is over HighCPU 80 % or HighMemory 80 %")
	s.vms[1].Migration = model.MigrateNever
	s.change("hv1", func(f *model.NodeFacts) { f.Memory = 51 * units.GiB })
	s.node("hv2").Unbalanced = true
	expect(t, "nowhere to go", s.pass(),
		"hv1 is at 98 % of its memory, over HighMemory 80 %, but no VM that may be moved would relieve it "+
			"and fit on a node that stays under the thresholds")
}

// What is relieved stays relieved: no move takes its target over a threshold, every move makes the cluster more even, and all
// have an end.
func TestEvenLoadBreaksNoThresholdAtItsTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := random(t)
		for i := range s.vms {
			s.use[s.vms[i].ID] *= 3
		}
		s.Balancer = Chosen{Balancer: "even-load", Parameters: map[string]float64{
			HighCPU: float64(rapid.IntRange(20, 100).Draw(t, "cpu")), HighMemory: float64(
				rapid.IntRange(10, 100).Draw(t, "memory"),
			), DurationMinutes: 0,
		}}
		g, err := survey(s.fleet())
		if err != nil {
			t.Fatal(err)
		}
		balancer, situation := g.situation()
		propose := balancer.Propose
		if rapid.Bool().Draw(t, "whole plan") {
			propose = balancer.Improve
		}
		under := situation.limits()
		for moves, moved := 0, true; moved; moves++ {
			before := balancer.Figure(situation)
			moved = false
			propose(situation, func(p Proposal) bool {
				to := rapid.SampledFrom(p.Targets).Draw(t, "target")
				g.move(p.VM, to)
				situation.move(p.VM, to)
				busy, _ := situation.busy(to, 0)
				if 100*busy > under.cpu+1e-9 || 100*situation.fullness(to, 0) > under.memory+1e-9 {
					t.Fatalf("%s is %v busy and %v full", situation.name(to), busy, situation.fullness(to, 0))
				}
				if after := balancer.Figure(situation); before-after < situation.least()-1e-9 {
					t.Fatalf("the figure goes from %v to %v", before, after)
				}
				moved = true
				return true
			})
			if moves > len(s.vms) {
				t.Fatal("it does not end")
			}
		}
	})
}
