package rule

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/view"
)

// Membership is one affinity group that has a say in where a VM goes, as its decision sees it.
type Membership struct {
	Group string `json:"group"` // ID
	Name  string `json:"name"`
	// Placing is how many of the VMs that are placed are members: the VM itself and those that come along. 0: none is, and
	// hard rules tie them to one that is.
	Placing int `json:"placing,omitempty"`

	// VMs and Nodes are the group's rules, disabled where they say nothing here: of nodes for a group without any (a rule
	// that no node could keep is taken for none, as oVirt's enforcement does) and for one that the VM is tied to.
	VMs      model.Rule `json:"vms"`
	Nodes    model.Rule `json:"nodes"`
	Priority float64    `json:"priority"`

	On     []int32 `json:"on,omitempty"`     // the group's nodes as indexes into the columns, ascending
	Listed string  `json:"listed,omitempty"` // the group's nodes in words
	// Shares are the IDs of the other groups that are merged with this one because they share VMs: all have hard positive rules.
	Shares []string `json:"shares,omitempty"`
	// Others are where the other members are: neither the VM nor any that comes along is among them.
	Others []view.Presence `json:"others,omitempty"`
}

// Together tells whether the group leaves no choice but the nodes of its other members.
func (m *Membership) Together() bool { return m.VMs.Hard() && m.VMs.Polarity == model.Positive }

// Apart tells whether the group leaves no node to more than one of its members.
func (m *Membership) Apart() bool { return m.VMs.Hard() && m.VMs.Polarity == model.Negative }

// On a node of the group, or off it: which of them a rule of nodes forbids.
func (m *Membership) forbids(node int) bool {
	return m.Nodes.Enabled() && m.Has(node) == (m.Nodes.Polarity == model.Negative)
}

// Has tells whether a node is one of the group's.
func (m *Membership) Has(node int) bool {
	_, found := slices.BinarySearch(m.On, int32(node))
	return found
}

// At is what is known of the other members on a node; false if none is there.
func (m *Membership) At(node int) (*view.Presence, bool) {
	at, found := slices.BinarySearchFunc(m.Others, int32(node), func(p view.Presence, node int32) int { return cmp.Compare(p.Node, node) })
	if !found {
		return nil, false
	}
	return &m.Others[at], true
}

// staying is how many other members will be somewhere once what moves has moved.
func (m *Membership) staying() int {
	sum := 0
	for i := range m.Others {
		sum += int(m.Others[i].Stay())
	}
	return sum
}

// Belong finds the groups that have a say in where the VM goes with all that come along with it: those that one of them is a
// member of, and those that hard positive rules tie them to, which are the groups that share a VM with one of these, and so
// on (groups are merged, oVirt). Groups that say nothing are left out.
func (in *Input) Belong(vm string, labels []string, along []string) {
	in.Groups = nil
	if in.Columns.Groups != nil {
		in.Groups = in.memberships(append([]string{vm}, along...), labels)
	}
	in.Settle()
}

func (in *Input) memberships(placed, labels []string) []Membership {
	groups := in.Columns.Groups.All()
	placing := in.placing(placed, labels)
	if placing == nil {
		return nil
	}
	tied := tiedTo(groups, placing)
	var found []Membership
	for i := range groups {
		if placing[i] == 0 && !tied[i] {
			continue
		}
		one := Membership{
			Group: groups[i].ID, Name: groups[i].Name, Placing: placing[i], Priority: groups[i].Priority,
			VMs: groups[i].VMsRule, Nodes: model.Rule{Polarity: model.Disabled},
		}
		if one.VMs.Enabled() {
			one.Others = in.Columns.Presences(i, placed)
		} else {
			one.VMs = model.Rule{Polarity: model.Disabled}
		}
		if groups[i].NodesRule.Enabled() && placing[i] > 0 && len(groups[i].Nodes) > 0 {
			one.Nodes = groups[i].NodesRule
			in.list(&one, groups[i].Nodes)
		}
		if one.Together() {
			one.Shares = sharing(groups, i)
		}
		if len(one.Others) > 0 || one.Nodes.Enabled() || one.Apart() && one.Placing > 1 || len(one.Shares) > 0 {
			found = append(found, one)
		}
	}
	return found
}

// placing counts for each group the placed VMs that are members, the first of which carries the labels; nil if none is in any.
func (in *Input) placing(placed, labels []string) []int {
	groups := in.Columns.Groups
	var placing []int
	for i := range groups.All() {
		for j, vm := range placed {
			carried := labels
			if j > 0 {
				carried = nil
			}
			if !groups.Has(i, vm, carried) {
				continue
			}
			if placing == nil {
				placing = make([]int, len(groups.All()))
			}
			placing[i]++
		}
	}
	return placing
}

