package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"berth/coordinator/affinity"
	"berth/coordinator/model"
	"berth/coordinator/placement"
	"berth/coordinator/placement/policies"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// ruleCase is one of a group's rules as cases write it.
type ruleCase struct {
	Rule      string
	Enforcing bool
}

// groupCase is an affinity group as cases write it.
type groupCase struct {
	Name      string
	VMs       []string
	VMsRule   ruleCase `json:"vms_rule"`
	Hosts     []string
	HostsRule ruleCase `json:"hosts_rule"`
	Priority  float64
}

// record is the group as the product keeps it.
func (g *groupCase) record() model.Resource {
	return model.Resource{
		ID: "group-" + g.Name, Kind: model.KindGroup, Name: g.Name, Links: map[string]string{model.LinkCluster: "cluster"},
		Settings: map[string]string{
			model.SettingVMsRule: g.VMsRule.Rule, model.SettingVMsEnforcing: strconv.FormatBool(g.VMsRule.Enforcing),
			model.SettingNodesRule: g.HostsRule.Rule, model.SettingNodesEnforcing: strconv.FormatBool(g.HostsRule.Enforcing),
			model.SettingPriority: strconv.FormatFloat(g.Priority, 'f', -1, 64),
		},
		Members: map[string][]string{
			model.MembersVMs: slices.Sorted(slices.Values(g.VMs)), model.MembersNodes: slices.Sorted(slices.Values(g.Hosts)),
		},
	}
}

// groupsOf reads the records of groups. All members are listed by ID.
func groupsOf(cases []groupCase) []model.Group {
	var groups []model.Group
	for i := range cases {
		record := cases[i].record()
		groups = append(groups, model.GroupOf(&record, model.DefaultCluster))
	}
	return groups
}

// running is where VMs are; null: nowhere.
type running map[string]*string

func (r running) where() affinity.Where {
	where := affinity.Where{}
	for vm, node := range r {
		if node != nil {
			where[vm] = *node
		}
	}
	return where
}

func itself(id string) string { return id }

// grouped is a world of idle nodes with groups and the VMs that run. Names are IDs.
func grouped(c *checker, hosts []string, cases []groupCase, where running, immovable []string) *world {
	w := newWorld(c)
	for _, host := range hosts {
		w.node(host)
	}
	for i := range cases {
		w.Resources = append(w.Resources, cases[i].record())
	}
	members := map[string]bool{}
	for vm := range where {
		members[vm] = true
	}
	for i := range cases {
		for _, vm := range cases[i].VMs {
			members[vm] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		vm := model.VM{ID: name, VDC: "vdc", Desired: model.Stopped, Spec: model.VMSpec{Memory: units.MiB, VCPUs: 1}}
		if slices.Contains(immovable, name) {
			vm.Migration = model.MigrateNever
		}
		node := where[name]
		if node == nil {
			vm.Name = name
			w.VMs = append(w.VMs, vm)
			continue
		}
		w.holds(*node, vm)
		w.change(*node, func(f *model.NodeFacts) {
			idle := 0.0
			f.Domains = append(f.Domains, model.Domain{
				UUID: name, Name: name, State: model.DomainRunning, Memory: units.MiB, VCPUs: 1, Managed: true, CPU: &idle,
			})
		})
	}
	return w
}

// take makes one of the VMs the one that is placed.
func (w *world) take(name string) {
	w.Helper()
	at := slices.IndexFunc(w.VMs, func(vm model.VM) bool { return vm.ID == name })
	if at < 0 {
		w.vm.ID, w.vm.Name = name, name
		return
	}
	vm := w.VMs[at]
	w.VMs = slices.Delete(w.VMs, at, at+1)
	w.vm.ID, w.vm.Name, w.vm.Holder, w.vm.StartedAt, w.vm.Desired, w.vm.Migration = vm.ID, vm.Name, vm.Holder, vm.StartedAt,
		vm.Desired, vm.Migration
}

func runHostFilter(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM      string
		Hosts   []string
		Groups  []groupCase
		Running running
	}](c, given)
	want := decode[struct {
		Hosts       []string
		HostsEngine json.RawMessage `json:"hosts_engine"` // an alternative that was not chosen
	}](c, expect)
	w := grouped(c, g.Hosts, g.Groups, g.Running, nil)
	w.take(g.VM)
	w.policy = func(p *policies.Policy) { p.Gate, p.Weighers = policies.Gate{Kind: policies.GateOff}, nil }
	d := w.decide(placement.ForStart)
	c.sameSet("what passes", slices.Collect(maps.Keys(d.system)), want.Hosts)
	c.sameSet("who can win", d.winners, want.Hosts)
}

