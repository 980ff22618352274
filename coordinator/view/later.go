package view

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"berth/coordinator/model"
)

// Changes are what may differ between the moments of two views.
type Changes struct {
	Nodes map[string]model.NodeFacts // of the nodes whose record or facts may differ, by ID
	VMs   []string                   // IDs of VMs whose records may differ
	// Groups and Storage tell that those records are given anew, with the clusters: groups; pools, pods, disks and images.
	Groups, Storage bool
}

// Later is the view of a later moment: the one that would be made anew, for the price of what has changed. Records have the
// reservations, and of the rest what has changed. Clusters are the same, and so is which node is in which; v is no what-if.
func (v *View) Later(at time.Time, index uint64, records Records, vms VMs, changed Changes) *View {
	next := &View{
		At: at, Index: index, Nodes: slices.Clone(v.Nodes), clusters: v.clusters, gathered: newGathered(),
		held: reservedOf(records.Reservations), strays: v.strays.copy(), roster: &roster{declared: v.roster.declared, vms: vms},
	}
	touched, moved := v.touchedBy(next, &changed)
	if changed.Groups {
		next.roster.declared = declaredOf(&records)
	}
	given := make(map[string]*model.Node, len(records.Nodes))
	for i := range records.Nodes {
		given[records.Nodes[i].ID] = &records.Nodes[i]
	}
	for id := range touched {
		at, found := v.search(id)
		if !found {
			continue // a VM may name a node that is gone
		}
		old := v.Nodes[at]
		node, facts := old.Node, old.Facts
		if record := given[id]; record != nil {
			node = *record
		}
		if told, is := changed.Nodes[id]; is {
			facts = told
		}
		next.Nodes[at] = next.account(node, facts)
		if !slices.Equal(old.strays, next.Nodes[at].strays) {
			next.strays.replace(id, old.strays, next.Nodes[at].strays)
			moved = true
		}
		moved = moved || !slices.Equal(old.Node.Labels, node.Labels) || domainsDiffer(next.Nodes[at].strays, &old.Facts, &facts)
	}
	if !moved && !changed.Groups {
		next.roster.expanded = v.roster.known()
	}
	next.storage = v.storageOf(&records, vms, &changed)
	next.gathered.stale = v.gathered.aged(touched)
	return next
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

// stale are columns of an earlier view, and the nodes that differ since, by ID.
type stale struct {
	columns *Columns
	nodes   []*NodeView // by index into the columns
	touched map[string]bool
}

// aged are the columns of a view for a later one. They keep nothing of the view itself.
func (g *gathered) aged(touched map[string]bool) map[string]*stale {
	g.mu.Lock()
	defer g.mu.Unlock()
	aged := make(map[string]*stale, len(g.columns)+len(g.stale))
	for name, columns := range g.columns {
		kept := *columns
		kept.around, kept.Residents, kept.Groups, kept.Accounts = nil, nil, nil, nil
		aged[name] = &stale{columns: &kept, nodes: columns.around.nodes, touched: touched}
	}
	for name, old := range g.stale {
		all := maps.Clone(old.touched)
		maps.Copy(all, touched)
		aged[name] = &stale{columns: old.columns, nodes: old.nodes, touched: all}
	}
	return aged
}

// revised are the columns of a cluster: those of an earlier view, with what differs since. What does not differ is shared.
func (v *View) revised(name string, old *stale) *Columns {
	c := *old.columns
	var rows []int
	var nodes []*NodeView
	for id := range old.touched {
		if row, among := c.Index(id); among {
			rows, nodes = append(rows, row), append(nodes, v.Node(id))
		}
	}
	members := slices.Clone(old.nodes)
	for i, row := range rows {
		members[row] = nodes[i]
	}
	c.Residents, c.Groups, c.Accounts = residentsOf(members), v.groupsIn(name), accountsOf(members)
	c.around = &around{view: v, cluster: name, nodes: members}
	if len(rows) == 0 {
		return &c
	}
	for _, column := range columns {
		column.revise(&c.Figures, rows, nodes)
	}
	revise(&c.AtWork, rows, nodes, atWorkOf)
	c.reviseReasons(rows, nodes)
	c.reviseKeys(v.clusters[name].Record.NodeKeys, rows, nodes)
	if slices.ContainsFunc(rows, func(row int) bool { return oldestOf(old.nodes[row]) != oldestOf(members[row]) }) {
		c.Oldest = 0
		for _, node := range members {
			c.Oldest = max(c.Oldest, oldestOf(node))
		}
	}
	if c.Headroom != nil {
		fresh := headroomOf(c.Headroom.Spare, nodes)
		c.Headroom = c.Headroom.clone()
		for i, row := range rows {
			c.Headroom.on[row] = fresh.on[i]
		}
	}
	c.Room, c.RAM, c.CPU, c.Busy = slices.Clone(c.Room), slices.Clone(c.RAM), slices.Clone(c.CPU), slices.Clone(c.Busy)
	c.Unmeasured = slices.Clone(c.Unmeasured)
	for _, row := range rows {
		c.deriveOne(row)
		at, was := slices.BinarySearch(c.Unmeasured, int32(row))
		switch is := c.unmeasured(row); {
		case is && !was:
			c.Unmeasured = slices.Insert(c.Unmeasured, at, int32(row))
		case was && !is:
			c.Unmeasured = slices.Delete(c.Unmeasured, at, at+1)
		}
	}
	return &c
}

// revise sets some rows of a list, which others may have: it is copied for the first value that differs.
func revise[T comparable](list *[]T, rows []int, nodes []*NodeView, of func(*NodeView) T) {
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

// reviseReasons sets why some nodes do not stand well. There is no list while all do.
func (c *Columns) reviseReasons(rows []int, nodes []*NodeView) {
	if c.Reasons == nil && !slices.ContainsFunc(nodes, func(n *NodeView) bool { return reasonOf(n) != "" }) {
		return
	}
	if c.Reasons == nil {
		c.Reasons = make([]string, c.Len())
	}
	revise(&c.Reasons, rows, nodes, reasonOf)
	if !slices.ContainsFunc(c.Reasons, func(reason string) bool { return reason != "" }) {
		c.Reasons = nil
	}
}

// reviseKeys sets the node keys of some nodes, which are declared in the order of the columns.
func (c *Columns) reviseKeys(declared []model.NodeKey, rows []int, nodes []*NodeView) {
	c.NodeKeys, c.Spans = slices.Clone(c.NodeKeys), slices.Clone(c.Spans)
	for k := range c.NodeKeys {
		key := &c.NodeKeys[k]
		before := &key.Values[0]
		revise(&key.Values, rows, nodes, func(n *NodeView) float64 { return n.Node.KeyValue(declared[k]) })
		if before != &key.Values[0] {
			c.Spans[k] = [2]float64{slices.Min(key.Values), slices.Max(key.Values)}
		}
	}
}
