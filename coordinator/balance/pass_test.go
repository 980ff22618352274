package balance

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/placement/policies"
	"berth/shared/units"
)

// pass makes one, carries its moves out, and tells them with their reason; or why there are none.
func (s *site) pass() string {
	found := Pass(s.fleet())
	if found.Kind == "" {
		return found.Idle
	}
	s.carryOut(found.Moves)
	return strings.Join(told(found.Moves), ", ") + ": " + found.Reason
}

func unrepaired(f *Found) []string {
	var all []string
	for _, group := range slices.Sorted(maps.Keys(f.Unrepaired)) {
		all = append(all, group+": "+f.Unrepaired[group])
	}
	return all
}

func TestHardRepairsComeBeforeSoftOnesAndBalancingLast(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv1", "a").vm("hv1", "b").vm("hv1", "c").vm("hv2", "d").vm("hv3", "e").vm("hv3", "f")
	s.group("soft-vms", "+", []string{"e", "d"}, "", nil)
	s.group("soft-nodes", "", []string{"d"}, "-", []string{"hv2"})
	s.group("hard-vms", "!-", []string{"a", "b"}, "", nil)
	s.group("hard-nodes", "", []string{"c"}, "!+", []string{"hv3"})
	s.policy, _ = policies.Builtin(policies.EvenVMs, s.Settings)
	s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2}}
	var groups []string
	for range 4 {
		found := Pass(s.fleet())
		groups = append(groups, found.Group)
		if len(found.Moves) != 1 || found.Decision.Winner != found.Moves[0].Target || string(
			found.Decision.Request.Purpose,
		) != string(found.Kind) {
			t.Errorf("%+v", found)
		}
		s.carryOut(found.Moves)
	}
	expect(t, "the order", groups, []string{"hard-nodes", "hard-vms", "soft-nodes", ""})
}

// While nodes are updated in turn every place is passing: nothing is put right, and nothing evened out.
func TestUpgradeModeMovesNothing(t *testing.T) {
	s := newSite("hv1", "hv2").vm("hv1", "a").vm("hv1", "b").vm("hv1", "c").vm("hv1", "d")
	s.policy, _ = policies.Builtin(policies.EvenVMs, s.Settings)
	s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2}}
	s.Settings.UpgradeMode = true
	expect(t, "a pass over an uneven cluster", s.pass(), InUpgrade)
	s.group("apart", "!-", []string{"a", "b"}, "", nil)
	found := Pass(s.fleet())
	if found.Kind != "" || len(found.Moves) > 0 || len(found.Breaches) != 1 || found.Idle != InUpgrade {
		t.Errorf("with a broken rule: %+v", found)
	}
	s.Settings.UpgradeMode = false
	if found := Pass(s.fleet()); found.Kind != model.PlanRepair {
		t.Errorf("afterwards: %+v", found)
	}
}

func TestARepairSaysWhatIsBroken(t *testing.T) {
	s := newSite("hv1", "hv2").vm("hv1", "web-1").vm("hv1", "web-2")
	s.group("web", "!-", []string{"web-1", "web-2"}, "", nil)
	found := Pass(s.fleet())
	expect(t, "the moves", told(found.Moves), []string{"web-1 hv1>hv2"})
	expect(t, "the reason", found.Reason, "group web: "+found.Breaches[0].Text)
	expect(t, "what is unrepaired", unrepaired(&found), []string(nil))
	if !found.Hard || found.Group != "web" || found.Kind != model.PlanRepair || !found.Decision.Request.Leave {
		t.Errorf("%+v", found)
	}
	s.carryOut(found.Moves)
	expect(t, "the next pass", s.pass(), "policy bare has no balancer")
}

