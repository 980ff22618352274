package affinity

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
)

// Room is what Lint knows of a node.
type Room struct {
	Node string // ID
	// Takes tells whether the node may run VMs at all: not in maintenance.
	Takes bool
}

// Kinds of conflict that Lint finds.
const (
	NoNodeLeft   = "no-node-left"  // hard rules leave a VM no node that takes VMs
	TooFewNodes  = "too-few-nodes" // there are fewer nodes than VMs that should be apart on them
	CannotHold   = "cannot-hold"   // each hard rule could hold, but not all at once
	NoSpareNode  = "no-spare-node" // the rules can hold now, but not after one node fails
	SingleNode   = "single-node"   // hard rules bind VMs to one node
	NamesNothing = "names-no-node" // a rule for nodes names no node: it does nothing
)

// Lint compares the rules with the nodes that there are: "six VMs apart on five nodes: cannot hold", "holds now, not after
// one node fails". VMs that do not run count, because they may be started. Sizes do not count: what fits is for placement. Of
// the soft rules it checks only those that keep VMs apart. Without a node that takes VMs it says nothing.
//
// All of these are warnings, because what cannot hold today holds when a node comes back. Conflicts finds what rules
// contradict on any nodes.
//
// Rules that keep VMs apart and share VMs are a graph to be coloured, which can take very long. The search stops at a bound.
// What Lint reports is true; past the bound it may miss something.
func Lint(groups []model.Group, rooms []Room, names Names) []Conflict {
	l := newLint(groups, rooms, names)
	l.empty()
	if len(l.nodes) > 0 {
		l.bound()
		l.capacity()
	}
	return inOrder(l.found)
}

// lint collects what the rules ask for and the cluster does not have.
type lint struct {
	*contradictions
	nodes   []string // that take VMs, ascending
	units   []unit   // of all VMs in groups with enabled rules, by their first VM
	byVM    map[string]int
	choices []set // by unit: the nodes that take VMs and where hard rules for nodes let it be
}

// unit is VMs that hard rules keep together, most often one.
type unit struct {
	vms []string
	on  []int // hard rules for nodes about it: indexes of groups
	off []int
}

func newLint(groups []model.Group, rooms []Room, names Names) *lint {
	l := &lint{contradictions: newContradictions(groups, names), byVM: map[string]int{}}
	for _, room := range rooms {
		if room.Takes {
			l.nodes = append(l.nodes, room.Node)
		}
	}
	l.nodes = unique(l.nodes)
	var vms []string
	for i := range l.groups {
		vms = append(vms, l.groups[i].VMs...)
	}
	byRoot := map[string]int{}
	for _, vm := range unique(vms) {
		root := l.ties.root(vm)
		at, known := byRoot[root]
		if !known {
			at = len(l.units)
			byRoot[root] = at
			l.units = append(l.units, unit{})
		}
		u := &l.units[at]
		u.vms, l.byVM[vm] = append(u.vms, vm), at
		if w := l.wanted[vm]; w != nil {
			u.on, u.off = append(u.on, l.hard(w.on)...), append(u.off, l.hard(w.off)...)
		}
	}
	for i := range l.units {
		u := &l.units[i]
		slices.Sort(u.on)
		slices.Sort(u.off)
		u.on, u.off = slices.Compact(u.on), slices.Compact(u.off)
		l.choices = append(l.choices, l.choicesOf(u))
	}
	return l
}

// choicesOf is the nodes that take VMs and where the hard rules for nodes let a unit be.
func (l *lint) choicesOf(u *unit) set {
	may := newSet(len(l.nodes))
	for i, node := range l.nodes {
		on := func(at int) bool { return has(l.groups[at].Nodes, node) }
		off := func(at int) bool { return !on(at) }
		if !slices.ContainsFunc(u.on, off) && !slices.ContainsFunc(u.off, on) {
			may.add(i)
		}
	}
	return may
}

// nodesOf is the IDs of a set of nodes.
func (l *lint) nodesOf(s set) []string {
	var ids []string
	for i := range s.all() {
		ids = append(ids, l.nodes[i])
	}
	return ids
}

