package view

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	"berth/coordinator/model"
)

// Groups are the affinity groups of one cluster as its columns know them: who is a member, and where the members are. They
// are read where they are needed, so a VM in no group pays for none. Asking is safe from several goroutines; charging the
// columns is not.
type Groups struct {
	all     []model.Group                       // members listed, by name
	locate  func(vm string) (whereabouts, bool) // as the view has it; nil: it has none
	planned map[string]whereabouts              // of VMs that were charged or discharged
	joined  map[string][]int                    // the groups of VMs that were charged and stand on no list
}

// whereabouts are a VM and the nodes that it counts on.
type whereabouts struct {
	name  string
	fixed bool
	at    []place // by node
}

// place is one node that a VM counts on.
type place struct {
	node   string // ID
	coming bool   // it is on its way there: it has a reservation, or a migration is filling it
}

// Presence is how many members of a group count on one node. A VM counts where it is and where it is on its way to: while it
// moves, rules that keep VMs apart see it on both nodes, and those that keep VMs together on its target alone.
type Presence struct {
	Node    int32    `json:"node"`              // index into the columns; negative: on nodes that are not among them
	Name    string   `json:"name,omitempty"`    // of one of these: the one that VMs is about
	Count   int32    `json:"count"`             // members
	Leaving int32    `json:"leaving,omitempty"` // of them, those on their way to another node
	Fixed   int32    `json:"fixed,omitempty"`   // of the others, those that nobody may move
	VMs     []string `json:"vms,omitempty"`     // names of the first few of the members, ascending
}

// Elsewhere is the Node of a presence on nodes that are not among the columns.
const Elsewhere = -1

// maxNamed is how many members a presence names.
const maxNamed = 3

// Stay is how many of the members will be there once all moves that are under way are over.
func (p *Presence) Stay() int32 { return p.Count - p.Leaving }

// NewGroups are groups without a view, members expanded. VMs are where columns are charged with them.
func NewGroups(groups []model.Group) *Groups { return &Groups{all: groups} }

// All are the groups with their members expanded, in the order of their names. Nobody changes them.
func (g *Groups) All() []model.Group {
	if g == nil {
		return nil
	}
	return g.all
}

// Has tells whether a VM is a member of a group, which is given by index, by its ID or one of its labels.
func (g *Groups) Has(group int, vm string, labels []string) bool {
	one := &g.all[group]
	return one.ListsVM(vm) || one.LabelsVM(labels) || slices.Contains(g.joined[vm], group)
}

// Presences are where the members of a group are, some VMs left out, by node; those on nodes that are not among the columns
// come first, as one.
func (c *Columns) Presences(group int, but []string) []Presence {
	g := c.Groups
	var found []Presence
	members := g.all[group].VMs
	for vm, groups := range g.joined {
		if slices.Contains(groups, group) {
			members = append(slices.Clip(members), vm)
		}
	}
	for _, vm := range members {
		if slices.Contains(but, vm) {
			continue
		}
		where, known := g.where(vm)
		for i := range where.at {
			if known {
				found = c.present(found, &where, &where.at[i])
			}
		}
	}
	slices.SortFunc(found, func(a, b Presence) int { return cmp.Compare(a.Node, b.Node) })
	for i := range found {
		slices.Sort(found[i].VMs)
		found[i].VMs = found[i].VMs[:min(len(found[i].VMs), maxNamed)]
	}
	return found
}

// present adds one VM on one node.
func (c *Columns) present(found []Presence, where *whereabouts, on *place) []Presence {
	node, name := Elsewhere, on.node
	if at, among := c.Index(on.node); among {
		node, name = at, ""
	}
	at := slices.IndexFunc(found, func(p Presence) bool { return p.Node == int32(node) })
	if at < 0 {
		at, found = len(found), append(found, Presence{Node: int32(node), Name: name})
	}
	p := &found[at]
	p.Count++
	if p.Name == name { // of what is elsewhere only those on the one node are named
		p.VMs = append(p.VMs, where.name)
	}
	switch {
	case where.leaves(on):
		p.Leaving++
	case where.fixed:
		p.Fixed++
	}
	return found
}

