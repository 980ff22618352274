package conformance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/schema"
	"berth/coordinator/view"
	"berth/shared/units"
)

// evenVMCountRunners know the kinds of oVirt's even distribution by VM count.
var evenVMCountRunners = map[string]runner{
	"defaults":     runEvenDefaults,
	"balance":      runEvenBalance,
	"weight":       runEvenWeight,
	"sequence":     runEvenSequence,
	"validation":   runEvenValidation,
	"vm_choice":    runEvenVMChoice,
	"target_check": runEvenTargetCheck,
	"pipeline":     runEvenPipeline,
}

// evenParameters are ours of a case's names.
var evenParameters = map[string]string{
	"HighVmCount": balance.HighVMCount, "MigrationThreshold": balance.MigrationThreshold, "SpmVmGrace": balance.SPMVMCountGrace,
}

// evenHost is a host of a case.
type evenHost struct {
	Name string
	VMs  count
	SPM  bool
}

// evenSite is a world that is balanced by VM count.
type evenSite struct {
	*world
	parameters map[string]float64
	held       []model.Reservation
	cpus       map[string]float64 // CPUs that a VM uses, by ID
}

func newEvenSite(c *checker, hosts []evenHost, parameters map[string]float64) *evenSite {
	c.Helper()
	e := &evenSite{world: newWorld(c), parameters: map[string]float64{}, cpus: map[string]float64{}}
	for name, value := range parameters {
		ours, known := evenParameters[name]
		if !known {
			c.Fatalf("there is no parameter %q", name)
		}
		e.parameters[ours] = value
	}
	e.resource("cluster").Links = map[string]string{schema.LinkPolicy: "policy"}
	e.setting(model.SettingBalancing, string(model.Automatic))
	e.setting(model.SettingCooldown, "0s")
	e.Resources = append(e.Resources, model.Resource{
		ID: "policy", Name: "even", Kind: model.KindPolicy,
		Settings: map[string]string{schema.SettingGate: string(policies.GateOff), schema.SettingBalancer: "even-vm-count"},
		Lists:    map[string][]string{schema.ListWeighers: {"node-affinity=20", "vm-count=2"}},
	})
	for _, host := range hosts {
		e.node(host.Name).Management = host.SPM
		for i := range int(host.VMs) {
			e.put(host.Name, fmt.Sprintf("%s-vm%03d", host.Name, i+1))
		}
	}
	return e
}

// view is the world's, with what is reserved and the groups.
func (e *evenSite) view() *view.View {
	records := view.Records{
		Clusters: []model.Resource{*e.resource("cluster")}, Nodes: e.Nodes, VMs: e.VMs, Reservations: e.held,
	}
	for i := range e.Resources {
		if e.Resources[i].Kind == model.KindGroup {
			records.Groups = append(records.Groups, e.Resources[i])
		}
	}
	facts := maps.Clone(e.facts)
	for i := range e.VMs {
		vm := &e.VMs[i]
		node, cpus := facts[vm.Holder], e.cpus[vm.ID]
		node.Domains = append(slices.Clone(node.Domains), model.Domain{
			UUID: vm.ID, Name: vm.Name, State: model.DomainRunning, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Managed: true,
			Since: vm.StartedAt, CPU: &cpus, Resident: &vm.Spec.Memory,
		})
		slices.SortFunc(node.Domains, func(a, b model.Domain) int { return strings.Compare(a.UUID, b.UUID) })
		facts[vm.Holder] = node
	}
	return view.New(noon, 1, records, facts)
}

// put lets a node run a small VM.
func (e *evenSite) put(node, name string) *model.VM {
	e.holds(node, model.VM{ID: name, Spec: model.VMSpec{Memory: units.MiB, VCPUs: 1}})
	return &e.VMs[len(e.VMs)-1]
}

// fleet is the site as the leader's loops see it. The parameters are set without being validated: one case is about a wrong
// one.
func (e *evenSite) fleet() *balance.Fleet {
	e.Helper()
	fleet, err := estate.FleetOf(estate.Indexed(&e.State), e.view(), model.DefaultCluster, nil)
	e.must(err)
	fleet.Balancer.Parameters = e.parameters
	grace, _ := fleet.Balancer.Parameter(balance.SPMVMCountGrace)
	fleet.Policy.ManagerGrace = int(grace)
	seed := uint64(0)
	fleet.Seed = func() uint64 { seed++; return seed }
	fleet.History = &balance.History{}
	return fleet
}

// proposals are all that the balancer offers, as VM, source and targets.
type evenProposal struct {
	vm, source string
	targets    []string
}

