package balance

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

func sized(memory units.Bytes) func(*model.VM) {
	return func(vm *model.VM) { vm.Spec.Memory = memory }
}

func TestADrainTakesTheLargestFirst(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv1", "small", sized(units.GiB)).vm("hv1", "large", sized(8*units.GiB)).
		vm("hv1", "by-hand", sized(4*units.GiB), func(vm *model.VM) { vm.Migration = model.MigrateManual }).
		vm("hv1", "pinned", func(vm *model.VM) { vm.Migration = model.MigrateNever }).
		vm("hv1", "paused", func(vm *model.VM) { vm.Condition.Text = "it is paused" })
	s.change("hv2", func(f *model.NodeFacts) { f.Memory = 6 * units.GiB })
	s.change("hv3", func(f *model.NodeFacts) { f.Memory = 10 * units.GiB })
	s.policy, _ = policies.Builtin(policies.EvenLoad, s.Settings)
	flight := Drain(s.fleet(), "hv1", 2, 128*units.MiB)
	expect(t, "the moves", told(flight.Plan.Moves), []string{
		"large hv1>hv3", "by-hand hv1>hv2", "paused stays: it is paused",
		"pinned stays: pinned may not be moved at all (migration never)", "small hv1>hv2",
	})
	expect(t, "the reason", flight.Plan.Reason, "3 moves, 13 GiB; 2 VMs cannot move")
	expect(t, "the estimate", flight.Estimate, 64*time.Second)
	expect(t, "what is left", flight.Headroom, 3*units.GiB)
	expect(t, "the largest", flight.Largest, 2*units.GiB-1)
	expect(t, "refused", flight.Refused, "")
	s.held = []model.Reservation{{Node: "hv2", VM: "other", Name: "other", Memory: 2 * units.GiB, VCPUs: 1}}
	flight = Drain(s.fleet(), "hv1", 1, 0)
	expect(t, "the estimate at an unknown bandwidth", flight.Estimate, time.Duration(0))
	why := flight.Plan.Moves[1]
	if !why.Stays || why.VMName != "by-hand" || !strings.Contains(why.Reason, "no node") {
		t.Errorf("a VM that fits nowhere: %+v", why)
	}
}

func TestADrainListsWhatIsNotBerths(t *testing.T) {
	s := newSite("hv1", "hv2").vm("hv1", "web")
	fleet := s.fleet()
	for i := range fleet.View.Nodes.At(0).Allocations {
		fleet.View.Nodes.At(0).Allocations[i].Foreign = true
	}
	fleet.VMs = nil
	flight := Drain(fleet, "hv1", 1, 0)
	expect(t, "the moves", told(flight.Plan.Moves), []string{"web stays: it is not Berth's own: Berth does not touch it"})
	expect(t, "the reason", flight.Plan.Reason, "1 VM cannot move")
	expect(t, "of an empty node", Drain(newSite("hv1", "hv2").fleet(), "hv1", 1, 0).Plan.Reason, "the node has no VMs")
}

