package affinity

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/model"
)

// Severity of a conflict.
type Severity string

// A group with an error may not be saved; one with a warning may.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Conflict is a contradiction between groups (SEMANTICS.md, "Contradictions between groups"), or what the cluster cannot hold.
type Conflict struct {
	Kind     string // a stable word, one of those below
	Severity Severity
	Groups   []string // names, ascending: the groups whose rules conflict
	Ties     []string // names, ascending: where the others conflict about nodes, the groups whose VM rules bring their VMs together
	VMs      []string // IDs, ascending
	Nodes    []string // IDs, ascending
	Text     string   // one sentence with the names
	Next     string   // what to do about it
}

// Kinds of conflict that Conflicts finds.
const (
	RequiredAndForbidden = "nodes-required-and-forbidden" // hard node rules leave a VM no node
	WantedAndAvoided     = "nodes-wanted-and-avoided"     // node rules disagree about a node, and one is soft or another node is left
	TogetherAndApart     = "together-and-apart"           // VM rules tie VMs together and keep them apart
	TogetherAgainstNodes = "together-against-nodes"       // VMs tied together, and node rules that part them
	ApartAgainstNodes    = "apart-against-nodes"          // VMs kept apart, and node rules that leave them too few nodes
	DifferentNodes       = "different-nodes"              // positive node rules of one VM name different nodes
)

// kinds is the order in which conflicts of one severity are listed.
var kinds = []string{
	RequiredAndForbidden, WantedAndAvoided, TogetherAndApart, TogetherAgainstNodes, ApartAgainstNodes, DifferentNodes,
	NoNodeLeft, TooFewNodes, CannotHold, NoSpareNode, SingleNode, NamesNothing,
}

// Conflicts are the contradictions among the groups of one cluster, errors first. They do not depend on the nodes of the
// cluster, nor on whether the VMs run. An error is what no placement can satisfy: hard rules for nodes that leave a VM no
// node, and VMs that hard rules want both together and apart.
//
// Two points differ from oVirt. A node that one hard rule demands and another one forbids is an error only if no other node
// is left. VMs that should be apart and share a set of nodes do not conflict as long as there are enough nodes: that is what
// a rack is for.
func Conflicts(groups []model.Group, names Names) []Conflict {
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

// contradictions collects conflicts.
type contradictions struct {
	groups []model.Group // by name
	names  Names
	ties   ties
	wanted map[string]*wanted // by VM, of the VMs that rules for nodes are about
	found  []Conflict
}

// wanted is what rules for nodes say about a VM: indexes of groups, ascending.
type wanted struct{ on, off []int }

func newContradictions(groups []model.Group, names Names) *contradictions {
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
			if w := c.wanted[vm]; rule.Polarity == model.Positive {
				w.on = append(w.on, i)
			} else {
				w.off = append(w.off, i)
			}
		}
	}
	return c
}

// add sorts the lists of a conflict and keeps it.
func (c *contradictions) add(found Conflict, groups []int, parts []string, tail string) {
	found.Groups = c.named(groups)
	slices.Sort(found.VMs)
	slices.Sort(found.Nodes)
	found.Text = sentence(parts, tail)
	c.found = append(c.found, found)
}

// sentence joins what the groups say, a few of them at most, and what follows.
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

// hard is those of the groups whose rule is hard.
func (c *contradictions) hard(groups []int) []int {
	return slices.DeleteFunc(slices.Clone(groups), func(at int) bool { return !c.groups[at].NodesRule.Enforcing })
}

// all is the nodes that any of the groups names.
func (c *contradictions) all(groups []int) []string {
	var nodes []string
	for _, at := range groups {
		nodes = append(nodes, c.groups[at].Nodes...)
	}
	return unique(nodes)
}

// left is the nodes that every group in the list for names and no group in the list against.
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

// aboutNodes finds contradictions among rules for nodes alone. VMs that the same groups are about share a conflict.
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

