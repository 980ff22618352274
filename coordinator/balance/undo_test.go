package balance

import (
	"math/rand/v2"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/coordinator/view"
)

// Where VMs go that a hard rule wants together, and that are parted, is for that rule to decide: what is about something else
// would be undone.
func TestVMsThatBelongTogetherAreLeftToTheirRule(t *testing.T) {
	tied := []string{"a", "b", "c", "d"}
	split := func() *site {
		s := newSite("h1", "h2").vm("h1", "a").vm("h1", "b").vm("h1", "c").vm("h2", "d")
		s.group("tied", "!+", tied, "", nil)
		s.vms[0].MovedAt, s.groups[0].BrokenSince = noon.Add(-time.Minute), noon.Add(-time.Hour)
		s.vms[3].Migration = model.MigrateManual // so that the set stays split
		s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2}}
		return s
	}
	even := split()
	even.Settings.Enforcement = model.Off
	if found := Pass(even.fleet()); found.Kind != "" {
		t.Errorf("balancing moves %v", told(found.Moves))
	}
	even.vm("h1", "free")
	expect(t, "the move", told(Pass(even.fleet()).Moves), []string{"free h1>h2"})

	soft := split()
	soft.Settings.Balancing = model.Off
	soft.vms[1].MovedAt, soft.vms[2].MovedAt = noon.Add(-time.Minute), noon.Add(-time.Minute)
	soft.vms[0].MovedAt = time.Time{}
	soft.groups[0].BrokenSince = noon.Add(-time.Hour)
	soft.vms[3].Migration = model.MigrateAutomatic
	soft.vms[3].MovedAt = noon.Add(-time.Minute) // nothing of the set may move for its own rule
	soft.group("wish", "", nil, "+", []string{"h2"})
	soft.groups[1].Members[model.MembersVMs] = []string{"a"}
	found := Pass(soft.fleet())
	if found.Kind != "" {
		t.Errorf("a soft repair moves %v", told(found.Moves))
	}
	expect(t, "why not", found.Unrepaired["wish"],
		"a is tied to others by a hard rule; b was moved lately: it rests until 2026-01-01 12:29:00 UTC")
}

// The smaller share goes to the larger one, also when its VM has to rest first: the others do not come to it meanwhile.
func TestALargerShareWaitsForTheSmallerOne(t *testing.T) {
	s := newSite("h1", "h2").vm("h1", "a").vm("h1", "b").vm("h2", "c")
	s.group("tied", "!+", []string{"a", "b", "c"}, "", nil).BrokenSince = noon.Add(-time.Hour)
	s.vms[2].MovedAt = noon.Add(-10 * time.Minute)
	found := Pass(s.fleet())
	if found.Kind != "" {
		t.Errorf("%v is moved", told(found.Moves))
	}
	expect(t, "why not", found.Unrepaired["tied"], "c was moved lately: it rests until 2026-01-01 12:20:00 UTC")
	s.vms[2].MovedAt = noon.Add(-30 * time.Minute)
	expect(t, "the move", told(Pass(s.fleet()).Moves), []string{"c h2>h1"})
}

// Where the policy finds nodes equally good, chance does not decide whether a soft rule is repaired in this pass or in another.
func TestADrawDoesNotDecideWhetherASoftRuleIsRepaired(t *testing.T) {
	s := newSite("h1", "h2", "h3", "h4", "h5", "h6").vm("h1", "a")
	s.group("wish", "", []string{"a"}, "+", []string{"h5"})
	for seed := range uint64(20) {
		fleet := s.fleet()
		fleet.Seed = rand.New(rand.NewPCG(seed, 0)).Uint64
		found := Pass(fleet)
		expect(t, "the move", told(found.Moves), []string{"a h1>h5"})
		expect(t, "the decision", found.Decision.WinnerName, "h5")
	}
	// A better node that keeps the rule no better is what the policy wants.
	s.policy.Weighers = append(s.policy.Weighers, policies.Factor{Weigher: "vm-count", Factor: 1})
	s.fill("h5", 3)
	if found := Pass(s.fleet()); found.Kind != "" {
		t.Errorf("%v is moved", told(found.Moves))
	}
}

// A VM that has to leave its node takes those along that a hard rule keeps with it, also where another group of its own is split.
func TestARuleThatHoldsIsNotBrokenToRepairAnother(t *testing.T) {
	s := newSite("h1", "h2", "h3").vm("h1", "a").vm("h1", "b").vm("h2", "c")
	s.group("pair", "!+", []string{"a", "b"}, "", nil)
	s.group("split", "!+", []string{"a", "c"}, "!-", []string{"h1"})
	expect(t, "the move", told(Pass(s.fleet()).Moves), []string{"a h1>h2", "b h1>h2"})
}

// Balancing does not take a VM to where there are more of those that it had better be apart from, even though the rule is broken
// in any case: a repair would bring it back as soon as it can.
func TestBalancingMakesNoCrowdLarger(t *testing.T) {
	s := newSite("h1", "h2").vm("h1", "a").vm("h1", "b").vm("h2", "c").vm("h2", "d")
	s.group("apart", "-", []string{"a", "b", "c", "d"}, "", nil)
	s.fill("h1", 4)
	s.use = map[string]float64{"h1-01": 1, "h1-02": 1, "h1-03": 1, "h1-04": 1}
	s.Settings.Enforcement = model.Off
	s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2}}
	expect(t, "the move", told(Pass(s.fleet()).Moves), []string{"h1-01 h1>h2"})
}

// VMs that only a stopped VM ties together join each other, and do not go from one wrong node to the next. The view does not know
// the labels of VMs that do not run, so the constraint lets such a VM go anywhere.
func TestVMsThatAStoppedOneTiesTogetherJoin(t *testing.T) {
	blue := func(vm *model.VM) { vm.Labels = []string{"blue"} }
	s := newSite("h1", "h2", "h3", "h4", "h5").vm("h1", "a").vm("h4", "c", blue).vm("h5", "d", blue).vm("", "bridge", blue)
	s.group("one", "!+", []string{"a", "bridge"}, "", nil)
	s.group("two", "!+", nil, "", nil).Lists = map[string][]string{model.ListVMLabels: {"blue"}}
	for seed := range uint64(10) {
		fleet := s.fleet()
		var declared []model.Group
		for i := range s.groups {
			declared = append(declared, model.GroupOf(&s.groups[i], model.DefaultCluster))
		}
		fleet.Groups = view.Expand(declared, s.vms, s.nodes)
		fleet.Seed = rand.New(rand.NewPCG(seed, 0)).Uint64
		moves := Pass(fleet).Moves
		if len(moves) != 1 || moves[0].VM == "a" && moves[0].Target != "h4" && moves[0].Target != "h5" {
			t.Errorf("moves %v, want one to where another is", told(moves))
		}
	}
}
