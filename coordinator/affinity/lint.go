package affinity

import (
	"fmt"
	"slices"

	"berth/coordinator/cluster"
)

// Room is what Lint knows of a node.
type Room struct {
	Node string // ID
	// Takes tells whether the node may run VMs at all: not in maintenance.
	Takes bool
}

// Kinds of conflict: what Lint finds.
const (
	NoNodeLeft   = "no-node-left"  // no node that takes VMs keeps the hard rules of a VM
	TooFewNodes  = "too-few-nodes" // more VMs apart than nodes that they may be on
	CannotHold   = "cannot-hold"   // hard rules that could hold each by itself, but not all at once
	NoSpareNode  = "no-spare-node" // the rules can hold now, and not after one node fails
	SingleNode   = "single-node"   // hard rules bind VMs to one node
	NamesNothing = "names-no-node" // a rule of nodes without a node: it does nothing
)

// Lint compares the rules with what there is: "six VMs apart on five nodes: cannot hold", "holds now, not after one node
// fails". VMs that do not run count: they may be started. How large VMs and nodes are does not: what fits is for placement.
// Of soft rules only that VMs are apart is looked at. With no node that takes VMs there is nothing to say.
//
// All of it are warnings: what cannot hold today holds when a node comes back. What the rules contradict whatever nodes
// there are is for Conflicts.
//
// Whether rules that keep VMs apart hold all at once where they share VMs is a colouring of a graph, which may take for ever
// in bad cases; it is tried up to a bound. What is told is true; past the bound something may be left untold.
func Lint(groups []cluster.Group, rooms []Room, names Names) []Conflict {
	l := newLint(groups, rooms, names)
	l.empty()
	if len(l.nodes) > 0 {
		l.bound()
		l.capacity()
	}
	return inOrder(l.found)
}

// lint gathers what rules ask too much of a cluster.
type lint struct {
	*contradictions
	nodes   []string // that take VMs, ascending
	units   []unit   // of all VMs in groups with enabled rules, by their first
	byVM    map[string]int
	choices []set // by unit: the nodes that take VMs where hard rules of nodes let it be
}

// unit are VMs that hard rules tie together, most often one.
type unit struct {
	vms []string
	on  []int // hard rules of nodes about it: indexes of groups
	off []int
}

func newLint(groups []cluster.Group, rooms []Room, names Names) *lint {
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

// choicesOf are the nodes that take VMs where the hard rules of nodes let a unit be.
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

// nodesOf are the IDs of a set of nodes.
func (l *lint) nodesOf(s set) []string {
	var ids []string
	for i := range s.all() {
		ids = append(ids, l.nodes[i])
	}
	return ids
}

// empty finds rules that somebody switched on and that do nothing.
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

// bound finds units that hard rules of nodes leave no node, or only one. VMs that the same rules are about share a conflict.
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
			key = u.vms[0] // what ties them is told as well
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

// contradictory tells whether Conflicts says already that one of the VMs has no node.
func (l *lint) contradictory(u *unit) bool {
	return slices.ContainsFunc(u.vms, func(vm string) bool {
		w := l.wanted[vm]
		return w != nil && l.impossible(w)
	})
}

// because is what hard rules say of a unit: those that tie it together, and those about nodes.
func (l *lint) because(u *unit) (groups, tying []int, parts []string) {
	groups = append(slices.Clone(u.on), u.off...)
	slices.Sort(groups)
	if l.ties.root(u.vms[len(u.vms)-1]) == u.vms[0] && len(u.vms) > 1 {
		for i := range l.groups {
			rule := l.groups[i].VMsRule
			if rule.Hard() && rule.Polarity == cluster.Positive && len(common(u.vms, l.groups[i].VMs)) > 1 {
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