// merges tells whether a group is merged with others of the kind that share a VM with it.
func merges(group *model.Group) bool {
	return group.VMsRule.Hard() && group.VMsRule.Polarity == model.Positive
}

// sharing are the IDs of the groups that are merged with one directly.
func sharing(groups []model.Group, one int) []string {
	var ids []string
	for i := range groups {
		if i != one && merges(&groups[i]) && share(groups[i].VMs, groups[one].VMs) {
			ids = append(ids, groups[i].ID)
		}
	}
	return ids
}

// tiedTo marks the groups with a hard positive rule that share a VM with one that a placed VM is a member of, or with one
// that is marked.
func tiedTo(groups []model.Group, placing []int) []bool {
	tied := make([]bool, len(groups))
	var reached []int
	for i := range groups {
		if placing[i] > 0 && merges(&groups[i]) {
			reached = append(reached, i)
		}
	}
	for ; len(reached) > 0; reached = reached[1:] {
		for i := range groups {
			if placing[i] == 0 && !tied[i] && merges(&groups[i]) && share(groups[i].VMs, groups[reached[0]].VMs) {
				tied[i], reached = true, append(reached, i)
			}
		}
	}
	return tied
}

// share tells whether two ascending lists have something in common.
func share(a, b []string) bool {
	for len(a) > 0 && len(b) > 0 {
		switch cmp.Compare(a[0], b[0]) {
		case 0:
			return true
		case -1:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return false
}

// mostListed is how many of a group's nodes are named.
const mostListed = 4

func (in *Input) list(one *Membership, nodes []string) {
	var names []string
	for _, id := range nodes {
		if node, found := in.Columns.Index(id); found {
			one.On = append(one.On, int32(node))
			names = append(names, in.Name(node))
		} else {
			names = append(names, id)
		}
	}
	slices.Sort(names)
	one.Listed = Enumerate(names, len(names), mostListed)
}

// Enumerate puts the first few of some names in words: "a", "a and b", "a, b and 2 more". Total is how many there are.
func Enumerate(names []string, total, most int) string {
	if shown := min(len(names), most); shown < total {
		names = append(slices.Clone(names[:shown]), strconv.Itoa(total-shown)+" more")
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// Bounds are what the hard rules of all groups come to. Sets are ascending indexes into the columns.
type Bounds struct {
	Within, Together []int32 // the only nodes that rules of nodes, and of VMs, leave; mean something only if they are given
	HasWithin, Ties  bool
	Outside, Apart   []int32 // nodes that they do not leave
	Split            bool    // two of the VMs that are placed have to be apart: no node is left
}

// SoftRule is one rule that only weighs: how much breaking it adds to a node's weight, and where it is kept or broken.
type SoftRule struct {
	Membership *Membership
	Step       float64
}

// Settle works out of the groups what they leave of nodes and what they weigh. It is called when Groups has changed.
func (in *Input) Settle() {
	in.Bounds, in.OfNodes, in.OfVMs = Bounds{}, in.OfNodes[:0], in.OfVMs[:0]
	in.Fixed, in.Members = 0, 0
	if len(in.Groups) == 0 {
		return
	}
	b := &in.Bounds
	for i := range in.Groups {
		one := &in.Groups[i]
		b.bound(one)
		if one.Nodes.Soft() {
			in.OfNodes = append(in.OfNodes, SoftRule{Membership: one})
		}
		if one.VMs.Enabled() && len(one.Others) > 0 {
			in.OfVMs = append(in.OfVMs, SoftRule{Membership: one})
			if one.VMs.Polarity == model.Positive {
				for _, p := range one.Others {
					in.Fixed, in.Members = in.Fixed+int(p.Fixed), in.Members+int(p.Stay())
				}
			}
		}
	}
	stepUp(in.OfNodes)
	stepUp(in.OfVMs)
}

func (b *Bounds) bound(one *Membership) {
	if one.Nodes.Hard() && one.Nodes.Polarity == model.Positive {
		if b.HasWithin { // several positive rules leave what is in all of them
			b.Within = slices.DeleteFunc(b.Within, func(node int32) bool { return !one.Has(int(node)) })
		} else {
			b.Within, b.HasWithin = slices.Clone(one.On), true
		}
	}
	if one.Nodes.Hard() && one.Nodes.Polarity == model.Negative {
		b.Outside = union(b.Outside, one.On)
	}
	if one.Together() && one.staying() > 0 {
		b.Ties = true
		b.Together = union(b.Together, nodesOf(one.Others, (*view.Presence).Stay))
	}
	if one.Apart() {
		b.Split = b.Split || one.Placing > 1
		b.Apart = union(b.Apart, nodesOf(one.Others, func(p *view.Presence) int32 { return p.Count }))
	}
}

// nodesOf are the nodes on which some of the members count.
func nodesOf(others []view.Presence, count func(*view.Presence) int32) []int32 {
	var nodes []int32
	for i := range others {
		if p := &others[i]; p.Node >= 0 && count(p) > 0 {
			nodes = append(nodes, p.Node)
		}
	}
	return nodes
}

func union(a, b []int32) []int32 {
	both := slices.Concat(a, b)
	slices.Sort(both)
	return slices.Compact(both)
}

// mostSteps bounds the sum of all steps: what is made of it stays a whole number that a float64 holds exactly.
const mostSteps = 1 << 26

// stepUp gives each rule its step so that the sums over broken rules are in the order of the descending lists of their
// priorities, compared element by element (oVirt): a rule's step is more than all steps of lower priorities together. With one
// priority for all that is their number, as the first design had it. Where there are more priorities than fit, the lowest
// weigh nothing.
func stepUp(rules []SoftRule) {
	slices.SortStableFunc(rules, func(a, b SoftRule) int { return cmp.Compare(b.Membership.Priority, a.Membership.Priority) })
	levels, product := 0, 1
	for first := 0; first < len(rules); {
		next := nextLevel(rules, first)
		if product *= next - first + 1; product > mostSteps {
			break
		}
		levels, first = next, next
	}
	step := 1.0
	for last := levels; last > 0; {
		first := last - 1
		for first > 0 && rules[first-1].Membership.Priority == rules[first].Membership.Priority {
			first--
		}
		for i := first; i < last; i++ {
			rules[i].Step = step
		}
		step *= float64(last - first + 1)
		last = first
	}
}

// nextLevel is the first rule after one of another priority.
func nextLevel(rules []SoftRule, first int) int {
	next := first + 1
	for next < len(rules) && rules[next].Membership.Priority == rules[first].Membership.Priority {
		next++
	}
	return next
}

// BreaksOfNodes tells whether the VM would break the group's rule of nodes on a node.
func (r *SoftRule) BreaksOfNodes(node int) bool { return r.Membership.forbids(node) }

// BreaksOfVMs tells whether the VM would break the group's rule of VMs on a node: to be without any other member where the
// rule is positive, and with one where it is negative.
func (r *SoftRule) BreaksOfVMs(node int) bool {
	p, there := r.Membership.At(node)
	if r.Membership.VMs.Polarity == model.Negative {
		return there
	}
	return r.Membership.staying() > 0 && (!there || p.Stay() == 0)
}

// SelectGroups are the memberships for some of the nodes, given by index in ascending order. What other members are on nodes
// that are left out is kept as one presence elsewhere.
func SelectGroups(groups []Membership, nodes []int, name func(node int) string) []Membership {
	index := func(node int32) int32 {
		if at, found := slices.BinarySearch(nodes, int(node)); found {
			return int32(at)
		}
		return view.Elsewhere
	}
	selected := slices.Clone(groups)
	for i := range selected {
		one := &selected[i]
		on, others := one.On, one.Others
		one.On, one.Others = nil, nil
		for _, node := range on {
			if at := index(node); at >= 0 {
				one.On = append(one.On, at)
			}
		}
		for _, p := range others {
			from := p.Node
			if from >= 0 {
				p.Node = index(from)
			}
			if p.Node < 0 && from >= 0 {
				p.Name = name(int(from))
			}
			if last := len(one.Others) - 1; p.Node < 0 && last >= 0 && one.Others[0].Node < 0 {
				away := &one.Others[0]
				away.Count, away.Leaving, away.Fixed = away.Count+p.Count, away.Leaving+p.Leaving, away.Fixed+p.Fixed
			} else if p.Node < 0 {
				one.Others = slices.Insert(one.Others, 0, p)
			} else {
				one.Others = append(one.Others, p)
			}
		}
	}
	return selected
}

// WithoutGroups are the memberships as if some groups, given by ID, were not there: without these, and without those that
// only these tie the VM to.
func WithoutGroups(groups []Membership, ids ...string) []Membership {
	left := slices.DeleteFunc(slices.Clone(groups), func(m Membership) bool { return slices.Contains(ids, m.Group) })
	var reached []string
	for i := range left {
		if left[i].Placing > 0 && left[i].Together() {
			reached = append(reached, left[i].Group)
		}
	}
	for next := 0; next < len(reached); next++ {
		for i := range left {
			if slices.Contains(left[i].Shares, reached[next]) && !slices.Contains(reached, left[i].Group) {
				reached = append(reached, left[i].Group)
			}
		}
	}
	return slices.DeleteFunc(left, func(m Membership) bool { return m.Placing == 0 && !slices.Contains(reached, m.Group) })
}
