package conformance

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/affinity"
	"berth/coordinator/balance"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/shared/units"
)

// runEnforcer lists candidates. The order of the first design, both rules of nodes before rules of VMs, has the same
// candidates in another order of the classes.
func runEnforcer(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts     []string
		Running   running
		Groups    []groupCase
		Immovable []string       `json:"immovable_vms"`
		NoHost    []string       `json:"vms_without_possible_host"`
		IDs       map[string]int `json:"vm_ids"` // where the order of IDs is not that of names
	}](c, given)
	want := decode[struct {
		Engine [][]string         `json:"candidates_engine"`
		Seed   [][]string         `json:"candidates_seed"`
		Both   optional[[]string] `json:"warned_in_both"` // VMs that a rule for hosts and a rule for VMs ask to move
		Peer   struct {
			Candidates optional[[][]string]
			Count      optional[count]
			First      optional[string]
		} `json:"peer_asserts"`
	}](c, expect)
	id := func(name string) string {
		if n, given := g.IDs[name]; given {
			return fmt.Sprintf("%04d %s", n, name)
		}
		return name
	}
	name := func(id string) string { return id[strings.Index(id, " ")+1:] }
	where := affinity.Where{}
	for vm, node := range g.Running.where() {
		where[id(vm)] = node
	}
	for i := range g.Groups {
		for j, vm := range g.Groups[i].VMs {
			g.Groups[i].VMs[j] = id(vm)
		}
	}
	fixed := func(vm string) bool { return slices.Contains(g.Immovable, name(vm)) }
	candidates := affinity.Candidates(groupsOf(g.Groups), where, fixed, nil, name)
	candidates = slices.DeleteFunc(candidates, func(one affinity.Candidate) bool { return slices.Contains(g.NoHost, name(one.VM)) })
	names := func() []string { // a VM comes once for each breach; cases count it once
		var names []string
		for _, one := range candidates {
			if !slices.Contains(names, name(one.VM)) {
				names = append(names, name(one.VM))
			}
		}
		return names
	}
	if want.Both.given {
		var both []string
		for _, one := range affinity.InBoth(candidates) {
			both = append(both, name(one.VM))
		}
		c.sameSet("candidates of both scopes", both, want.Both.value)
	}
	c.inOrder("candidates", names(), want.Engine)
	if want.Peer.Candidates.given {
		c.inOrder("candidates by the peer", names(), want.Peer.Candidates.value)
	}
	if want.Peer.Count.given {
		c.same("the number of candidates by the peer", len(names()), int(want.Peer.Count.value))
	}
	if want.Peer.First.given {
		c.same("the first candidate by the peer", strings.Join(names()[:min(len(names()), 1)], ""), want.Peer.First.or(""))
	}
	class := func(one affinity.Candidate) int {
		switch {
		case one.Breach.Scope == affinity.OfNodes && one.Hard:
			return 0
		case one.Breach.Scope == affinity.OfNodes:
			return 1
		default:
			return 2
		}
	}
	slices.SortStableFunc(candidates, func(a, b affinity.Candidate) int { return cmp.Compare(class(a), class(b)) })
	c.inOrder("candidates in the first design's order", names(), want.Seed)
}

// pass makes one pass of enforcement over the world, of which one VM uses the least CPU.
func (w *world) pass(idlest string, seed uint64) balance.Found {
	w.Helper()
	for name := range w.facts {
		w.change(name, func(f *model.NodeFacts) {
			f.Domains = slices.Clone(f.Domains)
			for i := range f.Domains {
				use := 0.5
				if f.Domains[i].UUID == idlest {
					use = 0.1
				}
				f.Domains[i].CPU = &use
			}
		})
	}
	fleet, err := estate.FleetOf(estate.Indexed(&w.State), w.view(), model.DefaultCluster, nil)
	w.must(err)
	fleet.Seed = func() uint64 { return seed }
	return balance.Pass(fleet)
}

// passesANode is how often a pass is made for each node that may win a tie.
const passesANode = 12

// possible makes passes until everything that can come of the first has: of the VMs that are alike each may use the least
// CPU, and ties between nodes are drawn.
func (w *world) possible() map[string]map[string]bool {
	w.Helper()
	moves := map[string]map[string]bool{}
	for i := range w.VMs {
		for seed := range uint64(passesANode * len(w.Nodes)) {
			found := w.pass(w.VMs[i].ID, seed)
			for _, move := range found.Moves {
				if moves[move.VM] == nil {
					moves[move.VM] = map[string]bool{}
				}
				moves[move.VM][move.Target] = true
			}
			if w.same("moves in one pass", len(found.Moves) <= 1, true); len(found.Moves) > 0 {
				w.same("why a VM is moved", found.Kind, model.PlanRepair)
			}
		}
	}
	return moves
}