// weights are those of one weigher alone, by node.
func (w *world) weights(name string) (weights map[string]float64, broken map[string]int) {
	w.Helper()
	w.policy = func(p *policies.Policy) {
		*p = p.WithoutPrefer() // of interest is what it weighs
		p.Gate, p.Weighers = policies.Gate{Kind: policies.GateOff}, []policies.Factor{{Weigher: name, Factor: 1}}
		p.Constraints = slices.DeleteFunc(p.Constraints, func(constraint string) bool { return constraint == "vm-affinity" })
	}
	d := w.decide(placement.ForStart)
	weights, broken = map[string]float64{}, map[string]int{}
	for _, node := range d.decision.Nodes {
		weights[node.Node] = -node.Score
		for _, term := range node.Terms {
			if term.Weigher == name && term.Key != "" {
				broken[node.Node]++
			}
		}
	}
	if len(weights) == 0 {
		w.Fatalf("no node has a weight by %s", name)
	}
	return weights, broken
}

// ranks are 1 and how many nodes weigh less.
func ranks(weights map[string]float64) map[string]float64 {
	ranked := map[string]float64{}
	for node, weight := range weights {
		ranked[node] = 1
		for _, other := range weights {
			if other < weight {
				ranked[node]++
			}
		}
	}
	return ranked
}

// runHostWeight weighs soft rules of nodes. The weights are the first design's as long as all priorities are equal; with
// several, the order is that of the descending lists of the priorities that would be broken.
func runHostWeight(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM     string
		Hosts  []string
		Groups []groupCase
	}](c, given)
	want := decode[struct {
		Seed   map[string]float64 `json:"weights_seed"`
		Engine map[string]float64 `json:"weights_engine"`
	}](c, expect)
	w := grouped(c, g.Hosts, g.Groups, nil, nil)
	w.take(g.VM)
	weights, broken := w.weights("node-affinity")
	c.sameScores("the rank", ranks(weights), want.Engine)
	equal := !slices.ContainsFunc(g.Groups, func(one groupCase) bool { return one.Priority != g.Groups[0].Priority })
	for node, weight := range want.Seed {
		c.near("1 and the number of broken rules on "+node, 1+float64(broken[node]), weight)
		if equal {
			c.near("the weight of "+node, weights[node], weight)
		}
	}
}

func runVMWeight(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		VM        string
		Hosts     []string
		Groups    []groupCase
		Running   running
		Immovable []string `json:"immovable_vms"`
	}](c, given)
	want := decode[struct {
		Engine map[string]float64 `json:"weights_engine"`
		Order  [][]string         `json:"order_best_first"`
	}](c, expect)
	w := grouped(c, g.Hosts, g.Groups, g.Running, g.Immovable)
	w.take(g.VM)
	weights, _ := w.weights("vm-affinity")
	c.sameScores("the rank", ranks(weights), want.Engine)
	nodes := slices.SortedFunc(maps.Keys(weights), func(a, b string) int { return cmp.Compare(weights[a], weights[b]) })
	c.inOrder("nodes", nodes, want.Order)
}

