package affinity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/cluster"
)

// Severity of a conflict.
type Severity string

// A group with an error may not be saved; one with a warning may.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Conflict is a contradiction between groups (placement-semantics 4.5), or what the cluster cannot hold.
type Conflict struct {
	Kind     string // a stable word, one of those below
	Severity Severity
	Groups   []string // names, ascending: those whose rules clash
	Ties     []string // names, ascending: groups whose VM rules make the others clash, where these are about nodes
	VMs      []string // IDs, ascending
	Nodes    []string // IDs, ascending
	Text     string   // one sentence with the names
	Next     string   // what to do about it
}

// Kinds of conflict: what Conflicts finds.
const (
	RequiredAndForbidden = "nodes-required-and-forbidden" // hard node rules leave a VM no node
	WantedAndAvoided     = "nodes-wanted-and-avoided"     // node rules disagree about a node, and one is soft or another node is left
	TogetherAndApart     = "together-and-apart"           // VM rules tie VMs together and keep them apart
	TogetherAgainstNodes = "together-against-nodes"       // VMs tied together, and node rules that part them
	ApartAgainstNodes    = "apart-against-nodes"          // VMs kept apart, and node rules that leave them too few nodes
	DifferentNodes       = "different-nodes"              // positive node rules of one VM name different nodes
)

// kinds is the order in which conflicts of one severity are told.
var kinds = []string{
	RequiredAndForbidden, WantedAndAvoided, TogetherAndApart, TogetherAgainstNodes, ApartAgainstNodes, DifferentNodes,
	NoNodeLeft, TooFewNodes, CannotHold, NoSpareNode, SingleNode, NamesNothing,
}

// Conflicts are the contradictions among the groups of one cluster, errors first, whatever the cluster has and whether the
// VMs run. Errors are what no placement of the VMs keeps: hard rules of nodes that leave a VM none, and VMs that hard rules
// tie together and keep apart.
//
// In two points this departs from oVirt. A node that one hard rule demands and another forbids is an error only if no other
// one is left. VMs apart that share their nodes are no conflict as long as these are enough for them: that is what a rack
// is for.
func Conflicts(groups []cluster.Group, names Names) []Conflict {
	c := newContradictions(groups, names)
	c.aboutNodes()
	c.aboutVMs()
	c.together()
	c.apart()
	return inOrder(c.found)
}

func inOrder(conflicts []Conflict) []Conflict {
	slices.SortStableFunc(conflicts, func(a, b Conflict) int {
		return cmp.Or(
			cmp.Compare(a.Severity, b.Severity), // "error" comes before "warning"
			cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
			slices.Compare(a.Groups, b.Groups), slices.Compare(a.Ties, b.Ties), slices.Compare(a.VMs, b.VMs),
		)
	})
	return conflicts
}

// contradictions gathers conflicts.
type contradictions struct {
	groups []cluster.Group // by name
	names  Names
	ties   ties
	wanted map[string]*wanted // by VM, of those that rules of nodes are about
	found  []Conflict
}

// wanted is what rules of nodes say of a VM: indexes of groups, ascending.
type wanted struct{ on, off []int }

func newContradictions(groups []cluster.Group, names Names) *contradictions {
	c := &contradictions{groups: byName(groups), names: names, wanted: map[string]*wanted{}}
	c.ties = tiesOf(c.groups)
	for i := range c.groups {
		g := &c.groups[i]
		rule := nodesRule(g)
		if !rule.Enabled() {
			continue
		}
		for _, vm := range g.VMs {
			if c.wanted[vm] == nil {
				c.wanted[vm] = &wanted{}
			}
			if w := c.wanted[vm]; rule.Polarity == cluster.Positive {
				w.on = append(w.on, i)
			} else {
				w.off = append(w.off, i)
			}
		}
	}
	return c
}

// add completes a conflict with its lists sorted.
func (c *contradictions) add(found Conflict, groups []int, parts []string, tail string) {
	found.Groups = c.named(groups)
	slices.Sort(found.VMs)
	slices.Sort(found.Nodes)
	found.Text = sentence(parts, tail)
	c.found = append(c.found, found)
}

// sentence joins what groups say, at most some of them, and what comes of it.
func sentence(parts []string, tail string) string {
	if len(parts) > mostNamed {
		parts = append(slices.Clone(parts[:mostNamed-1]), count(len(parts)-mostNamed+1, "more rule")+" say the like")
	}
	if n := len(parts); n > 1 {
		parts = []string{strings.Join(parts[:n-1], ", ") + ", and " + parts[n-1]}
	}
	return strings.Join(parts, "") + ": " + tail
}