func TestWhatIsNotRepairedIsSaid(t *testing.T) {
	rule := func(s *site) *site {
		s.group("web", "!-", []string{"web-1", "web-2"}, "", nil)
		return s
	}
	two := func(change ...func(*model.VM)) *site {
		return rule(newSite("hv1", "hv2").vm("hv1", "web-1", change...).vm("hv1", "web-2", change...))
	}
	off := two()
	off.Settings.Enforcement = model.Off
	upgrading := two()
	upgrading.Settings.UpgradeMode = true
	full := two(func(vm *model.VM) { vm.Spec.Memory = 20 * units.GiB })
	full.change("hv2", func(f *model.NodeFacts) { f.Memory = 16 * units.GiB })
	cooling := two(func(vm *model.VM) { vm.MovedAt = noon.Add(-5 * time.Minute) })
	cooling.groups[0].BrokenSince = noon.Add(-10 * time.Minute)
	failed := two()
	failed.Recent = []model.Plan{{
		Kind: model.PlanRepair, State: model.PlanFailed, EndedAt: noon.Add(-time.Minute),
		Moves: []model.Move{{VM: "web-1", Result: model.MoveFailed}, {VM: "web-2", Result: model.MoveFailed}},
	}}
	second := two()
	second.group("db", "", []string{"web-2"}, "!+", []string{"hv2"})
	for _, test := range []struct {
		name string
		site *site
		want string
	}{
		{"off", off, "web: enforcement is off"},
		{"upgrade", upgrading, "web: " + InUpgrade},
		{
			"never", two(func(vm *model.VM) { vm.Migration = model.MigrateNever }),
			"web: Berth may move none of the VMs: web-1 may not be moved at all (migration never); web-2 may not be moved at all (migration never)",
		},
		{
			"manual", two(func(vm *model.VM) { vm.Migration = model.MigrateManual }),
			"web: Berth may move none of the VMs: web-1 is moved by people only (migration manual); " +
				"web-2 is moved by people only (migration manual)",
		},
		{
			"busy", two(func(vm *model.VM) { vm.Condition.Text = "it is paused" }),
			"web: web-1 cannot be moved now: it is paused; web-2 cannot be moved now: it is paused",
		},
		{
			"cooling", cooling,
			"web: web-1 was moved lately: it rests until 2026-01-01 12:25:00 UTC; web-2 was moved lately: it rests until 2026-01-01 12:25:00 UTC",
		},
		{
			"failed", failed,
			"web: web-1 could not be moved the last time: it is tried again at 2026-01-01 12:01:00 UTC; " +
				"web-2 could not be moved the last time: it is tried again at 2026-01-01 12:01:00 UTC",
		},
		{"one at a time", second, "web: group db comes first: one move at a time"},
	} {
		found := Pass(test.site.fleet())
		expect(t, test.name, strings.Join(unrepaired(&found), "\n"), test.want)
	}
	found := Pass(full.fleet())
	why := found.Unrepaired["web"]
	if !strings.HasPrefix(why, "web-1: ") || !strings.Contains(why, "; web-2: ") {
		t.Errorf("a full cluster: %s", why)
	}
	expect(t, "idle", found.Idle, "1 rule is broken and cannot be repaired now; policy bare has no balancer")
}

func TestARuleThatWasBrokenAnewDoesNotWaitForTheCoolDown(t *testing.T) {
	moved := func(vm *model.VM) { vm.MovedAt = noon.Add(-5 * time.Minute) }
	hard := newSite("hv1", "hv2").vm("hv1", "web-1", moved).vm("hv1", "web-2", moved)
	group := hard.group("web", "!-", []string{"web-1", "web-2"}, "", nil)
	if found := Pass(hard.fleet()); len(found.Moves) != 1 {
		t.Errorf("a rule that was never seen broken before waits: %v", found.Unrepaired)
	}
	group.BrokenSince = noon.Add(-time.Minute)
	if found := Pass(hard.fleet()); len(found.Moves) != 1 {
		t.Errorf("a rule that was broken after the move waits: %v", found.Unrepaired)
	}
	soft := newSite("hv1", "hv2").vm("hv1", "web-1", moved).vm("hv1", "web-2", moved)
	soft.policy = policies.Default()
	soft.group("web", "-", []string{"web-1", "web-2"}, "", nil).BrokenSince = noon.Add(-time.Minute)
	if found := Pass(soft.fleet()); len(found.Moves) != 0 {
		t.Errorf("a soft rule does not wait: %v", told(found.Moves))
	}
	soft.At = noon.Add(26 * time.Minute)
	for _, name := range []string{"hv1", "hv2"} {
		soft.change(name, func(f *model.NodeFacts) { f.TelemetryAt, f.InventoryAt = soft.At, soft.At })
	}
	if found := Pass(soft.fleet()); len(found.Moves) != 1 {
		t.Errorf("a soft rule waits for longer than the cool-down: %v", found.Unrepaired)
	}
}