func TestADrainThatCannotBeIsRefused(t *testing.T) {
	others := newSite("hv1", "hv2", "hv3").vm("hv1", "web")
	others.node("hv2").Maintenance = true
	others.change("hv3", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
	bound := newSite("hv1", "hv2").vm("hv1", "web").vm("hv1", "db")
	bound.group("licence", "", []string{"web", "db"}, "!+", []string{"hv1"})
	soft := newSite("hv1", "hv2").vm("hv1", "web")
	soft.group("licence", "", []string{"web"}, "+", []string{"hv1"})
	empty := newSite("hv1", "hv2").vm("hv2", "web")
	empty.group("licence", "", []string{"web"}, "!+", []string{"hv1"})
	for _, test := range []struct {
		site *site
		node string
		want string
	}{
		{newSite("hv1").vm("hv1", "web"), "hv1", "hv1 is the last node of cluster default: its VMs have nowhere to go; enrol another node first"},
		{
			others, "hv1",
			"no other node of cluster default is up and out of maintenance: the VMs of hv1 have nowhere to go; see to hv2, hv3 first",
		},
		{bound, "hv1", "group licence keeps db, web on hv1 alone by a hard rule: give the group another node, or make the rule soft"},
		{bound, "hv2", ""},
		{soft, "hv1", ""},
		{empty, "hv1", ""},
		{newSite("hv1"), "hv9", "node hv9 is not in cluster default"},
	} {
		expect(t, "refused", Drain(test.site.fleet(), test.node, 1, 0).Refused, test.want)
	}
}

func TestHardRulesAmongVMsYieldToADrainAndThoseAboutNodesDoNot(t *testing.T) {
	apart := func(ignored bool) *site {
		s := newSite("hv1", "hv2").vm("hv1", "a").vm("hv2", "b").vm("hv1", "c")
		s.group("apart", "!-", []string{"a", "b"}, "", nil)
		s.group("off", "", []string{"c"}, "!-", []string{"hv2"})
		s.DrainIgnoresVMRules = ignored
		return s
	}
	flight := Drain(apart(true).fleet(), "hv1", 1, 0)
	moves := told(flight.Plan.Moves)
	expect(t, "a", moves[0], "a hv1>hv2")
	if !flight.Plan.Moves[1].Stays {
		t.Errorf("c moves to where a hard rule forbids it to be")
	}
	if len(flight.Warnings) == 0 || !strings.HasPrefix(flight.Warnings[0], "the hard rule of group apart would not hold meanwhile: ") {
		t.Errorf("warnings are %q", flight.Warnings)
	}
	flight = Drain(apart(false).fleet(), "hv1", 1, 0)
	if !flight.Plan.Moves[0].Stays || !flight.Plan.Moves[1].Stays {
		t.Errorf("the moves are %v", told(flight.Plan.Moves))
	}
}

func TestADrainKeepsTiedVMsTogether(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv1", "a", sized(3*units.GiB)).vm("hv1", "b", sized(3*units.GiB)).vm("hv1", "c", sized(4*units.GiB))
	s.group("tied", "!+", []string{"a", "b"}, "", nil)
	s.change("hv2", func(f *model.NodeFacts) { f.Memory = 5 * units.GiB })
	s.change("hv3", func(f *model.NodeFacts) { f.Memory = 8 * units.GiB })
	flight := Drain(s.fleet(), "hv1", 1, 0)
	expect(t, "the moves", told(flight.Plan.Moves), []string{"a hv1>hv3", "b hv1>hv3", "c hv1>hv2"})
	s.change("hv3", func(f *model.NodeFacts) { f.Memory = 11 * units.GiB / 2 })
	s.change("hv2", func(f *model.NodeFacts) { f.Memory = 11 * units.GiB / 2 })
	s.vms = s.vms[:2]
	s.DrainIgnoresVMRules = true
	flight = Drain(s.fleet(), "hv1", 1, 0)
	if a, b := flight.Plan.Moves[0], flight.Plan.Moves[1]; a.Stays || b.Stays || a.Target == b.Target {
		t.Errorf("what fits nowhere together goes apart: %v", told(flight.Plan.Moves))
	}
	if len(flight.Warnings) == 0 {
		t.Error("nobody is warned")
	}
}

// Whatever a drain plans, each VM of the node is told of once, targets have room in the plan's order, and no hard rule about
// nodes is broken.
func TestADrainTellsOfEachVM(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := random(t)
		s.grouped(t)
		s.DrainIgnoresVMRules = rapid.Bool().Draw(t, "ignores")
		s.policy, _ = policies.Builtin(rapid.SampledFrom(policies.Builtins()).Draw(t, "policy"), s.Settings)
		fleet := s.fleet()
		flight := Drain(fleet, "hv1", 2, units.MiB)
		g, err := survey(fleet)
		if err != nil {
			t.Fatal(err)
		}
		told := map[string]bool{}
		before := len(hardBreaches(g))
		for _, m := range flight.Plan.Moves {
			vm := g.index[m.VM]
			if told[m.VM] || m.Source != "hv1" || m.Stays == (m.Target != "") || m.Stays != (m.Reason != "") {
				t.Fatalf("%+v", m)
			}
			told[m.VM] = true
			if m.Stays {
				continue
			}
			to, _ := g.columns.Index(m.Target)
			if g.columns.Room.At(to) <= g.VMs[vm].Memory || m.Target == "hv1" {
				t.Fatalf("%+v", m)
			}
			for _, group := range fleet.Groups {
				bound := group.NodesRule.Hard() && len(group.Nodes) > 0 && slices.Contains(group.VMs, m.VM)
				if bound && slices.Contains(group.Nodes, m.Target) != (group.NodesRule.Polarity == model.Positive) {
					t.Fatalf("%s goes to %s against group %s", m.VMName, m.TargetName, group.Name)
				}
			}
			g.move(vm, to)
		}
		for i := range g.VMs {
			if g.VMs[i].Node == "hv1" && !told[g.VMs[i].ID] {
				t.Fatalf("nothing is told of %s", g.VMs[i].Name)
			}
		}
		if after := len(hardBreaches(g)); after > before && len(flight.Warnings) == 0 {
			t.Fatalf("%d hard rules are broken, %d were, and nobody is warned", after, before)
		}
	})
}

