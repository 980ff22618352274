package placement

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

// unparametrized is a decision without what names the policy's parameters.
func unparametrized(d Decision) Decision {
	d.Rules = nil
	return d
}

// For a VM with no group and no preferred node Prefer changes nothing: same node, same explanation, same seed.
func TestPreferChangesNothingForAVMWithoutWishes(t *testing.T) {
	sites, most := 0, 10_000
	if testing.Short() {
		most = 1000
	}
	for sites < most && !t.Failed() {
		rapid.Check(t, func(t *rapid.T) {
			s, request, seed := draws(t)
			s.groups, request.Preferred = nil, nil
			v, policy := s.view(), s.policy()
			policy.SoftRules, policy.ContendedAbove = policies.BeforeBands, 10
			with, without := Place(v, request, policy, seed), Place(v, request, policy.WithoutPrefer(), seed)
			if diff := cmp.Diff(unparametrized(without), unparametrized(with)); diff != "" {
				t.Fatal(diff)
			}
			if diff := cmp.Diff(unparametrized(Explain(without)), unparametrized(Explain(with))); diff != "" {
				t.Fatal(diff)
			}
			sites++
		})
	}
}

// Whatever the gate and the weighers say, no node is taken while another candidate of its tier that the gate lets in breaks less;
// and a soft rule keeps no VM from starting.
func TestNoNodeWinsThatBreaksMore(t *testing.T) {
	wished := 0
	decide := func(t *rapid.T) {
		s, request, seed := draws(t)
		if request.Current == "" { // much of what else a random VM needs leaves hardly more than one node
			request = Request{
				Purpose: ForStart, VM: request.VM, VMName: request.VMName, Memory: units.MiB, VCPUs: 1, Labels: request.Labels,
				Preferred: request.Preferred, SystemKeys: request.SystemKeys, CustomerKeys: request.CustomerKeys,
			}
		}
		v, policy := s.view(), s.policy()
		policy.SoftRules = policies.BeforeBands
		d, without := Explain(Place(v, request, policy, seed)), Place(v, request, policy.WithoutPrefer(), seed)
		if (d.Outcome == Refused) != (without.Outcome == Refused) {
			t.Fatalf("%s with soft rules, %s without", d.Outcome, without.Outcome)
		}
		if d.Outcome == Refused || request.IfBetter > 0 {
			return
		}
		for _, node := range d.Nodes {
			if node.Admitted && node.Tier == d.Nodes[0].Tier && node.Wish < d.Nodes[0].Wish {
				t.Fatalf("%s breaks less than the winner %s", node.Name, d.WinnerName)
			}
			if node.Wish > 1 {
				wished++
			}
		}
	}
	for each := 1; wished == 0 && !t.Failed(); each++ { // a run begins with the same seed as the one before, and draws on from there
		rapid.Check(t, func(t *rapid.T) {
			for range each {
				decide(t)
			}
		})
		if each == 20 {
			t.Fatal("no decision had a soft rule that sets nodes apart")
		}
	}
}

// A rack at half load and an idle stranger: before the bands the rack wins, within them the stranger does, and a rack on which
// work waits too long is left out until the parameter is off.
func TestARackKeepsItsVMs(t *testing.T) {
	rack := func(pressure float64, change func(*policies.Policy)) Decision {
		s := parseScenario(t, fmt.Sprintf(`node r1 memory=64G cpus=16 available=30G load=11 pressure=%v
node idle memory=64G cpus=16 available=60G load=0 pressure=1
group rack nodes=positive node=r1 vm=web
start web memory=1G vcpus=1`, pressure))
		policy := s.policy()
		change(&policy)
		return Place(s.view(), s.asked[0].request, policy, 1)
	}
	for name, c := range map[string]struct {
		pressure float64
		change   func(*policies.Policy)
		want     string
	}{
		"before the bands":           {1, func(*policies.Policy) {}, "r1"},
		"within the bands":           {1, func(p *policies.Policy) { p.SoftRules = policies.WithinBands }, "idle"},
		"contended":                  {61, func(*policies.Policy) {}, "idle"},
		"at the limit":               {60, func(*policies.Policy) {}, "r1"},
		"contended, and that may be": {99, func(p *policies.Policy) { p.ContendedAbove = 0 }, "r1"},
	} {
		if d := rack(c.pressure, c.change); d.WinnerName != c.want {
			t.Errorf("%s: %s: %s, want %s", name, d.WinnerName, d.Reason, c.want)
		}
	}
	if answer, err := WhyNot(rack(61, func(*policies.Policy) {}), "r1"); err != nil || !strings.Contains(answer.Why[0], "contended") {
		t.Errorf("why not the contended node: %v, %v", answer.Why, err)
	}
}

// Memory that a node waits for counts like its CPUs, and so does what the vCPUs of its VMs wait.
func TestEveryKindOfWaitingCounts(t *testing.T) {
	for _, figure := range []string{"pressure", "memory_pressure", "vcpu_delay"} {
		s := parseScenario(t, fmt.Sprintf("node r1 memory=64G cpus=16 available=30G %s=80\nnode r2 memory=64G cpus=16 available=30G", figure))
		columns := s.view().Columns(model.DefaultCluster)
		var waits []float64
		for node := range columns.Len() {
			waits = append(waits, columns.Waiting(node))
		}
		if !slices.Equal(waits, []float64{80, 0}) {
			t.Errorf("%s: %v, want 80 and 0", figure, waits)
		}
	}
}