// inOrder compares a list with lists of which each may be in any order.
func (c *checker) inOrder(what string, got []string, want [][]string) {
	c.Helper()
	for i, some := range want {
		n := min(len(some), len(got))
		c.sameSet(fmt.Sprintf("part %d of the %s", i+1, what), got[:n], some)
		got = got[n:]
	}
	c.sameSet("what follows the "+what, got, nil)
}

// runPlace places one VM under groups.
func runPlace(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Op       string
		VM       string
		Hosts    []string
		Excluded []string
		Groups   []groupCase
		Running  running
		Factors  struct{ VMToHosts, VMs float64 }
	}](c, factorNames(given))
	want := decode[struct{ Allowed []string }](c, expect)
	w := grouped(c, g.Hosts, g.Groups, g.Running, nil)
	w.take(g.VM)
	w.policy = func(p *policies.Policy) {
		p.Gate = policies.Gate{Kind: policies.GateOff}
		p.Weighers = []policies.Factor{
			{Weigher: "node-affinity", Factor: g.Factors.VMToHosts}, {Weigher: "vm-affinity", Factor: g.Factors.VMs},
		}
	}
	var request placement.Request
	target, named := strings.CutSuffix(strings.TrimPrefix(g.Op, "migrate to "), " only")
	switch {
	case g.Op == "start":
		request = w.request(placement.ForStart)
	case g.Op == "migrate":
		request = w.request(placement.ForMigrate)
	case g.Op == "evacuate":
		request = w.request(placement.ForDrain)
	case named:
		request = w.request(placement.ForMigrate)
		request.Pinned = target
	default:
		c.Fatalf("there is no operation %q", g.Op)
	}
	for _, node := range g.Excluded {
		if node == request.Current {
			request.Leave = true
		} else {
			request.Excluded = append(request.Excluded, node)
		}
	}
	d := w.decideOn(w.view(), request)
	c.same("whether the VM stays", d.choice.Stays, false)
	c.sameSet("where the VM may go", d.winners, want.Allowed)
}

// factorNames gives the factors of a case names that fields can have.
func factorNames(given json.RawMessage) json.RawMessage {
	text := strings.ReplaceAll(string(given), `"VmToHostsAffinityGroups"`, `"VMToHosts"`)
	return json.RawMessage(strings.ReplaceAll(text, `"VmAffinityGroups"`, `"VMs"`))
}

func runUnify(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Groups [][]string }](c, given)
	want := decode[struct{ Unified [][]string }](c, expect)
	var cases []groupCase
	for i, vms := range g.Groups {
		cases = append(cases, groupCase{Name: strconv.Itoa(i), VMs: vms, VMsRule: ruleCase{Rule: "positive", Enforcing: true}})
	}
	got := affinity.Merged(groupsOf(cases))
	c.same("the number of sets", len(got), len(want.Unified))
	for i := range min(len(got), len(want.Unified)) {
		c.sameSet("a set", got[i], want.Unified[i])
	}
}

func runBroken(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Running running
		Groups  []struct {
			Label string
			Group groupCase
		}
	}](c, given)
	want := decode[struct{ Broken []bool }](c, expect)
	if len(g.Groups) != len(want.Broken) {
		c.Fatalf("%d groups and %d answers", len(g.Groups), len(want.Broken))
	}
	for i, one := range g.Groups {
		breaches := affinity.Breaches(groupsOf([]groupCase{one.Group}), g.Running.where(), itself)
		c.same("whether "+one.Label+" is broken", len(breaches) > 0, want.Broken[i])
	}
}

// conflictTypes are ours of what cases call them.
var conflictTypes = map[string]string{
	"host_positive_and_negative_enforcing": affinity.RequiredAndForbidden,
	"host_positive_and_negative":           affinity.WantedAndAvoided,
	"host_rules_against_positive_vm_rule":  affinity.TogetherAgainstNodes,
	"host_rules_against_negative_vm_rule":  affinity.ApartAgainstNodes,
	"non_intersecting_positive_hosts":      affinity.DifferentNodes,
	"vm_positive_and_negative":             affinity.TogetherAndApart,
}