// leaves tells whether the VM is on its way from there to another node.
func (w *whereabouts) leaves(from *place) bool {
	return !from.coming && slices.ContainsFunc(w.at, func(p place) bool { return p.coming })
}

func (g *Groups) where(vm string) (whereabouts, bool) {
	if planned, is := g.planned[vm]; is {
		return planned, true
	}
	if g.locate == nil {
		return whereabouts{}, false
	}
	return g.locate(vm)
}

// charge puts a VM on a node in planned state. One that is there already is where it was before as well.
func (g *Groups) charge(one *Allocation, node string) {
	if g == nil || one.VM == "" {
		return
	}
	where, known := g.where(one.VM)
	if !known {
		where = whereabouts{name: cmp.Or(one.Name, one.VM), fixed: one.Fixed}
		for i := range g.all {
			if !g.all[i].ListsVM(one.VM) && g.all[i].LabelsVM(one.Labels) {
				g.join(one.VM, i)
			}
		}
	}
	others := slices.DeleteFunc(slices.Clone(where.at), func(p place) bool { return p.node == node })
	where.at = append(others, place{node: node, coming: len(others) > 0})
	slices.SortFunc(where.at, comparePlaces)
	g.plan(one.VM, where)
}

// discharge takes a VM off a node in planned state.
func (g *Groups) discharge(vm, node string) {
	if g == nil {
		return
	}
	if where, known := g.where(vm); known {
		where.at = slices.DeleteFunc(slices.Clone(where.at), func(p place) bool { return p.node == node })
		g.plan(vm, where)
	}
}

func (g *Groups) plan(vm string, where whereabouts) {
	if g.planned == nil {
		g.planned = make(map[string]whereabouts)
	}
	g.planned[vm] = where
}

func (g *Groups) join(vm string, group int) {
	if g.joined == nil {
		g.joined = make(map[string][]int)
	}
	if !slices.Contains(g.joined[vm], group) {
		g.joined[vm] = append(slices.Clip(g.joined[vm]), group)
	}
}

// Liken makes a VM a member of all groups that another one is a member of.
func (g *Groups) Liken(vm, other string, labels []string) {
	for i := range g.All() {
		if g.Has(i, other, labels) {
			g.join(vm, i)
		}
	}
}

// clone copies the groups so that charging the copy changes nothing for others.
func (g *Groups) clone() *Groups {
	if g == nil {
		return nil
	}
	copied := &Groups{all: g.all, locate: g.locate}
	for vm, where := range g.planned {
		copied.plan(vm, where)
	}
	for vm, groups := range g.joined {
		for _, group := range groups {
			copied.join(vm, group)
		}
	}
	return copied
}

func comparePlaces(a, b place) int { return cmp.Compare(a.node, b.node) }

// roster is what a view knows of its groups and of where VMs are.
type roster struct {
	declared map[string][]model.Group // by cluster name; in the order of their names
	vms      VMs
	coming   []coming // besides what the records say, in a what-if

	mu       sync.Mutex
	expanded map[string][]model.Group
}

// coming is a VM that is on its way to a node.
type coming struct {
	vm   *model.VM
	node string
}