func (e *evenSite) proposals() (all []evenProposal, why string) {
	e.Helper()
	balancer, s, err := e.fleet().Situation()
	e.must(err)
	why = balancer.Propose(s, func(p balance.Proposal) bool {
		one := evenProposal{vm: s.VMs[p.VM].Name, source: s.VMs[p.VM].NodeName}
		for _, target := range p.Targets {
			one.targets = append(one.targets, s.Columns.Names[target])
		}
		all = append(all, one)
		return false
	})
	return all, why
}

// slots are the weights of the hosts, as the engine weighs a VM that is to be started somewhere.
func (e *evenSite) slots(excluded ...string) (slots map[string]int, best []string) {
	e.Helper()
	policy := e.fleet().Policy
	policy.Weighers = []policies.Factor{{Weigher: "vm-count", Factor: 2}}
	request := placement.Request{
		Purpose: placement.ForStart, VM: "new", VMName: "new", VCPUs: 1, Cluster: model.DefaultCluster, Excluded: excluded,
	}
	d := decideAll(e.checker, e.view(), request, policy)
	slots = map[string]int{}
	for _, node := range d.decision.Nodes {
		if node.Admitted {
			slots[node.Name] = int(-node.Score)
		}
	}
	return slots, d.winners
}

func (e *evenSite) sameSlots(what string, got map[string]int, want map[string]count) {
	e.Helper()
	e.same("the number of hosts with "+what, len(got), len(want))
	for name, slots := range want {
		e.same(what+" of "+name, got[name], int(slots))
	}
}

// evenOutcome is what a case expects of one look.
type evenOutcome struct {
	Balanced bool
	Reason   optional[string]
	Slots    optional[map[string]count]
	Sources  []string
	Targets  []string
}

// evenReasons begin what the balancer says in the words of the cases.
var evenReasons = map[string]string{
	"no overloaded host":             "no node has more than " + balance.HighVMCount,
	"no target beyond the threshold": "no node has " + balance.MigrationThreshold,
}

// looked compares one look at the cluster.
func (e *evenSite) looked(want evenOutcome) {
	e.Helper()
	all, why := e.proposals()
	var sources, targets []string
	for _, one := range all {
		if !slices.Contains(sources, one.source) {
			sources = append(sources, one.source)
		}
		targets = one.targets
	}
	e.same("whether it is balanced", len(all) == 0, want.Balanced)
	if want.Slots.given {
		slots, _ := e.slots()
		e.sameSlots("slots", slots, want.Slots.value)
	}
	if len(all) == 0 {
		e.same("whether it says "+want.Reason.value, strings.HasPrefix(why, evenReasons[want.Reason.value]) && want.Reason.value != "", true)
		e.sameSet("the targets", nil, want.Targets)
		return // sources without a target are offered to nobody
	}
	e.same("the sources in order", fmt.Sprint(sources), fmt.Sprint(want.Sources))
	e.sameSet("the targets", targets, want.Targets)
}

func runEvenBalance(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts      []evenHost
		Parameters map[string]float64
	}](c, given)
	want := decode[struct {
		evenOutcome
		Moves [][2]string      `json:"moves_until_balanced"`
		Final map[string]count `json:"final_vms"`
	}](c, expect)
	e := newEvenSite(c, g.Hosts, g.Parameters)
	e.looked(want.evenOutcome)
	if want.Moves == nil {
		return
	}
	plan := balance.Even(e.fleet(), 1000)
	emptiest := true // every move of the case goes to a target with the fewest slots
	for _, move := range want.Moves {
		all, why := e.proposals()
		if len(all) == 0 {
			c.Fatalf("no move from %s to %s: %s", move[0], move[1], why)
		}
		slots, _ := e.slots()
		fewest := slices.MinFunc(all[0].targets, func(a, b string) int { return slots[a] - slots[b] })
		emptiest = emptiest && slots[fewest] == slots[move[1]]
		c.same("the source", all[0].source, move[0])
		c.same("whether "+move[1]+" is a target", slices.Contains(all[0].targets, move[1]), true)
		e.send(all[0].vm, move[1])
	}
	_, why := e.proposals()
	c.same("whether it is balanced then", strings.HasPrefix(why, "no node has"), true)
	final := map[string]int{}
	for _, host := range g.Hosts {
		final[host.Name] = 0
	}
	for i := range e.VMs {
		final[e.VMs[i].Holder]++
	}
	if want.Final != nil {
		e.sameSlots("VMs", final, want.Final)
	}
	if emptiest {
		var moves [][2]string
		for _, move := range plan.Moves {
			moves = append(moves, [2]string{move.SourceName, move.TargetName})
		}
		c.same("the whole plan", fmt.Sprint(moves), fmt.Sprint(want.Moves))
	}
}

// send moves a VM.
func (e *evenSite) send(vm, to string) {
	at := slices.IndexFunc(e.VMs, func(one model.VM) bool { return one.Name == vm })
	e.VMs[at].Holder = to
}