func runEnforceStep(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts    []string
		Groups   []groupCase
		Running  running
		Room     map[string][]string `json:"hosts_with_room"`
		Upgrade  bool                `json:"upgrade_mode"`
		Moving   map[string]string   `json:"migrating"` // VMs on their way, with their targets
		Evacuate string              `json:"evacuate"`  // a host that is drained instead
	}](c, given)
	want := decode[struct {
		Possible []struct {
			VM           string
			Destinations []string
		} `json:"possible_migrations"`
		Count optional[count] `json:"count_in_this_pass"`
		Stays []string        // of a drain: VMs that cannot go
	}](c, expect)
	w := grouped(c, g.Hosts, g.Groups, g.Running, nil)
	w.setting(model.SettingUpgradeMode, strconv.FormatBool(g.Upgrade))
	for _, node := range g.Hosts {
		for _, hosts := range g.Room {
			if !slices.Contains(hosts, node) { // the VMs are all of a size: what has no room for one has none for the others
				w.change(node, func(f *model.NodeFacts) { f.Available = new(units.Bytes) })
			}
		}
	}
	if len(g.Moving) > 0 {
		c.same("the number of VMs that may move", 0, len(want.Possible))
		c.same("the number of moves", w.leaderPass(g.Running.where(), g.Moving), int(want.Count.value))
		return
	}
	var got map[string]map[string]bool
	if g.Evacuate != "" {
		var stays []string
		got, stays = w.evacuated(g.Evacuate)
		c.sameSet("who stays", stays, want.Stays)
	} else {
		got = w.possible()
		c.same("the number of moves", len(w.pass("", 1).Moves), int(want.Count.value))
	}
	c.same("the number of VMs that may move", len(got), len(want.Possible))
	for _, one := range want.Possible {
		c.sameSet("where "+one.VM+" may go", slices.Collect(maps.Keys(got[one.VM])), one.Destinations)
	}
}

// evacuated plans drains of a host with many seeds: where each VM may go, and which cannot.
func (w *world) evacuated(host string) (targets map[string]map[string]bool, stays []string) {
	w.Helper()
	targets = map[string]map[string]bool{}
	for seed := range uint64(passesANode * len(w.Nodes)) {
		fleet, err := estate.FleetOf(estate.Indexed(&w.State), w.view(), model.DefaultCluster, nil)
		w.must(err)
		fleet.Seed = func() uint64 { return seed }
		for _, move := range balance.Drain(fleet, host, 1, 0).Plan.Moves {
			switch {
			case move.Stays && !slices.Contains(stays, move.VM):
				stays = append(stays, move.VM)
			case !move.Stays && targets[move.VM] == nil:
				targets[move.VM] = map[string]bool{move.Target: true}
			case !move.Stays:
				targets[move.VM][move.Target] = true
			}
		}
	}
	return targets, stays
}

// moves are records of a leader in which some VMs are on their way.
type moves struct {
	estate.Facts
	state *estate.State
	live  []operation.Operation
}

func (m moves) VM(id string) (model.VM, bool) { return m.state.VM(id) }

func (m moves) VMsOn(string) []model.VM                       { return nil }
func (m moves) Operation(string) (operation.Operation, bool)  { return operation.Operation{}, false }
func (m moves) LiveOperations() []operation.Operation         { return m.live }
func (m moves) OperationsOfPlan(string) []operation.Operation { return nil }

// leaderPass makes the leader's pass over the world while VMs are on their way, and counts the moves that it begins.
func (w *world) leaderPass(where affinity.Where, migrating map[string]string) int {
	w.Helper()
	records := moves{Facts: estate.Indexed(&w.State), state: &w.State}
	for vm, target := range migrating {
		records.live = append(records.live, operation.Operation{
			ID: vm, Kind: operation.Migrate, Phase: operation.Copying, VM: vm, VMName: vm, Source: where[vm], Target: target,
		})
	}
	fleet, err := estate.FleetOf(records, w.view(), model.DefaultCluster, nil)
	w.must(err)
	fleet.Seed = func() uint64 { return 1 }
	passed := moving.Pass(fleet, records)
	w.same("whether the cluster is left alone because of the moves", passed.Occupied, true)
	if passed.Plan == nil {
		return 0
	}
	return len(passed.Plan.Moves)
}

