package balance

import (
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/shared/units"
)

// spread puts so many VMs of a customer on each node, hv1 first. The policy keeps them spread, and has no balancer.
func (s *site) spread(customer string, n ...int) *site {
	for i, count := range n {
		node := s.nodes[i].ID
		for k := range count {
			s.vm(node, customer+"-"+node+"-"+string(rune('a'+k)), func(vm *model.VM) { vm.Owner.Customer = customer })
		}
	}
	s.DisperseAccounts = true
	return s
}

func TestCustomersAreSpreadUntilTheyAreEven(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").spread("acme", 4, 0, 2).spread("small", 2, 2, 0)
	s.use["acme-hv1-a"] = 1 // the least busy one moves
	for _, want := range []string{
		"acme-hv1-b hv1>hv2: disperses customer acme: hv1 has 4 of its VMs, hv2 has 0",
		"acme-hv1-c hv1>hv2: disperses customer acme: hv1 has 3 of its VMs, hv2 has 1",
		"small-hv1-a hv1>hv3: disperses customer small: hv1 has 2 of its VMs, hv3 has 0",
		"the VMs of each customer are spread evenly",
	} {
		expect(t, "the pass", s.pass(), want)
		s.later(time.Second)
	}
}

func TestWhoIsNotDispersed(t *testing.T) {
	window, err := model.ParseWindow("22:00-06:00")
	if err != nil {
		t.Fatal(err)
	}
	for what, change := range map[string]func(s *site){
		"the switch is off":         func(s *site) { s.DisperseAccounts = false },
		"balancing is off":          func(s *site) { s.Settings.Balancing = model.Off },
		"the window is closed":      func(s *site) { s.Settings.BalanceWindow = window },
		"nobody's":                  func(s *site) { s.each(func(vm *model.VM) { vm.Owner.Customer = "" }) },
		"they move by hand only":    func(s *site) { s.each(func(vm *model.VM) { vm.Migration = model.MigrateManual }) },
		"they rest":                 func(s *site) { s.each(func(vm *model.VM) { vm.MovedAt = noon.Add(-time.Minute) }) },
		"something works on them":   func(s *site) { s.each(func(vm *model.VM) { vm.Condition.Text = "an operation works on it" }) },
		"the node is left alone":    func(s *site) { s.node("hv1").Unbalanced = true },
		"the others are left alone": func(s *site) { s.node("hv2").Unbalanced = true },
		"the others are full":       func(s *site) { s.change("hv2", func(f *model.NodeFacts) { f.Memory = units.MiB }) },
		"the others are busy":       func(s *site) { s.vm("hv2", "busy"); s.use["busy"] = 15 },
		"a hard rule holds them":    func(s *site) { s.group("home", "", s.ids(), "!+", []string{"hv1"}) },
		"a soft rule holds them":    func(s *site) { s.group("home", "", s.ids(), "+", []string{"hv1"}) },
		"a hard rule ties them":     func(s *site) { s.group("together", "!+", s.ids(), "", nil) },
		"another one is on its way": func(s *site) { s.comes("hv2", "acme-new", "acme"); s.comes("hv2", "acme-newer", "acme") },
		"the difference is one": func(s *site) {
			s.vm("hv2", "x", func(vm *model.VM) { vm.Owner.Customer = "acme" })
			s.vms = s.vms[1:]
		},
		"their group is not balanced": func(s *site) { s.group("alone", "", s.ids(), "", nil).Settings[model.SettingUnbalanced] = "true" },
	} {
		s := newSite("hv1", "hv2").spread("acme", 3, 0)
		change(s)
		if found := Pass(s.fleet()); found.Kind != "" {
			t.Errorf("%s, and %v move: %s", what, told(found.Moves), found.Reason)
		} else if found.Idle == "" {
			t.Errorf("%s, and nothing is said", what)
		}
	}
	s := newSite("hv1", "hv2").spread("acme", 3, 0)
	fleet := s.fleet()
	for i := range fleet.VMs {
		fleet.VMs[i].Concentrated = true
	}
	expect(t, "of an offer that wants them together", Pass(fleet).Idle,
		"customer acme has 3 VMs on hv1 and 0 on hv2, and no move would be allowed that spreads them more evenly")
	fleet.VMs[2].Concentrated, fleet.VMs[2].Owner = false, "Acme Ltd"
	found := Pass(fleet)
	expect(t, "of one that does not", told(found.Moves), []string{"acme-hv1-c hv1>hv2"})
	expect(t, "the reason", found.Reason, "disperses customer Acme Ltd: hv1 has 3 of its VMs, hv2 has 0")
	expect(t, "the figures", []float64{found.Before, found.Predicted}, []float64{1.5, 0.5})
	expect(t, "the purpose", found.Decision.Request.Purpose, placement.ForBalance)
}