func runEvenWeight(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts      []evenHost
		Parameters map[string]float64
		Excluded   []string
		Pending    map[string]count
	}](c, given)
	want := decode[struct {
		Weights map[string]count `json:"weights_lower_better"`
		Best    []string
	}](c, expect)
	e := newEvenSite(c, g.Hosts, g.Parameters)
	for node, n := range g.Pending {
		for i := range int(n) {
			name := fmt.Sprintf("pending-%s-%d", node, i)
			e.held = append(e.held, model.Reservation{Node: node, VM: name, Name: name, Memory: units.MiB, VCPUs: 1})
		}
	}
	slots, best := e.slots(g.Excluded...)
	e.sameSlots("the weight", slots, want.Weights)
	c.sameSet("the best", best, want.Best)
}

// runEvenSequence starts the VMs of a host that has failed on those that are left.
func runEvenSequence(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts      []evenHost
		Parameters map[string]float64
		Failed     string `json:"failed_host"`
	}](c, given)
	want := decode[struct {
		Final map[string]count `json:"final_vms"`
	}](c, expect)
	e := newEvenSite(c, g.Hosts, g.Parameters)
	e.change(g.Failed, func(f *model.NodeFacts) { f.Liveness = model.Unreachable })
	policy := e.fleet().Policy
	for i := range e.VMs {
		vm := &e.VMs[i]
		if vm.Holder != g.Failed {
			continue
		}
		vm.Holder = ""
		decision := placement.Place(e.view(), placement.Request{
			Purpose: placement.ForStart, VM: vm.ID, VMName: vm.Name, Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Cluster: model.DefaultCluster,
		}, policy, 1)
		c.same("how "+vm.Name+" is placed", decision.Outcome, placement.Placed)
		vm.Holder = decision.Winner
	}
	final := map[string]int{}
	for i := range e.VMs {
		final[e.VMs[i].Holder]++
	}
	e.sameSlots("VMs", final, want.Final)
}

func runEvenDefaults(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Parameters []string }](c, given)
	want := decode[struct {
		Defaults map[string]float64
		Minimum  map[string]float64
		Factor   float64 `json:"weight_unit_factor"`
		Minutes  float64 `json:"balance_interval_minutes"`
	}](c, expect)
	balancer, _ := balance.ByName("even-vm-count")
	for _, name := range g.Parameters {
		at := slices.IndexFunc(balancer.Parameters, func(p balance.Parameter) bool { return p.Name == evenParameters[name] })
		if at < 0 {
			c.Fatalf("there is no parameter %q", name)
		}
		c.near("the default of "+name, balancer.Parameters[at].Default, want.Defaults[name])
		c.near("the minimum of "+name, balancer.Parameters[at].Least, want.Minimum[name])
	}
	policy, _ := policies.Builtin(policies.EvenVMs, model.DefaultSettings())
	at := slices.IndexFunc(policy.Weighers, func(f policies.Factor) bool { return f.Weigher == "vm-count" })
	c.near("the factor", policy.Weighers[at].Factor, want.Factor)
	c.near("the interval", balance.Interval.Minutes(), want.Minutes)
}

func runEvenValidation(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Values []float64
		Hosts  []evenHost `json:"example_hosts"`
	}](c, given)
	want := decode[struct {
		Accepted []bool
		Example  evenOutcome `json:"example_with_threshold_1"`
	}](c, expect)
	c.same("the number of values", len(g.Values), len(want.Accepted))
	for i, value := range g.Values {
		chosen := balance.Chosen{Balancer: "even-vm-count", Parameters: map[string]float64{balance.MigrationThreshold: value}}
		c.same(fmt.Sprintf("whether %v is accepted", value), balance.Validate(chosen) == nil, want.Accepted[i])
	}
	// With 1 a VM would go back and forth; the example's worst host has to count as overloaded for that.
	newEvenSite(c, g.Hosts, map[string]float64{"HighVmCount": 2, "MigrationThreshold": 1, "SpmVmGrace": 0}).looked(want.Example)
}

func runEvenVMChoice(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VMs []struct {
			Name       string
			CPUPercent float64 `json:"cpu_percent"`
			VCPUs      int
			Migratable optional[bool]
		}
	}](c, given)
	want := decode[struct {
		Order []string `json:"try_order"`
	}](c, expect)
	e := newEvenSite(c, []evenHost{{Name: "source"}, {Name: "target"}}, map[string]float64{"HighVmCount": 0, "MigrationThreshold": 2})
	e.pin("source", 2)
	for _, one := range g.VMs {
		vm := e.put("source", one.Name)
		vm.Spec.VCPUs = one.VCPUs
		if !one.Migratable.or(true) {
			vm.Migration = model.MigrateNever
		}
		e.cpus[vm.ID] = one.CPUPercent / 100 * float64(one.VCPUs)
	}
	var order []string
	all, _ := e.proposals()
	for _, one := range all {
		order = append(order, one.vm)
	}
	c.same("the order", fmt.Sprint(order), fmt.Sprint(want.Order))
}

