package balance

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/shared/units"
)

// counts has a node for each count, hv1 first.
func counts(n ...int) *site {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("hv%d", i+1))
	}
	s := newSite(names...)
	for i, name := range names {
		s.fill(name, n[i])
	}
	s.Balancer = Chosen{Balancer: "even-vm-count"}
	return s
}

// propose asks the balancer, and takes the first proposal if it is wanted.
func (s *site) propose(t *testing.T, take bool) (offered []string, why string) {
	t.Helper()
	g, err := survey(s.fleet())
	if err != nil {
		t.Fatal(err)
	}
	balancer, situation := g.situation()
	if balancer.Watch != nil {
		balancer.Watch(situation)
	}
	why = balancer.Propose(situation, func(p Proposal) bool {
		to := ""
		for _, target := range p.Targets {
			to += " " + situation.name(target)
		}
		offered = append(offered, fmt.Sprintf("%s to%s: %s", situation.VMs[p.VM].Name, to, p.Reason(p.Targets[0])))
		return take
	})
	return offered, why
}

func TestEvenVMCountSaysWhy(t *testing.T) {
	for _, test := range []struct {
		name    string
		site    *site
		offered []string
		why     string
	}{
		{"nobody", newSite(), nil, "no node takes part"},
		{"alone", counts(40), nil, "only one node takes part"},
		{"few", counts(10, 0), nil, "no node has more than HighVMCount 10: hv1 has most, 10"},
		{"near", counts(12, 8, 9), nil, "no node has MigrationThreshold 5 fewer than the 12 of hv1"},
	} {
		if len(test.site.nodes) == 0 {
			test.site.Balancer = Chosen{Balancer: "even-vm-count"}
		}
		offered, why := test.site.propose(t, true)
		expect(t, test.name, offered, test.offered)
		expect(t, test.name, why, test.why)
	}
	s := counts(11, 6, 2)
	offered, _ := s.propose(t, true)
	expect(t, "the proposal", offered, []string{
		"hv1-01 to hv2 hv3: hv1 has 11 VMs, more than HighVMCount 10; hv2 has 6 VMs, the best of 2 nodes that have at least " +
			"MigrationThreshold 5 fewer",
	})
	s = counts(7, 3)
	s.node("hv1").Management = true
	offered, _ = s.propose(t, true)
	expect(t, "the proposal", offered, []string{
		"hv1-01 to hv2: hv1 has 12 VMs (7, and 5 for the management on it), more than HighVMCount 10; hv2 has 3 VMs",
	})
	offered, why := s.propose(t, false)
	expect(t, "the number of proposals", len(offered), 7)
	expect(t, "the reason", why, "hv1 has 12 VMs, and the policy would rather leave each of those that fit elsewhere where it is")
	for i := range s.vms {
		s.vms[i].Spec.Memory = 8 * units.GiB
	}
	s.change("hv2", func(f *model.NodeFacts) { f.Memory = 31 * units.GiB })
	_, why = s.propose(t, true)
	expect(t, "the reason", why, "hv1 has 12 VMs, and none of those that may be moved fits on a node that has enough fewer")
	for i := range s.vms {
		s.vms[i].Migration = model.MigrateNever
	}
	_, why = s.propose(t, true)
	expect(t, "the reason", why, "hv1 has 12 VMs, and none of them may be moved now")
}

func TestEvenVMCountTakesTheLeastBusyThatFits(t *testing.T) {
	s := counts(12, 0, 0)
	for i := range s.vms {
		s.use[s.vms[i].ID] = float64(12-i) / 12
	}
	s.use["hv1-11"] = 0.5
	offered, _ := s.propose(t, false)
	if len(offered) != 12 {
		t.Fatalf("%d proposals", len(offered))
	}
	expect(t, "the first", offered[0][:6], "hv1-12")
	expect(t, "the last", offered[11][:6], "hv1-01")
}

// A proposal never takes its target over the limits, whatever the cluster is like.
func TestEvenVMCountBreaksNoThresholdAtItsTarget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := random(t)
		s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{
			HighVMCount: float64(rapid.IntRange(0, 6).Draw(t, "high")), MigrationThreshold: float64(rapid.IntRange(2, 5).Draw(t, "threshold")),
			SPMVMCountGrace: float64(rapid.IntRange(0, 4).Draw(t, "grace")), HighCPU: float64(rapid.IntRange(10, 100).Draw(t, "cpu")),
		}}
		g, err := survey(s.fleet())
		if err != nil {
			t.Fatal(err)
		}
		balancer, situation := g.situation()
		squares := func() (sum int) {
			for node := range situation.Out {
				sum += situation.slots(node) * situation.slots(node)
			}
			return sum
		}
		for moves := 0; ; moves++ {
			before, figure, moved := squares(), balancer.Figure(situation), false
			balancer.Propose(situation, func(p Proposal) bool {
				to := rapid.SampledFrom(p.Targets).Draw(t, "target")
				vm := situation.VMs[p.VM]
				if situation.Columns.Room.At(to) <= vm.Memory || !situation.free(to) || !vm.Movable {
					t.Fatalf("%s is offered to %s", vm.Name, situation.name(to))
				}
				g.move(p.VM, to)
				situation.move(p.VM, to)
				if busy, _ := situation.busy(to, 0); 100*busy > situation.Parameters[HighCPU]+1e-9 {
					t.Fatalf("%s is %v busy", situation.name(to), busy)
				}
				moved = true
				return true
			})
			if !moved {
				break
			}
			if after := squares(); after >= before {
				t.Fatalf("the sum of the squares goes from %d to %d", before, after)
			}
			if balancer.Figure(situation) >= figure {
				t.Fatalf("the figure goes from %v to %v", figure, balancer.Figure(situation))
			}
			if moves > len(s.vms) {
				t.Fatal("it does not end")
			}
		}
	})
}

// random is a cluster of some nodes and VMs, with some of everything that keeps them from being moved.
func random(t *rapid.T) *site {
	var names []string
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		names = append(names, fmt.Sprintf("hv%d", i+1))
	}
	s := newSite(names...)
	for i := range s.nodes {
		s.nodes[i].Management = rapid.IntRange(0, 4).Draw(t, "management") == 0
		s.nodes[i].Unbalanced = rapid.IntRange(0, 9).Draw(t, "unbalanced") == 0
	}
	for i := range rapid.IntRange(0, 30).Draw(t, "vms") {
		node := rapid.SampledFrom(names).Draw(t, "node")
		if rapid.IntRange(0, 1).Draw(t, "skewed") == 0 {
			node = names[0]
		}
		name := fmt.Sprintf("vm%02d", i)
		s.vm(node, name, func(vm *model.VM) {
			vm.Spec.Memory = units.Bytes(rapid.IntRange(1, 8).Draw(t, "memory")) * units.GiB / 2
			vm.Spec.VCPUs = rapid.IntRange(1, 4).Draw(t, "vcpus")
			switch rapid.IntRange(0, 9).Draw(t, "migration") {
			case 0:
				vm.Migration = model.MigrateNever
			case 1:
				vm.Migration = model.MigrateManual
			case 2:
				vm.MovedAt = noon.Add(-5 * time.Minute)
			}
		})
		s.use[name] = float64(rapid.IntRange(0, 8).Draw(t, "use")) / 8
	}
	return s
}