func (c *contradictions) named(groups []int) []string {
	names := make([]string, 0, len(groups))
	for _, at := range groups {
		names = append(names, c.groups[at].Name)
	}
	return unique(names)
}

// hard are those of the groups whose rule of nodes is.
func (c *contradictions) hard(groups []int) []int {
	return slices.DeleteFunc(slices.Clone(groups), func(at int) bool { return !c.groups[at].NodesRule.Enforcing })
}

// all are the nodes that any of the groups names.
func (c *contradictions) all(groups []int) []string {
	var nodes []string
	for _, at := range groups {
		nodes = append(nodes, c.groups[at].Nodes...)
	}
	return unique(nodes)
}

// left are the nodes that each of the groups that are for names and none of those against.
func (c *contradictions) left(on, off []int) []string {
	if len(on) == 0 {
		return nil
	}
	nodes := c.groups[on[0]].Nodes
	for _, at := range on[1:] {
		nodes = common(nodes, c.groups[at].Nodes)
	}
	return without(nodes, c.all(off))
}

// aboutNodes finds what rules of nodes alone contradict. VMs that the same groups are about share a conflict.
func (c *contradictions) aboutNodes() {
	alike := map[string][]string{}
	for _, vm := range slices.Sorted(maps.Keys(c.wanted)) {
		w := c.wanted[vm]
		key := fmt.Sprint(w.on, w.off)
		alike[key] = append(alike[key], vm)
	}
	for _, key := range slices.Sorted(maps.Keys(alike)) {
		vms := alike[key]
		w := c.wanted[vms[0]]
		c.onAndOff(vms, w)
		c.different(vms, w.on)
	}
}

// onAndOff finds nodes that VMs should be both on and off.
func (c *contradictions) onAndOff(vms []string, w *wanted) {
	hardOn, hardOff := c.hard(w.on), c.hard(w.off)
	impossible := c.impossible(w)
	if impossible {
		on, off, nodes := c.clashing(hardOn, hardOff, func(int, int) bool { return true })
		c.add(Conflict{
			Kind: RequiredAndForbidden, Severity: Error, VMs: slices.Clone(vms), Nodes: nodes,
			Next: fmt.Sprintf("take %s out of one of the groups, or make the rule of nodes of one of them soft", c.names.list(vms)),
		}, slices.Concat(on, off), c.sayOfNodes(slices.Concat(hardOn, hardOff), vms), "no node is left")
	}
	on, off, nodes := c.clashing(w.on, w.off, func(a, b int) bool {
		return !impossible || !c.groups[a].NodesRule.Enforcing || !c.groups[b].NodesRule.Enforcing
	})
	if len(nodes) == 0 {
		return
	}
	tail := "both cannot hold"
	if left := c.left(w.on, w.off); len(left) > 0 {
		tail = "only " + c.names.list(left) + " " + is(len(left)) + " left"
	}
	c.add(Conflict{
		Kind: WantedAndAvoided, Severity: Warning, VMs: slices.Clone(vms), Nodes: nodes,
		Next: fmt.Sprintf("take %s, or %s, out of one of the groups", c.names.list(vms), c.names.list(nodes)),
	}, slices.Concat(on, off), c.sayOfNodes(slices.Concat(on, off), vms), tail)
}

// impossible tells whether hard rules demand a node of a VM that others forbid, and leave it no other.
func (c *contradictions) impossible(w *wanted) bool {
	on, off := c.hard(w.on), c.hard(w.off)
	return len(c.left(on, off)) == 0 && len(common(c.all(on), c.all(off))) > 0
}

// clashing are the groups for and against of which two are about one node, and these nodes.
func (c *contradictions) clashing(on, off []int, counts func(on, off int) bool) (clashOn, clashOff []int, nodes []string) {
	for _, a := range on {
		for _, b := range off {
			both := common(c.groups[a].Nodes, c.groups[b].Nodes)
			if len(both) == 0 || !counts(a, b) {
				continue
			}
			clashOn, clashOff, nodes = append(clashOn, a), append(clashOff, b), append(nodes, both...)
		}
	}
	distinct := func(groups []int) []int {
		slices.Sort(groups)
		return slices.Compact(groups)
	}
	return distinct(clashOn), distinct(clashOff), unique(nodes)
}

// sayOfNodes is what each of the groups says of those of the VMs that are in it.
func (c *contradictions) sayOfNodes(groups []int, vms []string) []string {
	parts := make([]string, 0, len(groups))
	for _, at := range groups {
		g := &c.groups[at]
		parts = append(parts, c.names.saysOfNodes(g, common(vms, g.VMs)))
	}
	return parts
}