// each changes every VM.
func (s *site) each(change func(*model.VM)) {
	for i := range s.vms {
		change(&s.vms[i])
	}
}

func (s *site) ids() (ids []string) {
	s.each(func(vm *model.VM) { ids = append(ids, vm.ID) })
	return ids
}

// comes has a VM of a customer on its way to a node.
func (s *site) comes(node, name, customer string) {
	s.vms = append(s.vms, model.VM{ID: name, Name: name, Owner: model.Owner{Customer: customer}, Operation: "start"})
	s.held = append(s.held, model.Reservation{Node: node, VM: name, Name: name, Memory: units.GiB, VCPUs: 1})
}

// What the balancer does makes no customer's VMs less evenly spread.
func TestBalancingDoesNotUndoDispersal(t *testing.T) {
	s := newSite("hv1", "hv2").spread("acme", 4, 4)
	s.fill("hv1", 8)
	s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2}}
	for range 4 {
		found := Pass(s.fleet())
		if len(found.Moves) != 1 || found.Moves[0].VMName[:3] != "hv1" {
			t.Fatalf("%v move: %s%s", told(found.Moves), found.Reason, found.Idle)
		}
		s.carryOut(found.Moves)
		s.later(time.Second)
	}
	expect(t, "the last pass", Pass(s.fleet()).Idle, "no node has MigrationThreshold 2 fewer than the 8 of hv1")
	for i := range s.vms {
		if s.vms[i].Owner.Customer == "" {
			s.vms[i].Migration = model.MigrateManual
		}
	}
	s.fill("hv1", 0)
	for i := range 3 {
		s.vm("hv2", "fixed-"+string(rune('a'+i)), func(vm *model.VM) { vm.Migration = model.MigrateManual })
	}
	expect(t, "the pass with only VMs of the customer to move", Pass(s.fleet()).Idle,
		"hv2 has 11 VMs, and the policy would rather leave each of those that fit elsewhere where it is")
}

func TestAPlanDispersesFirst(t *testing.T) {
	s := newSite("hv1", "hv2").spread("acme", 4, 0)
	plan := Even(s.fleet(), 100)
	expect(t, "the moves", told(plan.Moves), []string{"acme-hv1-a hv1>hv2", "acme-hv1-b hv1>hv2"})
	expect(t, "the reason", plan.Reason,
		"2 moves, 2 GiB: from 2.000 to 0.000 (sum over customers of the standard deviation of their VMs a node)")
	s.carryOut(plan.Moves)
	s.later(time.Hour)
	expect(t, "the next plan", Even(s.fleet(), 100).Reason, "the VMs of each customer are spread evenly")
	s.fill("hv2", 4)
	s.Balancer = Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{HighVMCount: 1, MigrationThreshold: 2}}
	s.vms[0].Holder = "hv1"
	expect(t, "the moves with a balancer", told(Even(s.fleet(), 100).Moves),
		[]string{"acme-hv1-a hv1>hv2", "hv2-01 hv2>hv1", "hv2-02 hv2>hv1"})
	expect(t, "the moves of a short plan", len(Even(s.fleet(), 1).Moves), 1)
}

// The balancer takes the only VM of acme from hv1. That opens hv1 to a VM of acme that a hard rule lets go nowhere else.
func TestAPlanDispersesAgainAfterTheBalancer(t *testing.T) {
	s := newSite("hv1", "hv2", "hv3").spread("acme", 1, 0, 2).fill("hv1", 6)
	s.each(func(vm *model.VM) {
		if vm.ID != "acme-hv1-a" && vm.ID != "acme-hv3-a" {
			vm.Migration = model.MigrateNever
		}
	})
	s.group("home", "", []string{"acme-hv3-a"}, "!+", []string{"hv1"})
	s.Balancer = Chosen{Balancer: "even-load", Parameters: map[string]float64{EvenEnough: 0.01}}
	plan := Even(s.fleet(), 100)
	expect(t, "the moves", told(plan.Moves), []string{"acme-hv1-a hv1>hv2", "acme-hv3-a hv3>hv1"})
	expect(t, "the last move", plan.Moves[len(plan.Moves)-1].Reason, "disperses customer acme: hv3 has 2 of its VMs, hv1 has 0")
	s.carryOut(plan.Moves)
	s.later(time.Second)
	expect(t, "the moves of the next plan", told(Even(s.fleet(), 100).Moves), []string(nil))
}