func TestVMsThatAreTiedGoTogether(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv1", "a").vm("hv1", "b").vm("hv1", "c")
	s.group("tied", "!+", []string{"a", "b", "c"}, "!+", []string{"hv2", "hv3"})
	s.change("hv2", func(f *model.NodeFacts) { f.Memory = 3 * units.GiB }) // has to be exceeded
	found := Pass(s.fleet())
	expect(t, "the moves", told(found.Moves), []string{"a hv1>hv3", "b hv1>hv3", "c hv1>hv3"})
	expect(t, "the unit", found.Decision.Request.Unit.VMs, []string{"b", "c"})
	soft := newSite("hv1", "hv2").vm("hv1", "a").vm("hv1", "b")
	soft.group("tied", "!+", []string{"a", "b"}, "+", []string{"hv2"})
	soft.policy = policies.Default()
	found = Pass(soft.fleet())
	expect(t, "the moves of a soft repair", told(found.Moves), []string{"a hv1>hv2", "b hv1>hv2"})
	soft.carryOut(found.Moves)
	soft.At = noon.Add(time.Hour)
	expect(t, "the pass after", soft.pass(), "policy affinity has no balancer")
}

// Parted VMs are joined where all of a share fits; a share that cannot be emptied is not begun.
func TestAShareIsEmptiedOnlyIfAllOfItFits(t *testing.T) {
	s := newSite("hv1", "hv2").vm("hv1", "a").vm("hv2", "b").vm("hv2", "c")
	s.group("tied", "!+", []string{"a", "b", "c"}, "", nil)
	s.change("hv2", func(f *model.NodeFacts) { f.Memory = 5*units.GiB/2 - 1 })
	expect(t, "the small share goes nowhere, the large one goes to it", s.pass()[:9], "b hv2>hv1")
	expect(t, "the rest follows", s.pass()[:9], "c hv2>hv1")
	s = newSite("hv1", "hv2").vm("hv1", "a").vm("hv2", "b").vm("hv2", "c")
	s.group("tied", "!+", []string{"a", "b", "c"}, "", nil)
	for _, name := range []string{"hv1", "hv2"} {
		s.change(name, func(f *model.NodeFacts) { f.Memory = 5*units.GiB/2 - 1 })
	}
	found := Pass(s.fleet())
	expect(t, "the moves", told(found.Moves), []string(nil))
}

func TestASoftRepairHasToHelp(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").vm("hv1", "a")
	s.group("unreachable", "", []string{"a"}, "+", []string{"hv3"})
	s.node("hv3").Maintenance = true
	for range 3 {
		found := Pass(s.fleet())
		expect(t, "the moves", told(found.Moves), []string(nil))
		expect(t, "the reason", unrepaired(&found), []string{"unreachable: a is on the best node for it by the policy"})
	}
	s.policy, _ = policies.Builtin(policies.Affinity, s.Settings)
	s.node("hv3").Maintenance = false
	expect(t, "the rack is back", s.pass()[:9], "a hv1>hv3")
}

