package view

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/view/column"
)

// Changes are what may differ between the moments of two views.
type Changes struct {
	Nodes map[string]model.NodeFacts // of the nodes whose record or facts may differ, by ID, and of those that have come
	Gone  []string                   // IDs of nodes that are gone
	VMs   []string                   // IDs of VMs whose records may differ
	// Groups and Storage tell that those records are given anew, with the clusters: groups; pools, pods, disks and images.
	Groups, Storage bool
}

// Later is the view of a later moment: the one that would be made anew, for the price of what has changed. Records have the
// reservations, and of the rest what has changed. Clusters are the same; v is no what-if.
func (v *View) Later(at time.Time, index uint64, records Records, vms VMs, changed Changes) *View {
	next := &View{
		At: at, Index: index, clusters: v.clusters,
		held: reservedOf(records.Reservations), strays: v.strays.copy(), words: v.words.Copy(),
		roster: &roster{declared: v.roster.declared, vms: vms},
	}
	touched, moved := v.touchedBy(next, &changed)
	if changed.Groups {
		next.roster.declared = declaredOf(&records)
	}
	given := make(map[string]*model.Node, len(records.Nodes))
	for i := range records.Nodes {
		given[records.Nodes[i].ID] = &records.Nodes[i]
	}
	fresh, among, modelled := make(map[int]*NodeView, len(touched)), make(map[string][]string), false
	come, regrouped := membersOf(next, v, given, &changed)
	moved, modelled = moved || len(regrouped) > 0, len(regrouped) > 0
	for id := range touched {
		at, found := v.search(id)
		if !found || slices.Contains(changed.Gone, id) {
			continue // it has come, or a VM names a node that is gone
		}
		old := v.Nodes.At(at)
		node, facts := old.Node, old.Facts
		if record := given[id]; record != nil {
			node = *record
		}
		if told, is := changed.Nodes[id]; is {
			facts = told
		}
		is := next.account(node, facts)
		fresh[at] = is
		reword(next, id, old, is)
		among[node.ClusterName()] = append(among[node.ClusterName()], id)
		if !slices.Equal(old.strays, is.strays) {
			next.strays.replace(id, old.strays, is.strays)
			moved = true
		}
		moved = moved || !slices.Equal(old.Node.Labels, node.Labels) || domainsDiffer(is.strays, &old.Facts, &facts)
		modelled = modelled || !sameModels(old, is)
	}
	if next.Nodes = v.Nodes.with(fresh); len(come)+len(changed.Gone) > 0 {
		next.Nodes = next.Nodes.joined(come, changed.Gone)
	}
	if !moved && !changed.Groups {
		next.roster.expanded = v.roster.known()
	}
	next.storage = v.storageOf(&records, vms, &changed)
	next.gathered = v.gathered.later(among)
	for _, cluster := range regrouped {
		delete(next.gathered.stale, cluster)
	}
	if modelled {
		next.gathered.baselines = new(baselines)
	}
	return next
}

// membersOf are the nodes that have come since another view, and the clusters that have other nodes now. What strays on nodes that have
// come or are gone is noted.
func membersOf(next, last *View, given map[string]*model.Node, changed *Changes) (come []*NodeView, regrouped []string) {
	for id, record := range given {
		switch old := last.Node(id); {
		case old == nil:
			is := next.account(*record, changed.Nodes[id])
			next.strays.replace(id, nil, is.strays)
			reword(next, id, nil, is)
			come, regrouped = append(come, is), append(regrouped, record.ClusterName())
		case old.Node.Cluster != record.Cluster:
			regrouped = append(regrouped, old.Node.ClusterName(), record.ClusterName())
		}
	}
	for _, id := range changed.Gone {
		old := last.Node(id)
		next.strays.replace(id, old.strays, nil)
		reword(next, id, old, nil)
		regrouped = append(regrouped, old.Node.ClusterName())
	}
	return come, regrouped
}