// pin puts VMs on a node that nobody may move, so that it has too many.
func (e *evenSite) pin(node string, n int) {
	for i := range n {
		e.put(node, fmt.Sprintf("pinned-%s-%d", node, i)).Migration = model.MigrateNever
	}
}

func runEvenTargetCheck(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM struct {
			Name       string
			CPUPercent float64 `json:"cpu_percent"`
			VCPUs      int
			Memory     float64 `json:"mem_mb"`
		}
		Targets []struct {
			Name   string
			Load   float64 `json:"cpu_load_total"`
			CPUs   int     `json:"shared_cpus"`
			Memory float64 `json:"free_mem_mb"`
		}
		HighCPU    float64 `json:"high_cpu_utilization"`
		LeastFree  float64 `json:"min_free_memory_mb"`
		SourceName string  `json:"source"`
	}](c, given)
	want := decode[struct {
		Valid      []string `json:"valid_targets"`
		Candidates []string `json:"candidate_list_for_scheduler"`
	}](c, expect)
	e := newEvenSite(c, []evenHost{{Name: g.SourceName}}, map[string]float64{"HighVmCount": 0, "MigrationThreshold": 2})
	e.parameters[balance.HighCPU] = g.HighCPU
	e.pin(g.SourceName, 2)
	vm := e.put(g.SourceName, g.VM.Name)
	vm.Spec = model.VMSpec{Memory: units.Bytes(g.VM.Memory * float64(units.MiB)), VCPUs: g.VM.VCPUs}
	e.cpus[vm.ID] = g.VM.CPUPercent / 100 * float64(g.VM.VCPUs)
	least := units.Bytes(g.LeastFree * float64(units.MiB))
	for _, target := range g.Targets {
		e.node(target.Name).Settings.Overhead = &least
		load, free := target.Load/100, units.Bytes(target.Memory*float64(units.MiB))
		e.change(target.Name, func(f *model.NodeFacts) { f.CPUs, f.Load1, f.Available = target.CPUs, &load, &free })
	}
	all, _ := e.proposals()
	if len(want.Valid) == 0 {
		c.same("the number of proposals", len(all), 0)
		return
	}
	if len(all) != 1 {
		c.Fatalf("%d proposals, want one", len(all))
	}
	c.sameSet("the targets", all[0].targets, want.Valid)
	found := balance.Pass(e.fleet())
	c.sameSet("the candidates", append(slices.Clone(found.Decision.Request.Among), found.Decision.Request.Current), want.Candidates)
}

// runEvenPipeline makes the engine choose as the case says, by a soft rule that a VM has about its node.
func runEvenPipeline(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Proposals []struct {
			VM         string
			Candidates []string
		}
		Choice map[string]string `json:"scheduler_choice"`
	}](c, given)
	want := decode[struct {
		Migrated [][2]string
		PerPass  count `json:"migrations_per_cluster_per_pass"`
	}](c, expect)
	e := newEvenSite(c, nil, map[string]float64{"HighVmCount": 0, "MigrationThreshold": 2})
	for i, one := range g.Proposals {
		source := one.Candidates[len(one.Candidates)-1]
		if i == 0 {
			e.node(source)
			e.pin(source, len(one.Candidates)+2)
		}
		for _, target := range one.Candidates {
			e.node(target)
		}
		e.cpus[e.put(source, one.VM).ID] = float64(i) / 100
		e.Resources = append(e.Resources, model.Resource{
			ID: "group-" + one.VM, Kind: model.KindGroup, Name: "group-" + one.VM, Links: map[string]string{schema.LinkCluster: "cluster"},
			Settings: map[string]string{model.SettingNodesRule: string(model.Positive)},
			Members:  map[string][]string{model.MembersVMs: {one.VM}, model.MembersNodes: {g.Choice[one.VM]}},
		})
	}
	e.setting(model.SettingEnforcement, string(model.Off)) // it is about balancing
	all, _ := e.proposals()
	for i, one := range g.Proposals {
		c.same(fmt.Sprintf("proposal %d", i+1), all[i].vm, one.VM)
		c.sameSet("its candidates", append(slices.Clone(all[i].targets), all[i].source), one.Candidates)
	}
	found := balance.Pass(e.fleet())
	var migrated [][2]string
	for _, move := range found.Moves {
		migrated = append(migrated, [2]string{move.VMName, move.TargetName})
	}
	c.same("what is migrated", fmt.Sprint(migrated), fmt.Sprint(want.Migrated))
	c.same("the number of migrations", len(found.Moves), min(int(want.PerPass), len(want.Migrated)))
}