func TestWhyNothingIsBalanced(t *testing.T) {
	with := func(change func(*site)) *site {
		s := counts(12, 2)
		change(s)
		return s
	}
	window, err := model.ParseWindow("22:00-06:00")
	if err != nil {
		t.Fatal(err)
	}
	silent := func(s *site) { s.change("hv2", func(f *model.NodeFacts) { f.Liveness = model.Suspect }) }
	for _, test := range []struct {
		site *site
		want string
	}{
		{with(func(s *site) { s.Settings.Balancing = model.Off }), "balancing is off"},
		{with(func(s *site) { s.Balancer = Chosen{Balancer: None} }), "policy bare has no balancer"},
		{with(func(s *site) { s.Settings.BalanceWindow = window }), "the balance window is closed"},
		{with(silent), "1 of 2 nodes are silent: nothing is balanced while more than 30 % are"},
		{with(func(s *site) { s.policy.Planner = "guess" }), `policy is not valid: policy "bare": there is no planner "guess"`},
		{with(func(s *site) { s.node("hv1").Unbalanced = true }), "only one node takes part"},
		{
			with(func(s *site) {
				s.group("left", "", []string{"hv1-01", "hv1-02"}, "", nil).Settings[model.SettingUnbalanced] = "true"
			}),
			"hv1-03 hv1>hv2: hv1 has 12 VMs, more than HighVMCount 10; hv2 has 2 VMs",
		},
		{
			with(func(s *site) {
				s.held = []model.Reservation{{Node: "hv2", VM: "hv1-01", Name: "hv1-01", Memory: units.GiB, VCPUs: 1}}
			}),
			"no node takes part",
		},
	} {
		expect(t, "the pass", test.site.pass(), test.want)
	}
}

// The policy can speak against a move; where only its weighers of load do, the balancer is believed.
func TestThePolicyHasTheLastWord(t *testing.T) {
	s := counts(12, 2)
	for i := range s.vms[:11] {
		s.group("stays-"+s.vms[i].ID, "", []string{s.vms[i].ID}, "+", []string{"hv1"})
	}
	s.policy, _ = policies.Builtin(policies.EvenVMs, s.Settings)
	expect(t, "the pass", s.pass(), "hv1-12 hv1>hv2: hv1 has 12 VMs, more than HighVMCount 10; hv2 has 2 VMs")
	against := counts(12, 2)
	against.policy, _ = policies.Builtin(policies.EvenLoad, against.Settings)
	against.change("hv2", func(f *model.NodeFacts) { f.Memory = 8 * units.GiB }) // has less memory free
	expect(t, "the pass", against.pass()[:14], "hv1-01 hv1>hv2")
}

// Whatever the cluster: no move that a pass finds breaks a hard rule that held or takes more memory than there is, soft rules
// are not worse kept for the sake of balance, what rests is left alone, and the passes come to an end.
func TestPassesEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := random(t)
		s.grouped(t)
		s.policy, _ = policies.Builtin(rapid.SampledFrom(policies.Builtins()).Draw(t, "policy"), s.Settings)
		s.Balancer = Chosen{Balancer: rapid.SampledFrom([]string{
			"even-vm-count", "even-load", "imbalance", "condense", None,
		}).Draw(t, "balancer")}
		if s.Balancer.Balancer == "even-vm-count" {
			s.Balancer.Parameters = map[string]float64{HighVMCount: 2, MigrationThreshold: 2, SPMVMCountGrace: 1}
		}
		s.owned(t)
		idle, passes := 0, 0
		for ; idle < 35; passes++ {
			if passes > 400 {
				t.Fatalf("it does not end: %s", s.pass())
			}
			fleet := s.fleet()
			found := Pass(fleet)
			if found.Kind == "" {
				idle++
			} else {
				idle = 0
				s.checked(t, fleet, &found)
			}
			s.later(Interval)
		}
	})
}

// owned gives VMs to random customers, who are to be kept spread, or not.
func (s *site) owned(t *rapid.T) {
	s.DisperseAccounts = rapid.Bool().Draw(t, "disperse")
	for i := range s.vms {
		s.vms[i].Owner.Customer = rapid.SampledFrom([]string{"", "acme", "small"}).Draw(t, "customer")
	}
}