// different finds positive rules of the same VMs that name different nodes.
func (c *contradictions) different(vms []string, on []int) {
	if len(on) < 2 {
		return
	}
	left := c.left(on, nil)
	apart := without(c.all(on), left)
	if len(apart) == 0 {
		return
	}
	tail := "no node is in all of them"
	if len(left) > 0 {
		tail = "only " + c.names.list(left) + " " + is(len(left)) + " in all of them"
	}
	c.add(Conflict{
		Kind: DifferentNodes, Severity: Warning, VMs: slices.Clone(vms), Nodes: apart,
		Next: "give the groups the same nodes, or keep the VMs in one of them",
	}, on, c.sayOfNodes(on, vms), tail)
}

// together are VMs that rules tie to each other.
type together struct {
	vms    []string // ascending
	groups []int    // that tie them
	hard   bool
}

// togethers are all of them: the sets that hard rules make, and each soft rule with what hard ones tie to its VMs.
func (c *contradictions) togethers() []together {
	bound := map[string][]string{}
	var all []together
	at := map[string]int{}
	for _, set := range c.ties.sets() {
		at[set[0]], bound[set[0]] = len(all), set
		all = append(all, together{vms: set, hard: true})
	}
	for i := range c.groups {
		g := &c.groups[i]
		if g.VMsRule.Polarity != cluster.Positive || len(g.VMs) < 2 {
			continue
		}
		if g.VMsRule.Hard() {
			set := &all[at[c.ties.root(g.VMs[0])]]
			set.groups = append(set.groups, i)
			continue
		}
		soft := together{vms: slices.Clone(g.VMs), groups: []int{i}}
		for _, vm := range g.VMs {
			if set := bound[c.ties.root(vm)]; set != nil {
				soft.vms = append(soft.vms, set...)
			}
		}
		soft.vms = unique(soft.vms)
		all = append(all, soft)
	}
	for i := range all { // the hard ties of a soft rule's VMs are known only now
		if set := &all[i]; !set.hard {
			for _, root := range slices.Sorted(maps.Keys(at)) {
				if has(set.vms, root) {
					set.groups = append(set.groups, all[at[root]].groups...)
				}
			}
		}
	}
	return all
}

// tying are those of the groups that tie two of the VMs themselves, or else all: then they do it by way of others.
func (c *contradictions) tying(groups []int, vms []string) []int {
	direct := slices.DeleteFunc(slices.Clone(groups), func(at int) bool { return len(common(vms, c.groups[at].VMs)) < 2 })
	if len(direct) > 0 {
		return direct
	}
	return groups
}

// sayOfVMs is what each of the groups says of its VMs, or of those of them that matter if it has more.
func (c *contradictions) sayOfVMs(groups []int, vms []string) []string {
	parts := make([]string, 0, len(groups))
	for _, at := range groups {
		g := &c.groups[at]
		about := common(vms, g.VMs)
		if len(about) < 2 {
			about = g.VMs
		}
		parts = append(parts, c.names.saysOfVMs(g, about))
	}
	return parts
}

// aboutVMs finds VMs that should be both together and apart.
func (c *contradictions) aboutVMs() {
	for _, set := range c.togethers() {
		for i := range c.groups {
			g := &c.groups[i]
			both := common(set.vms, g.VMs)
			if g.VMsRule.Polarity != cluster.Negative || len(both) < 2 {
				continue
			}
			if !set.hard && c.tiedHard(both) {
				continue // the hard rules' set has it
			}
			severity := Warning
			next := "take " + c.names.list(both) + " out of one of the groups"
			if set.hard && g.VMsRule.Hard() {
				severity = Error
				next += ", or make one of the rules soft"
			}
			tying := c.tying(set.groups, both)
			c.add(Conflict{Kind: TogetherAndApart, Severity: severity, VMs: both, Next: next},
				append(slices.Clone(tying), i), append(c.sayOfVMs(tying, both), c.names.saysOfVMs(g, both)), "both cannot hold")
		}
	}
}

// tiedHard tells whether hard rules already tie all of the VMs together.
func (c *contradictions) tiedHard(vms []string) bool {
	return !slices.ContainsFunc(vms, func(vm string) bool { return c.ties.root(vm) != c.ties.root(vms[0]) })
}