// declaredOf reads the groups' records.
func declaredOf(records *Records) map[string][]model.Group {
	if len(records.Groups) == 0 {
		return nil
	}
	names := map[string]string{"": model.DefaultCluster}
	for i := range records.Clusters {
		names[records.Clusters[i].ID] = records.Clusters[i].Name
	}
	declared := make(map[string][]model.Group)
	for i := range records.Groups {
		record := &records.Groups[i]
		name := cmp.Or(names[record.Links[model.LinkCluster]], model.DefaultCluster)
		declared[name] = append(declared[name], model.GroupOf(record, name))
	}
	for _, groups := range declared {
		slices.SortFunc(groups, func(a, b model.Group) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	}
	return declared
}

// with is the roster with a VM that is on its way to a node, and nowhere yet.
func (r *roster) with(vm *model.VM, node string) *roster {
	return &roster{declared: r.declared, vms: r.vms, coming: append(slices.Clip(r.coming), coming{vm: vm, node: node})}
}

// all are the VMs, those that a what-if brings included.
func (r *roster) all() iter.Seq[*model.VM] {
	return func(yield func(*model.VM) bool) {
		for vm := range r.vms.All() {
			if !slices.ContainsFunc(r.coming, func(c coming) bool { return c.vm.ID == vm.ID }) && !yield(vm) {
				return
			}
		}
		for _, one := range r.coming {
			if !yield(one.vm) {
				return
			}
		}
	}
}

// locate finds the nodes that a VM counts on: the one that holds it, and those that it is on its way to.
func (v *View) locate(vm string) (whereabouts, bool) {
	if v.base != nil {
		where, known := v.base.locate(vm)
		if vm == v.gone.VM {
			where.at = slices.DeleteFunc(where.at, func(p place) bool { return p.node == v.reduced.Node.ID })
		}
		return where, known
	}
	record := v.roster.vms.ByID(vm)
	var where whereabouts
	for _, one := range v.roster.coming {
		if one.vm.ID == vm {
			record = one.vm
			where.at = append(where.at, place{node: one.node, coming: true})
		}
	}
	if record == nil {
		return whereabouts{}, false
	}
	where.name, where.fixed = cmp.Or(record.Name, vm), record.Migration == model.MigrateNever
	if record.Holder != "" {
		where.at = append(where.at, place{node: record.Holder})
	}
	for _, reserved := range v.held.of[vm] {
		where.comes(record, reserved.Node)
	}
	for _, node := range v.strays.on(vm) {
		if at := v.Node(node); at != nil {
			if domain := at.Facts.Domain(vm); domain != nil && domain.State.Lives() {
				where.comes(record, node)
			}
		}
	}
	slices.SortFunc(where.at, comparePlaces)
	return where, true
}

// comes notes that a VM counts on a node that does not hold it.
func (w *whereabouts) comes(vm *model.VM, node string) {
	if vm.Holder != node && !slices.ContainsFunc(w.at, func(p place) bool { return p.node == node }) {
		w.at = append(w.at, place{node: node, coming: true})
	}
}

// Groups are the affinity groups of a cluster, by name, with the members that the view knows: nodes of the cluster, VMs that
// count on one of them, and of VMs that are nowhere those that are listed. What carries a label counts among the members.
// They are expanded once a view and shared: nobody changes them.
func (v *View) Groups(clusterName string) []model.Group {
	if v.base != nil {
		return v.base.Groups(clusterName)
	}
	r := v.roster
	if len(r.declared[clusterName]) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	expanded, done := r.expanded[clusterName]
	if !done {
		expanded = v.expand(clusterName)
		if r.expanded == nil {
			r.expanded = make(map[string][]model.Group)
		}
		r.expanded[clusterName] = expanded
	}
	return expanded
}

func (v *View) expand(clusterName string) []model.Group {
	within := func(node string) bool {
		found := v.Node(node)
		return found != nil && cmp.Or(found.Node.Cluster, model.DefaultCluster) == clusterName
	}
	var vms, nodes carriers
	vms.there = func(id string) bool {
		where, known := v.locate(id)
		return known && (len(where.at) == 0 || slices.ContainsFunc(where.at, func(p place) bool { return within(p.node) }))
	}
	nodes.there = within
	groups := v.roster.declared[clusterName]
	if slices.ContainsFunc(groups, func(g model.Group) bool { return len(g.VMLabels) > 0 }) {
		for vm := range v.roster.all() {
			if len(vm.Labels) == 0 {
				continue
			}
			if where, _ := v.locate(vm.ID); slices.ContainsFunc(where.at, func(p place) bool { return within(p.node) }) {
				vms.carry(vm.ID, vm.Labels)
			}
		}
	}
	for _, node := range v.Nodes.All() {
		if len(node.Node.Labels) > 0 && within(node.Node.ID) {
			nodes.carry(node.Node.ID, node.Node.Labels)
		}
	}
	return expand(groups, &vms, &nodes)
}

// groupsIn are the groups of a cluster for its columns; nil if it has none.
func (v *View) groupsIn(clusterName string) *Groups {
	if all := v.Groups(clusterName); len(all) > 0 {
		return &Groups{all: all, locate: v.locate}
	}
	return nil
}
