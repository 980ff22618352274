package affinity

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
)

// capacity finds VMs that must be apart and that the nodes cannot hold, or could not hold without one of the nodes.
func (l *lint) capacity() {
	for _, part := range l.parts() {
		l.part(part)
	}
	for i := range l.groups {
		if g := &l.groups[i]; g.VMsRule.Polarity == model.Negative && !g.VMsRule.Enforcing {
			p := l.partOf([]int{i})
			if result, _, units := p.place(p.choices); result == tooMany {
				l.tooFew(p, i, units)
			}
		}
	}
}

// part is units that rules keep apart and that are connected by sharing such rules.
type part struct {
	*graph
	groups  []int // whose rules keep them apart: one for each clique
	units   []int // by position
	choices []set // by position
}

// parts is the parts that hard rules make.
func (l *lint) parts() []*part {
	joined := ties{} // of groups that share units, by the first VM of these units
	var apart []int
	first := map[int][]string{}
	for i := range l.groups {
		g := &l.groups[i]
		if !g.VMsRule.Hard() || g.VMsRule.Polarity != model.Negative || len(g.VMs) < 2 {
			continue
		}
		apart = append(apart, i)
		for _, vm := range g.VMs {
			first[i] = append(first[i], l.ties.root(vm))
		}
		joined.tie(first[i])
	}
	byRoot := map[string]int{}
	var groups [][]int
	for _, i := range apart {
		root := joined.root(first[i][0])
		at, known := byRoot[root]
		if !known {
			at = len(groups)
			byRoot[root] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], i)
	}
	parts := make([]*part, 0, len(groups))
	for _, one := range groups {
		parts = append(parts, l.partOf(one))
	}
	return parts
}

// partOf is the part that some groups keep apart.
func (l *lint) partOf(groups []int) *part {
	p := &part{groups: groups}
	at := map[int]int{}
	var cliques [][]int
	for _, i := range groups {
		var clique []int
		for _, vm := range l.groups[i].VMs {
			unit := l.byVM[vm]
			if _, known := at[unit]; !known {
				at[unit] = len(p.units)
				p.units, p.choices = append(p.units, unit), append(p.choices, l.choices[unit])
			}
			clique = append(clique, at[unit])
		}
		slices.Sort(clique)
		cliques = append(cliques, slices.Compact(clique))
	}
	p.graph = newGraph(len(p.units), cliques)
	return p
}

// part checks one part of what hard rules keep apart.
func (l *lint) part(p *part) {
	switch result, clique, units := p.place(p.choices); result {
	case tooMany:
		l.tooFew(p, p.groups[clique], units)
	case clashing:
		l.clash(p, units, CannotHold, nil, "each of this could hold by itself, but not all of it at once")
	case fits:
		l.spare(p)
	}
}

// spare checks what is left of a part when one node fails. It leaves out units that can be on no other node: they fail with
// it, and another warning says so.
func (l *lint) spare(p *part) {
	core := p.kernel(p.choices, 1)
	if len(core) == 0 || len(l.nodes) < 2 {
		return
	}
	type failure struct {
		result outcome
		clique int
		units  []int
	}
	same := alike(core, p.choices)
	tried := map[int]failure{} // by the first of nodes that are equal
	breaking := newSet(len(l.nodes))
	var worst *failure
	for node := range l.nodes {
		like, matters := same[node]
		if !matters {
			continue
		}
		found, known := tried[like]
		if !known {
			found.result, found.clique, found.units = p.place(lacking(p.choices, node))
			tried[like] = found
		}
		if found.result != tooMany && found.result != clashing {
			continue
		}
		breaking.add(node)
		if worst == nil {
			worst = &found
		}
	}
	if worst == nil {
		return
	}
	nodes := l.nodesOf(breaking)
	tail := "after " + series(l.names.words(nodes), "or") + " fails"
	if len(nodes) == len(l.nodes) && len(nodes) > 1 {
		tail = "after one node fails"
	}
	if worst.result == tooMany {
		vms := l.vmsOf(p, worst.units, p.groups[worst.clique])
		tail = fmt.Sprintf("%s apart on %s hold now, not %s", count(len(vms), "VM"), count(len(l.reach(p, worst.units)), "node"), tail)
		l.apart(p, p.groups[worst.clique], worst.units, Conflict{Kind: NoSpareNode, VMs: vms, Nodes: nodes}, tail)
		return
	}
	l.clash(p, worst.units, NoSpareNode, nodes, "all of it holds now, not "+tail)
}