// together finds rules of nodes that part VMs that should be together: what one of them should be on, another should be off,
// or they should be on nodes of which none is the same.
func (c *contradictions) together() {
	for _, set := range c.togethers() {
		var on, off []int
		for _, vm := range set.vms {
			if w := c.wanted[vm]; w != nil {
				on, off = append(on, w.on...), append(off, w.off...)
			}
		}
		var groups []int
		var nodes []string
		parts := func(a, b int, clash []string) {
			if len(clash) > 0 && !c.sharesVM(a, b, set.vms) { // what one VM has of both is a contradiction by itself
				groups, nodes = append(groups, a, b), append(nodes, clash...)
			}
		}
		slices.Sort(on)
		slices.Sort(off)
		on, off = slices.Compact(on), slices.Compact(off)
		for i, a := range on {
			for _, b := range off {
				parts(a, b, common(c.groups[a].Nodes, c.groups[b].Nodes))
			}
			for _, b := range on[i+1:] {
				if len(common(c.groups[a].Nodes, c.groups[b].Nodes)) == 0 {
					parts(a, b, c.all([]int{a, b}))
				}
			}
		}
		if len(groups) == 0 {
			continue
		}
		slices.Sort(groups)
		groups = slices.Compact(groups)
		vms := c.members(groups, set.vms)
		tying := c.tying(set.groups, vms)
		tail := "all of it cannot hold"
		if left := c.left(on, off); len(left) > 0 {
			tail = "only " + c.names.list(left) + " " + is(len(left)) + " left for them"
		}
		c.add(Conflict{
			Kind: TogetherAgainstNodes, Severity: Warning, Ties: c.named(tying), VMs: vms, Nodes: unique(nodes),
			Next: "give the VMs the same nodes, or take one of them out of a group",
		}, groups, append(c.sayOfNodes(groups, vms), c.sayOfVMs(tying, vms)...), tail)
	}
}

func (c *contradictions) sharesVM(a, b int, vms []string) bool {
	return len(common(common(vms, c.groups[a].VMs), c.groups[b].VMs)) > 0
}

// members are those of the VMs that are in any of the groups.
func (c *contradictions) members(groups []int, vms []string) []string {
	var in []string
	for _, at := range groups {
		in = append(in, common(vms, c.groups[at].VMs)...)
	}
	return unique(in)
}

// apart finds VMs that should be apart and have to share too few nodes.
func (c *contradictions) apart() {
	units := map[string][]string{}
	for _, set := range c.ties.sets() {
		units[set[0]] = set
	}
	for i := range c.groups {
		if g := &c.groups[i]; g.VMsRule.Polarity == cluster.Negative {
			c.crowd(g, units)
		}
	}
}

// crowd finds members of one group that should be apart and have too few nodes. Units are what hard rules tie together, by
// their first VM.
func (c *contradictions) crowd(g *cluster.Group, units map[string][]string) {
	var vms []string // one of each unit
	var choices [][]string
	var because [][]int // groups
	known := map[string]bool{}
	for _, vm := range g.VMs {
		root := c.ties.root(vm)
		if known[root] {
			continue // together and apart: told elsewhere
		}
		known[root] = true
		var on, off []int
		for _, member := range c.unitsOf([]string{vm}, units) {
			if w := c.wanted[member]; w != nil {
				on, off = append(on, w.on...), append(off, w.off...)
			}
		}
		left := c.left(on, off)
		if len(left) == 0 {
			continue // free to be anywhere, or nowhere, which is told elsewhere
		}
		off = slices.DeleteFunc(off, func(at int) bool { return len(common(c.groups[at].Nodes, c.all(on))) == 0 })
		vms, choices, because = append(vms, vm), append(choices, left), append(because, append(on, off...))
	}
	crowd, nodes := crowded(choices)
	if len(crowd) == 0 {
		return
	}
	var short []string
	var groups []int
	for _, at := range crowd {
		short, groups = append(short, vms[at]), append(groups, because[at]...)
	}
	slices.Sort(groups)
	groups = slices.Compact(groups)
	c.add(Conflict{
		Kind: ApartAgainstNodes, Severity: Warning, Ties: []string{g.Name}, VMs: short, Nodes: nodes,
		Next: "give the VMs more nodes, or take some of them out of group " + g.Name,
	}, groups, append(c.sayOfNodes(groups, c.unitsOf(short, units)), c.names.saysOfVMs(g, short)),
		fmt.Sprintf("%s for %s cannot hold", count(len(nodes), "node"), count(len(short), "VM")))
}

// unitsOf are the VMs with all that hard rules tie to them.
func (c *contradictions) unitsOf(vms []string, units map[string][]string) []string {
	all := slices.Clone(vms)
	for _, vm := range vms {
		all = append(all, units[c.ties.root(vm)]...)
	}
	return unique(all)
}