// empty finds rules that are enabled and do nothing.
func (l *lint) empty() {
	for i := range l.groups {
		g := &l.groups[i]
		if !g.NodesRule.Enabled() || len(g.Nodes) > 0 || len(g.VMs) == 0 {
			continue
		}
		next := "add nodes to the group, or disable its rule of nodes"
		if len(g.NodeLabels) > 0 {
			next = "give a node the label " + series(g.NodeLabels, "or") + ", or disable the group's rule of nodes"
		}
		l.found = append(l.found, Conflict{
			Kind: NamesNothing, Severity: Warning, Groups: []string{g.Name}, VMs: slices.Clone(g.VMs),
			Text: "group " + g.Name + " has a rule of nodes and no node: the rule does nothing", Next: next,
		})
	}
}

// bound finds units that hard rules for nodes leave no node, or only one. VMs that the same rules are about share a conflict.
func (l *lint) bound() {
	alike := map[string]*unit{}
	var keys []string
	for i := range l.units {
		u := &l.units[i]
		if len(u.on)+len(u.off) == 0 || l.contradictory(u) {
			continue
		}
		key := fmt.Sprint(u.on, u.off)
		if len(u.vms) > 1 {
			key = u.vms[0] // what keeps them together is part of the message
		}
		if alike[key] == nil {
			alike[key] = &unit{on: u.on, off: u.off}
			keys = append(keys, key)
		}
		alike[key].vms = append(alike[key].vms, u.vms...)
	}
	for _, key := range keys {
		u := alike[key]
		switch left := l.choicesOf(u); {
		case left.size() == 0:
			l.noNode(u)
		case left.size() == 1 && len(l.nodes) > 1:
			l.oneNode(u, l.nodesOf(left))
		}
	}
}

// contradictory tells whether Conflicts already reports that one of the VMs has no node.
func (l *lint) contradictory(u *unit) bool {
	return slices.ContainsFunc(u.vms, func(vm string) bool {
		w := l.wanted[vm]
		return w != nil && l.impossible(w)
	})
}

// because is what hard rules say about a unit: those that keep it together, and those about nodes.
func (l *lint) because(u *unit) (groups, tying []int, parts []string) {
	groups = append(slices.Clone(u.on), u.off...)
	slices.Sort(groups)
	if l.ties.root(u.vms[len(u.vms)-1]) == u.vms[0] && len(u.vms) > 1 {
		for i := range l.groups {
			rule := l.groups[i].VMsRule
			if rule.Hard() && rule.Polarity == model.Positive && len(common(u.vms, l.groups[i].VMs)) > 1 {
				tying = append(tying, i)
			}
		}
	}
	return groups, tying, append(l.sayOfNodes(groups, u.vms), l.sayOfVMs(tying, u.vms)...)
}

func (l *lint) noNode(u *unit) {
	groups, tying, parts := l.because(u)
	tail, next := "no node is left", "give the VMs other nodes, or make one of the rules soft"
	switch left := l.left(u.on, u.off); {
	case len(u.on) == 0:
		tail = "these are all the nodes that take VMs"
	case len(left) == 1:
		tail, next = l.names(left[0])+" takes no VMs now", "make the node take VMs, or add another one to the group"
	case len(left) > 1:
		tail, next = "none of "+l.names.list(left)+" takes VMs now", "make one of the nodes take VMs, or add another one to the group"
	}
	l.add(Conflict{
		Kind: NoNodeLeft, Severity: Warning, Ties: l.named(tying), VMs: slices.Clone(u.vms), Nodes: l.all(groups), Next: next,
	}, groups, parts, tail)
}

func (l *lint) oneNode(u *unit, nodes []string) {
	groups, tying, parts := l.because(u)
	node := l.names(nodes[0])
	l.add(Conflict{
		Kind: SingleNode, Severity: Warning, Ties: l.named(tying), VMs: slices.Clone(u.vms), Nodes: nodes,
		Next: "give the VMs one more node, or make the rule soft",
	}, groups, parts, fmt.Sprintf("only %s may have them, so it cannot be emptied, and they are down when it fails", node))
}