// lacking is the choices without one node.
func lacking(choices []set, node int) []set {
	rest := make([]set, len(choices))
	for i := range choices {
		rest[i] = slices.Clone(choices[i])
		rest[i].remove(node)
	}
	return rest
}

// vmsOf is the members of a group in some of the units.
func (l *lint) vmsOf(p *part, units []int, group int) []string {
	var vms []string
	for _, at := range units {
		vms = append(vms, common(l.units[p.units[at]].vms, l.groups[group].VMs)...)
	}
	return unique(vms)
}

// reach is the nodes that any of the units may be on.
func (l *lint) reach(p *part, units []int) []string {
	all := newSet(len(l.nodes))
	for _, at := range units {
		for node := range p.choices[at].all() {
			all.add(node)
		}
	}
	return l.nodesOf(all)
}

// tooFew says that a group has more members than nodes.
func (l *lint) tooFew(p *part, group int, units []int) {
	vms, nodes := l.vmsOf(p, units, group), l.reach(p, units)
	l.apart(p, group, units, Conflict{Kind: TooFewNodes, VMs: vms, Nodes: nodes},
		fmt.Sprintf("%s apart on %s cannot hold", count(len(vms), "VM"), count(len(nodes), "node")))
}

// apart says which members of one group are to be apart, and which rules for nodes limit them.
func (l *lint) apart(p *part, group int, units []int, c Conflict, tail string) {
	narrowing, vms := l.narrowing(p, units)
	c.Severity = Warning
	c.Next = "let more nodes take VMs, or take VMs out of group " + l.groups[group].Name
	if len(narrowing) > 0 {
		c.Next = "give the VMs more nodes, or take some of them out of group " + l.groups[group].Name
	}
	g := &l.groups[group]
	says := l.names.saysOfVMs(g, c.VMs)
	rest := slices.DeleteFunc(slices.Clone(narrowing), func(at int) bool { return at == group })
	if len(rest) < len(narrowing) { // both rules are the same group's
		if says += " and "; g.VMsRule.Enforcing != g.NodesRule.Enforcing {
			says += verb(g.NodesRule) + " them "
		}
		says += l.names.place(g)
	}
	l.add(c, append(rest, group), append([]string{says}, l.sayOfNodes(rest, vms)...), tail)
}

// narrowing is the groups that limit some of the units to some of the nodes, and all VMs of the units.
func (l *lint) narrowing(p *part, units []int) (groups []int, vms []string) {
	for _, at := range units {
		u := &l.units[p.units[at]]
		vms, groups = append(vms, u.vms...), append(groups, u.on...)
		left := l.left(u.on, nil)
		for _, off := range u.off {
			if len(u.on) == 0 || len(common(left, l.groups[off].Nodes)) > 0 {
				groups = append(groups, off)
			}
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), unique(vms)
}

// clash says that several groups contradict each other.
func (l *lint) clash(p *part, units []int, kind string, nodes []string, tail string) {
	narrowing, vms := l.narrowing(p, units)
	var groups []int
	var parts []string
	for _, i := range p.groups {
		if about := common(vms, l.groups[i].VMs); len(about) > 1 {
			groups, parts = append(groups, i), append(parts, l.names.saysOfVMs(&l.groups[i], about))
		}
	}
	if nodes == nil {
		nodes = l.reach(p, units)
	}
	l.add(Conflict{
		Kind: kind, Severity: Warning, VMs: vms, Nodes: nodes,
		Next: "let more nodes take VMs, take VMs out of a group, or make one of the rules soft",
	}, append(groups, narrowing...), append(parts, l.sayOfNodes(narrowing, vms)...), tail)
}
