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

func TestEvenPlansTheWholeWay(t *testing.T) {
	s := counts(12, 9, 7, 8, 6)
	s.policy, _ = policies.Builtin(policies.EvenVMs, s.Settings)
	plan := Even(s.fleet(), 100)
	expect(t, "the moves", told(plan.Moves), []string{"hv1-01 hv1>hv5"})
	expect(t, "the reason", plan.Reason, "1 move, 1 GiB: from 2.059 to 1.497 (standard deviation of the VM count)")
	s.carryOut(plan.Moves)
	expect(t, "the next plan", Even(s.fleet(), 100).Reason, "no node has MigrationThreshold 5 fewer than the 11 of hv1")
	s.Balancer = Chosen{}
	expect(t, "without a balancer", Even(s.fleet(), 100).Reason, "policy vm-evenly-distributed has no balancer")
}

func TestEvenByLoadSaysWhatItGains(t *testing.T) {
	s := newSite("hv1", "hv2")
	for i := range 4 {
		s.vm("hv1", fmt.Sprintf("vm%d", i+1), func(vm *model.VM) { vm.Spec.Memory = 8 * units.GiB })
	}
	s.Balancer = Chosen{Balancer: "even-load"}
	plan := Even(s.fleet(), 1)
	expect(t, "the first move", plan.Moves[0].Reason,
		"the cluster goes from 0.375 to 0.188; memory promised: hv1 from 50 to 38 %, hv2 from 0 to 12 %")
	plan = Even(s.fleet(), 100)
	expect(t, "the moves", told(plan.Moves), []string{"vm1 hv1>hv2", "vm2 hv1>hv2"})
	expect(t, "the reason", plan.Reason,
		"2 moves, 16 GiB: from 0.375 to 0.000 (sum of the standard deviations of memory, vCPUs and CPU use)")
	s.carryOut(plan.Moves)
	s.later(time.Hour)
	expect(t, "the next plan", Even(s.fleet(), 100).Reason, "the cluster is even: 0.000, less than EvenEnough 0.1")
	for i := range s.vms {
		s.vms[i].Holder, s.vms[i].Migration = "hv1", model.MigrateManual
	}
	expect(t, "of VMs that people move", Even(s.fleet(), 100).Reason,
		"the cluster is at 0.375, and no move of a VM that may be moved would lower that by 0.005")
}

// A plan can be carried out in its order, breaks no hard rule that held, moves no VM twice and none that rests, and there is
// nothing left to plan after it.
func TestAPlanCanBeCarriedOutAndIsWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := random(t)
		s.grouped(t)
		s.policy, _ = policies.Builtin(rapid.SampledFrom(policies.Builtins()).Draw(t, "policy"), s.Settings)
		s.Balancer = Chosen{Balancer: "even-load", Parameters: map[string]float64{EvenEnough: 0.01}}
		switch rapid.IntRange(0, 3).Draw(t, "by") {
		case 1:
			s.Balancer = Chosen{Balancer: "imbalance", Parameters: map[string]float64{Imbalance: 0.95, Metric: 3}}
		case 2:
			s.Balancer = Chosen{Balancer: "condense", Parameters: map[string]float64{Imbalance: 0, Metric: 1}}
		case 3:
			s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2, SPMVMCountGrace: 2}}
		}
		s.owned(t)
		fleet := s.fleet()
		plan := Even(fleet, 1000)
		g, err := survey(fleet)
		if err != nil {
			t.Fatal(err)
		}
		before, seen := hardBreaches(g), map[string]bool{}
		for _, m := range plan.Moves {
			vm := g.index[m.VM]
			to, _ := g.columns.Index(m.Target)
			if seen[m.VM] || g.rests(vm) != "" || g.VMs[vm].Unbalanced || g.immovable(vm) != "" {
				t.Fatalf("%s moves", m.VMName)
			}
			if g.columns.Room.At(to) <= g.VMs[vm].Memory {
				t.Fatalf("%s has no room for %s", m.TargetName, m.VMName)
			}
			seen[m.VM] = true
			g.move(vm, to)
		}
		for _, b := range hardBreaches(g) {
			if !known(before, &b) {
				t.Fatalf("%v breaks a hard rule that held: %s", told(plan.Moves), b.Text)
			}
		}
		if len(plan.Moves) > 0 && !s.DisperseAccounts && plan.Predicted >= plan.Before {
			t.Fatalf("from %v to %v", plan.Before, plan.Predicted)
		}
		s.carryOut(plan.Moves)
		s.later(time.Second)
		if again := Even(s.fleet(), 1000); len(again.Moves) > 0 {
			t.Fatalf(
				"a second plan: %v after %v: %s; %s; %v %s", told(again.Moves), told(plan.Moves), plan.Reason, again.Reason, s.Balancer,
				s.policy.Name,
			)
		}
	})
}

// large is a cluster of many nodes, three in four VMs on the first half of them.
func large(nodes, vms int) *site {
	var names []string
	for i := range nodes {
		names = append(names, fmt.Sprintf("hv%05d", i))
	}
	s := newSite(names...)
	for i := range vms {
		at := i * 7919 % nodes
		if i%4 > 0 {
			at = i * 7919 % (nodes / 2)
		}
		s.vm(names[at], fmt.Sprintf("vm%06d", i), func(vm *model.VM) {
			vm.Spec.Memory, vm.Spec.VCPUs = units.Bytes(1+i%3)*units.GiB, 1<<(i%3)
		})
	}
	return s
}

func BenchmarkEven(b *testing.B) {
	for _, balancer := range []string{"even-load", "even-vm-count"} {
		for _, nodes := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", balancer, nodes), func(b *testing.B) {
				s := large(nodes, 10*nodes)
				s.policy, _ = policies.Builtin(map[string]string{"even-load": policies.EvenLoad}[balancer], s.Settings)
				if balancer == "even-vm-count" {
					s.policy, _ = policies.Builtin(policies.EvenVMs, s.Settings)
				}
				s.Balancer = Chosen{Balancer: balancer}
				fleet := s.fleet()
				moves := 0
				for b.Loop() {
					moves = len(Even(fleet, 100000).Moves)
				}
				b.ReportMetric(float64(moves), "moves")
			})
		}
	}
}