func runConflict(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Groups []groupCase }](c, given)
	want := decode[struct {
		First struct {
			Type               string
			Groups, Hosts, VMs []string
		} `json:"first_conflict"`
		MayBeSaved bool `json:"may_be_saved"`
	}](c, expect)
	conflicts := affinity.Conflicts(groupsOf(g.Groups), itself)
	if len(conflicts) == 0 {
		c.Fatal("there is no conflict")
	}
	first := conflicts[0]
	c.same("the kind", first.Kind, conflictTypes[want.First.Type])
	c.sameSet("the groups", first.Groups, want.First.Groups)
	c.sameSet("the nodes", first.Nodes, want.First.Hosts)
	c.sameSet("the VMs", first.VMs, want.First.VMs)
	c.same("whether it may be saved", first.Severity != affinity.Error, want.MayBeSaved)
}

// runAPIMapping reads a request as the published interface's clients write it.
func runAPIMapping(c *checker, given, expect json.RawMessage) {
	g := decode[struct{ Request json.RawMessage }](c, given)
	want := decode[struct {
		VMs   optional[ruleCase] `json:"vms_rule"`
		Hosts optional[ruleCase] `json:"hosts_rule"`
	}](c, expect)
	var group berthv1.Group
	c.must(protojson.Unmarshal(g.Request, &group))
	none := model.Rule{Polarity: model.Disabled}
	rule := func(what string, got model.Rule, want optional[ruleCase]) {
		if want.given {
			c.same("the rule of "+what, string(got.Polarity), want.value.Rule)
			c.same("whether the rule of "+what+" is hard", got.Enforcing, want.value.Enforcing)
		}
	}
	rule("VMs", wire.VMsRuleFrom(group.GetVmsRule(), group.Positive, group.Enforcing, none), want.VMs)
	rule("nodes", wire.RuleFrom(group.GetHostsRule(), none), want.Hosts)
}

func runSoftImprovement(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Cases []struct {
			Rule           string
			SourceInGroup  bool  `json:"source_in_group"`
			TargetInGroup  bool  `json:"target_in_group"`
			OthersOnSource count `json:"others_on_source"`
			OthersOnTarget count `json:"others_on_target"`
			TargetIsSource bool  `json:"target_equals_source"`
		}
	}](c, given)
	want := decode[struct{ Improves []bool }](c, expect)
	if len(g.Cases) != len(want.Improves) {
		c.Fatalf("%d moves and %d answers", len(g.Cases), len(want.Improves))
	}
	for i, one := range g.Cases {
		group := groupCase{Name: "soft", VMs: []string{"vm"}, Hosts: []string{"elsewhere"}}
		where, target := affinity.Where{"vm": "source"}, "target"
		about, polarity, _ := strings.Cut(one.Rule, " ")
		switch about {
		case "host":
			group.HostsRule.Rule = polarity
		case "vm":
			group.VMsRule.Rule = polarity
		case "any": // all of them at once
			group.HostsRule.Rule, group.VMsRule.Rule = "positive", "negative"
		default:
			c.Fatalf("there is no rule %q", one.Rule)
		}
		if one.SourceInGroup {
			group.Hosts = append(group.Hosts, "source")
		}
		if one.TargetInGroup {
			group.Hosts = append(group.Hosts, "target")
		}
		join := func(node string, others count) {
			for n := range others {
				vm := fmt.Sprintf("on-%s-%d", node, n)
				where[vm], group.VMs = node, append(group.VMs, vm)
			}
		}
		join("source", one.OthersOnSource)
		join("target", one.OthersOnTarget)
		if one.TargetIsSource {
			target = "source"
			join("source", 1)
		}
		for _, first := range []affinity.Scope{affinity.OfNodes, affinity.OfVMs} {
			got := affinity.Improves(groupsOf([]groupCase{group}), "vm", target, where, first)
			c.same(fmt.Sprintf("whether move %d improves %s, %s first", i+1, one.Rule, first), got, want.Improves[i])
		}
	}
}