// impossible tells whether hard rules demand a node for a VM, others forbid it, and no other node is left.
func (c *contradictions) impossible(w *wanted) bool {
	on, off := c.hard(w.on), c.hard(w.off)
	return len(c.left(on, off)) == 0 && len(common(c.all(on), c.all(off))) > 0
}

// clashing is the groups of both sides that disagree about some node, and these nodes.
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

// sayOfNodes is what each of the groups says about its members among the VMs.
func (c *contradictions) sayOfNodes(groups []int, vms []string) []string {
	parts := make([]string, 0, len(groups))
	for _, at := range groups {
		g := &c.groups[at]
		parts = append(parts, c.names.saysOfNodes(g, common(vms, g.VMs)))
	}
	return parts
}

// different finds positive rules that name different nodes for the same VMs.
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

// together is VMs that rules want together.
type together struct {
	vms    []string // ascending
	groups []int    // whose rules do that
	hard   bool
}

// togethers is all such sets: those that hard rules make, and one for each soft rule with what hard rules add to its VMs.
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
		if g.VMsRule.Polarity != model.Positive || len(g.VMs) < 2 {
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
	for i := range all { // only now are the hard rules about a soft rule's VMs known
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

// tying is those of the groups that connect two of the VMs directly; if there is none, all groups, because they connect them
// over other VMs.
func (c *contradictions) tying(groups []int, vms []string) []int {
	direct := slices.DeleteFunc(slices.Clone(groups), func(at int) bool { return len(common(vms, c.groups[at].VMs)) < 2 })
	if len(direct) > 0 {
		return direct
	}
	return groups
}

// sayOfVMs is what each of the groups says about its VMs, or about those of its VMs that matter here.
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
			if g.VMsRule.Polarity != model.Negative || len(both) < 2 {
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

// tiedHard tells whether hard rules already keep all of the VMs together.
func (c *contradictions) tiedHard(vms []string) bool {
	return !slices.ContainsFunc(vms, func(vm string) bool { return c.ties.root(vm) != c.ties.root(vms[0]) })
}

// together finds rules for nodes that separate VMs that should be together. Either one VM should be on a node that another
// should be off, or the VMs should be on sets of nodes with no node in common.
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

// members is those of the VMs that are in any of the groups.
func (c *contradictions) members(groups []int, vms []string) []string {
	var in []string
	for _, at := range groups {
		in = append(in, common(vms, c.groups[at].VMs)...)
	}
	return unique(in)
}

// apart finds VMs that should be apart and have too few nodes for that.
func (c *contradictions) apart() {
	units := map[string][]string{}
	for _, set := range c.ties.sets() {
		units[set[0]] = set
	}
	for i := range c.groups {
		if g := &c.groups[i]; g.VMsRule.Polarity == model.Negative {
			c.scarceNodes(g, units)
		}
	}
}

// scarceNodes finds members of one group that should be apart and have too few nodes. A unit is VMs that hard rules keep together;
// its first VM stands for it.
func (c *contradictions) scarceNodes(g *model.Group, units map[string][]string) {
	var vms []string // one of each unit
	var choices [][]string
	var because [][]int // groups
	known := map[string]bool{}
	for _, vm := range g.VMs {
		root := c.ties.root(vm)
		if known[root] {
			continue // together and apart: another conflict says so
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
			continue // free to be anywhere, or nowhere, and another conflict says so
		}
		off = slices.DeleteFunc(off, func(at int) bool { return len(common(c.groups[at].Nodes, c.all(on))) == 0 })
		vms, choices, because = append(vms, vm), append(choices, left), append(because, append(on, off...))
	}
	without, nodes := scarce(choices)
	if len(without) == 0 {
		return
	}
	var short []string
	var groups []int
	for _, at := range without {
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

// unitsOf is the VMs with all VMs that hard rules keep together with them.
func (c *contradictions) unitsOf(vms []string, units map[string][]string) []string {
	all := slices.Clone(vms)
	for _, vm := range vms {
		all = append(all, units[c.ties.root(vm)]...)
	}
	return unique(all)
}