func TestVMsReturnWhereTheyBelong(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv1", "a").vm("hv1", "b").vm("hv1", "c").vm("hv1", "d").vm("hv1", "e").vm("hv1", "f")
	plan := Drain(s.fleet(), "hv1", 1, 0).Plan
	for i := range plan.Moves {
		plan.Moves[i].Result = model.MoveMoved
	}
	s.carryOut(plan.Moves)
	s.later(time.Minute)
	s.vms[1].Holder, s.vms[1].Desired = "", model.Stopped // b
	s.vms[2].Holder = "hv1"                               // c
	s.vms[3].Migration = model.MigrateNever               // d
	s.group("soft", "", []string{"e"}, "-", []string{"hv1"})
	plan.Moves[5].Result = model.MoveFailed // f
	s.policy = policies.Default()
	s.node("hv1").Maintenance = true
	back := Return(s.fleet(), &plan)
	expect(t, "the moves", told(back.Moves)[:2], []string{
		"b stays: it does not run any more", "d stays: d may not be moved at all (migration never)",
	})
	expect(t, "a", told(back.Moves)[2], "a "+s.vms[0].Holder+">hv1")
	expect(t, "e", told(back.Moves)[3], "e stays: it is better where it is, on "+s.vms[4].Holder)
	expect(t, "the reason", back.Reason, "1 move, 1 GiB; 3 VMs cannot move")
	if back.Kind != model.PlanReturn || back.Node != "hv1" || len(back.Moves) != 4 {
		t.Errorf("%+v", back)
	}
	s.change("hv1", func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
	for _, m := range Return(s.fleet(), &plan).Moves {
		if !m.Stays {
			t.Errorf("%s returns to a node that is silent", m.VMName)
		}
	}
	expect(
		t, "when all are back", Return(s.fleet(), &model.Plan{Node: "hv1", NodeName: "hv1"}).Reason,
		"no VM that the drain moved away is elsewhere",
	)
}

func TestTiedVMsReturnTogether(t *testing.T) {
	s := newSite("hv1", "hv2").vm("hv1", "a").vm("hv1", "b")
	s.group("tied", "!+", []string{"a", "b"}, "", nil)
	plan := Drain(s.fleet(), "hv1", 1, 0).Plan
	s.carryOut(plan.Moves)
	s.later(time.Minute)
	expect(t, "the moves", told(Return(s.fleet(), &plan).Moves), []string{"a hv2>hv1", "b hv2>hv1"})
}

// What keeps a VM away is told of the node that it would return to, not of any other one.
func TestAVMThatStaysAwaySaysWhatIsInItsWay(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv3", "a")
	plan := Drain(s.fleet(), "hv3", 1, 0).Plan
	s.carryOut(plan.Moves)
	s.later(time.Minute)
	s.vm("hv3", "b")
	s.group("apart", "!-", []string{"a", "b"}, "", nil)
	expect(t, "the moves", told(Return(s.fleet(), &plan).Moves), []string{
		"a stays: no node fits: hv3 is the only node that it may go to and is refused: group apart keeps its VMs apart, and b is on hv3",
	})
}