// squares is how unevenly the VMs of customers are on the nodes.
func (s *site) squares(g *ground) (sum int) {
	for _, counts := range g.accounts {
		for _, n := range counts {
			sum += n * n
		}
	}
	return sum
}

// grouped adds random groups.
func (s *site) grouped(t *rapid.T) {
	var vms, nodes []string
	for _, vm := range s.vms {
		vms = append(vms, vm.ID)
	}
	for _, node := range s.nodes {
		nodes = append(nodes, node.ID)
	}
	rules := []string{"", "+", "-", "!+", "!-"}
	for i := range rapid.IntRange(0, 4).Draw(t, "groups") {
		s.group(
			string(rune('a'+i)), rapid.SampledFrom(rules).Draw(t, "vms rule"), several(t, vms),
			rapid.SampledFrom(rules).Draw(t, "nodes rule"), several(t, nodes),
		)
	}
}

func several(t *rapid.T, of []string) []string {
	if len(of) == 0 {
		return nil
	}
	return rapid.SliceOfNDistinct(rapid.SampledFrom(of), 0, min(4, len(of)), func(s string) string { return s }).Draw(t, "members")
}

// later lets time pass; everything is heard.
func (s *site) later(by time.Duration) {
	s.At = s.At.Add(by)
	for name := range s.facts {
		s.change(name, func(f *model.NodeFacts) { f.TelemetryAt, f.InventoryAt = s.At, s.At })
	}
	where := affinity.Where{}
	for _, vm := range s.vms {
		where[vm.ID] = vm.Holder
	}
	broken := map[string]bool{}
	for _, b := range affinity.Breaches(s.View.Groups(model.DefaultCluster), where, func(id string) string { return id }) {
		broken[b.Group] = true
	}
	for i := range s.groups {
		switch {
		case !broken[s.groups[i].ID]:
			s.groups[i].BrokenSince = time.Time{}
		case s.groups[i].BrokenSince.IsZero():
			s.groups[i].BrokenSince = s.At
		}
	}
}

// checked carries what was found out and checks what is promised of it.
func (s *site) checked(t *rapid.T, fleet *Fleet, found *Found) {
	g, err := survey(fleet)
	if err != nil {
		t.Fatal(err)
	}
	before, squares := hardBreaches(g), s.squares(g)
	for _, m := range found.Moves {
		vm, to := g.index[m.VM], 0
		to, _ = g.columns.Index(m.Target)
		one := g.VMs[vm]
		if one.Migration != model.MigrateAutomatic || m.Source != one.Node || m.Target == m.Source {
			t.Fatalf("%+v", m)
		}
		if g.columns.Room.At(to) <= one.Memory {
			t.Fatalf("%s has no room for %s", m.TargetName, m.VMName)
		}
		if g.rests(vm) != "" && !found.Hard {
			t.Fatalf("%s rests", m.VMName)
		}
		if found.Kind == model.PlanBalance && (one.Unbalanced || fleet.View.Node(m.Target).Node.Unbalanced || g.worse(vm, to)) {
			t.Fatalf("%s goes to %s", m.VMName, m.TargetName)
		}
		g.move(vm, to)
	}
	for _, b := range hardBreaches(g) {
		if !known(before, &b) {
			t.Fatalf("%v breaks a hard rule that held: %s", told(found.Moves), b.Text)
		}
	}
	if now := s.squares(g); found.Kind == model.PlanBalance && (now > squares || found.Unit == DispersalUnit && now == squares) {
		t.Fatalf("%s: the VMs of customers are no more evenly spread", found.Reason)
	}
	if found.Kind == model.PlanBalance && found.Predicted >= found.Before {
		t.Fatalf("%s: %v to %v", found.Reason, found.Before, found.Predicted)
	}
	s.carryOut(found.Moves)
}