// runSoftVMs looks whether soft rules of VMs are enforced on VMs that run. The answers are sentences; ours is the later one.
func runSoftVMs(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Hosts   []string
		Groups  []groupCase
		Running running
	}](c, given)
	want := decode[struct {
		Seed  string `json:"seed_era"`
		Later string `json:"engine_since_2018_11"`
	}](c, expect)
	got := grouped(c, g.Hosts, g.Groups, g.Running, nil).possible()
	const together = "one VM moves to the other (it improves the rule)"
	if want.Later != together {
		c.Fatalf("there is no answer %q", want.Later)
	}
	where := g.Running.where()
	c.same("the number of VMs that may move", len(got), len(where)) // the one that uses less CPU
	for vm, targets := range got {
		for other, node := range where {
			if other != vm {
				c.sameSet("where "+vm+" may go", slices.Collect(maps.Keys(targets)), []string{node})
			}
		}
	}
}

// runManager makes one pass for each cluster. Each candidate is in a group of its own that keeps it off the node where it is;
// one whose migration does not start has no node that it fits on.
func runManager(c *checker, given, expect json.RawMessage) {
	g := decode[struct {
		Candidates map[string][]string
		Succeeds   optional[bool]  `json:"migrate_succeeds"`
		Result     map[string]bool `json:"migrate_result"`
	}](c, given)
	want := decode[struct {
		Migrated  []string
		Attempted optional[[]string]
	}](c, expect)
	var migrated, attempted []string
	for _, name := range slices.Sorted(maps.Keys(g.Candidates)) {
		var groups []groupCase
		where := running{}
		source := "source"
		for _, vm := range g.Candidates[name] {
			where[vm] = &source
			groups = append(groups, groupCase{
				Name: vm, VMs: []string{vm}, VMsRule: ruleCase{Rule: "disabled"}, Hosts: []string{source},
				HostsRule: ruleCase{Rule: "negative", Enforcing: true}, Priority: 1,
			})
		}
		w := grouped(c, []string{source, "target"}, groups, where, nil)
		for i := range w.VMs {
			succeeds, given := g.Result[w.VMs[i].ID]
			if given && !succeeds || !given && g.Succeeds.given && !g.Succeeds.value {
				w.VMs[i].RanSize = model.Size{Memory: 2 * whole, VCPUs: 1} // what runs has to fit, not what its record says
			}
		}
		found := w.pass("", 1)
		for _, move := range found.Moves {
			migrated = append(migrated, move.VM)
		}
		for _, breach := range found.Breaches {
			if !strings.Contains(found.Unrepaired[breach.Group], "one move at a time") { // it was its turn
				attempted = append(attempted, breach.VMs...)
			}
		}
	}
	c.sameSet("who is moved", migrated, want.Migrated)
	if want.Attempted.given {
		c.sameSet("who is tried", attempted, want.Attempted.value)
	}
}

// runDefaults looks at what holds when nobody sets anything.
func runDefaults(c *checker, given, expect json.RawMessage) {
	decode[struct{}](c, given)
	want := decode[struct {
		Interval optional[float64] `json:"interval_minutes"`
		Delay    optional[float64] `json:"initial_delay_minutes"`
		Most     optional[count]   `json:"max_migrations_per_cluster_per_pass"`
	}](c, expect)
	if want.Interval.given {
		c.near("minutes between passes", balance.Interval.Minutes(), want.Interval.value)
	}
	if want.Delay.given {
		c.near("minutes before the first pass", balance.Interval.Minutes(), want.Delay.value)
	}
	if want.Most.given {
		node := "h1"
		where := running{"a": &node, "b": &node, "c": &node, "d": &node}
		apart := groupCase{
			Name: "apart", VMs: []string{"a", "b", "c", "d"}, VMsRule: ruleCase{Rule: "negative", Enforcing: true},
			HostsRule: ruleCase{Rule: "disabled"}, Priority: 1,
		}
		w := grouped(c, []string{"h1", "h2", "h3", "h4"}, []groupCase{apart}, where, nil)
		c.same("moves in one pass", len(w.pass("", 1).Moves), int(want.Most.value))
	}
}