// touchedBy are the nodes whose accounting may differ, by ID, and whether a VM may be elsewhere or another one.
func (v *View) touchedBy(next *View, changed *Changes) (touched map[string]bool, moved bool) {
	touched = make(map[string]bool)
	for id := range changed.Nodes {
		touched[id] = true
	}
	where := func(vm string) {
		for _, record := range []*model.VM{v.roster.vms.ByID(vm), next.roster.vms.ByID(vm)} {
			if record != nil && record.Holder != "" {
				touched[record.Holder] = true
			}
		}
		for _, node := range v.strays.on(vm) {
			touched[node] = true
		}
		for _, all := range []reserved{v.held, next.held} {
			for _, one := range all.of[vm] {
				touched[one.Node] = true
			}
		}
	}
	for _, vm := range changed.VMs {
		where(vm)
	}
	moved = len(changed.VMs) > 0
	for _, pair := range [][2]reserved{{v.held, next.held}, {next.held, v.held}} {
		for vm, held := range pair[0].of {
			if !reflect.DeepEqual(held, pair[1].of[vm]) {
				moved = true
				where(vm)
			}
		}
	}
	return touched, moved
}

// domainsDiffer tells whether one of some domains lives in only one of two accounts of a node.
func domainsDiffer(uuids []string, before, now *model.NodeFacts) bool {
	return slices.ContainsFunc(uuids, func(uuid string) bool {
		was, is := before.Domain(uuid), now.Domain(uuid)
		return (was != nil && was.State.Lives()) != (is != nil && is.State.Lives())
	})
}

// known are the groups that were expanded already.
func (r *roster) known() map[string][]model.Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.expanded)
}

// storageOf is the storage of a later view.
func (v *View) storageOf(records *Records, vms VMs, changed *Changes) *storage {
	if changed.Storage {
		return newStorage(records, vms)
	}
	same := *v.storage
	same.making = makingOf(records.Reservations)
	if len(same.pools) == 0 || !slices.ContainsFunc(changed.VMs, func(id string) bool {
		was, is := v.roster.vms.ByID(id), vms.ByID(id)
		if was == nil || is == nil {
			return was != nil && len(was.Disks) > 0 || is != nil && len(is.Disks) > 0
		}
		return !slices.Equal(was.Disks, is.Disks) || len(is.Disks) > 0 && was.Owner != is.Owner
	}) {
		return &same
	}
	same.own(vms)
	return &same
}

// stale are columns of an earlier view, and the nodes that differ since. It never changes.
type stale struct {
	columns *Columns
	nodes   NodeList // by index into the columns
	told    told
	touched *touched
}

// touched are nodes that differ, in the order in which they came to, some more than once.
type touched struct {
	ids    []string
	before *touched // nil: none
	count  int      // of all
}

// but is stale with some nodes more that differ, by ID. It is nil where nobody has asked for so long that gathering costs no more.
func (s *stale) but(ids []string) *stale {
	with := &touched{ids: ids, before: s.touched, count: len(ids)}
	if s.touched != nil {
		with.count += s.touched.count
	}
	if with.count > max(s.nodes.Len(), fewTouched) {
		return nil
	}
	return &stale{columns: s.columns, nodes: s.nodes, told: s.told, touched: with}
}

// fewTouched is how many nodes may differ however few there are.
const fewTouched = 64

// later is what a later view has to begin with, in which some nodes differ, by cluster and ID. CPU models are as they were.
func (g *gathered) later(touched map[string][]string) *gathered {
	next := newGathered()
	next.stale, next.baselines = g.aged(touched), g.baselines
	return next
}

// aged are the columns of a view for a later one, in which some nodes differ, by cluster and ID. They keep nothing of the view itself.
func (g *gathered) aged(touched map[string][]string) map[string]*stale {
	g.mu.Lock()
	defer g.mu.Unlock()
	aged := make(map[string]*stale, len(g.columns)+len(g.stale))
	for name, columns := range g.columns {
		kept := *columns
		kept.around, kept.Residents, kept.Groups, kept.Accounts = nil, nil, nil, nil
		aged[name] = &stale{columns: &kept, nodes: columns.around.nodes, told: columns.around.kept()}
	}
	maps.Copy(aged, g.stale) // of what nobody has asked for
	for name, ids := range touched {
		old := aged[name]
		if old == nil {
			continue
		}
		if aged[name] = old.but(ids); aged[name] == nil {
			delete(aged, name)
		}
	}
	return aged
}

// revised are the columns of a cluster: those of an earlier view, with what differs since. What does not differ is shared.
func (v *View) revised(name string, old *stale) *Columns {
	c := *old.columns
	seen := make(map[int]*NodeView)
	for some := old.touched; some != nil; some = some.before {
		for _, id := range some.ids {
			if row, among := c.Index(id); among && seen[row] == nil {
				seen[row] = v.Node(id)
			}
		}
	}
	rows := slices.Sorted(maps.Keys(seen))
	nodes := make([]*NodeView, len(rows))
	for i, row := range rows {
		nodes[i] = seen[row]
	}
	members := old.nodes.with(seen)
	c.Residents, c.Groups, c.Accounts = residentsOf(v, members), v.groupsIn(name), accountsOf(v, members)
	c.around = &around{view: v, cluster: name, nodes: members, told: old.told.revised(rows, nodes)}
	if len(rows) == 0 {
		return &c
	}
	for i := range columns {
		columns[i].revise(&c.Figures, rows, nodes)
	}
	revise(&c.AtWork, rows, nodes, atWorkOf)
	c.reviseKeys(v.clusters[name].Record.NodeKeys, rows, nodes)
	if slices.ContainsFunc(rows, func(row int) bool {
		return oldestOf(old.nodes.At(row)) == c.Oldest && oldestOf(members.At(row)) < c.Oldest
	}) {
		c.Oldest = 0
		for _, node := range members.All() {
			c.Oldest = max(c.Oldest, oldestOf(node))
		}
	}
	for _, row := range rows {
		c.Oldest = max(c.Oldest, oldestOf(members.At(row)))
	}
	if c.Headroom != nil {
		fresh := headroomOf(c.Headroom.Spare, nodes)
		c.Headroom = c.Headroom.clone()
		for i, row := range rows {
			c.Headroom.on[row] = fresh.on[i]
		}
	}
	c.rederive(rows)
	return &c
}

// rederive is Derive where some rows differ, in columns that share their lists with others.
func (c *Columns) rederive(rows []int) {
	room, ram, cpu, busy := column.Share(&c.Room), column.Share(&c.RAM), column.Share(&c.CPU), column.Share(&c.Busy)
	unmeasured, copied := c.Unmeasured, false
	for _, row := range rows {
		is := c.derived(row)
		room.Set(row, is.room)
		ram.Set(row, is.ram)
		cpu.Set(row, is.cpu)
		busy.Set(row, is.busy)
		at, was := slices.BinarySearch(unmeasured, int32(row))
		if was == is.unmeasured() {
			continue
		}
		if !copied {
			unmeasured, copied = slices.Clone(unmeasured), true
		}
		if was {
			unmeasured = slices.Delete(unmeasured, at, at+1)
		} else {
			unmeasured = slices.Insert(unmeasured, at, int32(row))
		}
	}
	c.Unmeasured = unmeasured
}

// reviseSlice is revise for a slice.
func reviseSlice[T comparable](list *[]T, rows []int, nodes []*NodeView, of func(*NodeView) T) {
	copied := false
	for i, row := range rows {
		value := of(nodes[i])
		if (*list)[row] == value {
			continue
		}
		if !copied {
			*list, copied = slices.Clone(*list), true
		}
		(*list)[row] = value
	}
}

// reviseKeys sets the node keys of some nodes, which are declared in the order of the columns.
func (c *Columns) reviseKeys(declared []model.NodeKey, rows []int, nodes []*NodeView) {
	c.NodeKeys, c.Spans = slices.Clone(c.NodeKeys), slices.Clone(c.Spans)
	for k := range c.NodeKeys {
		key := &c.NodeKeys[k]
		shared := column.Share(&key.Values)
		for i, row := range rows {
			shared.Set(row, nodes[i].Node.KeyValue(declared[k]))
		}
		if shared.Changed() {
			c.Spans[k] = spanOf(key.Values)
		}
	}
}
