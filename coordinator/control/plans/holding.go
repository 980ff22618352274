package plans

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"berth/coordinator/affinity"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// groupsEvery is the time between two looks at the groups that something has changed of.
const groupsEvery = time.Second

// FollowGroups writes down which groups are broken and which hold again, until the context ends. It looks at those alone whose rules or
// members have changed; passes look at all.
func (p *Plans) FollowGroups(ctx context.Context) {
	var h holding
	ticker := time.NewTicker(groupsEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot, at := p.Store.Snapshot(), p.Now()
		if lead.Quarantined(snapshot) != nil {
			h = holding{} // what the records say is not known to be so
			continue
		}
		marks, both := h.look(snapshot, at)
		if len(marks) > 0 && !p.mark(ctx, marks, both, at) {
			for i := range marks {
				h.owed[marks[i].Record.ID] = true
			}
		}
	}
}

// holding knows which groups a change concerns, so that a look costs what has changed and not what there is. The zero value is ready.
type holding struct {
	last     *state.Snapshot
	names    map[string]string          // of clusters, by ID
	listed   map[string][]string        // IDs of groups, by the ID of a VM that they list
	labelled map[string][]string        // IDs of groups, by a label of VMs
	carriers map[string]map[string]bool // IDs of VMs, by such a label
	nodes    map[string][]string        // IDs of nodes, by a label
	owed     map[string]bool            // IDs of groups to look at again
}

// look finds the groups that are broken since the last look, and those that hold again.
func (h *holding) look(snapshot *state.Snapshot, at time.Time) (marks []moving.Mark, both []moving.Told) {
	if snapshot == h.last && len(h.owed) == 0 {
		return nil, nil
	}
	concerned := h.concerned(snapshot)
	h.last, h.owed = snapshot, make(map[string]bool)
	where, broken := make(affinity.Where), make(map[string]bool)
	for _, id := range slices.Sorted(maps.Keys(concerned)) {
		group, record, settled := h.group(id, where)
		if !settled {
			continue
		}
		mark, changed := moving.MarkOf(&group, record, affinity.Breaches([]model.Group{group}, where, h.name), at)
		if changed {
			marks = append(marks, mark)
			broken[id] = mark.Broken
		}
	}
	if groups := h.beside(broken, where); len(groups) > 0 {
		fixed := func(id string) bool {
			vm := snapshot.SharedVM(id)
			return vm == nil || vm.Migration != model.MigrateAutomatic
		}
		both = moving.InBoth(marks, groups, where, fixed, h.name)
	}
	return marks, both
}

// concerned are the IDs of the groups that something has changed of since the last look.
func (h *holding) concerned(snapshot *state.Snapshot) map[string]bool {
	concerned := maps.Clone(h.owed)
	if concerned == nil {
		concerned = make(map[string]bool)
	}
	if h.last == nil {
		return h.learn(snapshot)
	}
	changed, known := snapshot.Since(h.last)
	if !known {
		return h.learn(snapshot)
	}
	edited := false // somebody has changed a group
	for _, one := range changed {
		switch one.Table {
		case state.Resources:
			was, _ := h.last.Resource(one.ID)
			is, _ := snapshot.Resource(one.ID)
			switch kind := cmp.Or(is.Kind, was.Kind); {
			case kind == model.KindCluster && was.Name != is.Name:
				return h.learn(snapshot)
			case kind == model.KindGroup:
				concerned[one.ID] = true
				edited = edited || !sameRules(&was, &is)
			}
		case state.Nodes:
			was, _ := h.last.Node(one.ID)
			is, _ := snapshot.Node(one.ID)
			if was.ID != is.ID || was.Cluster != is.Cluster || !slices.Equal(was.Labels, is.Labels) {
				return h.learn(snapshot)
			}
		case state.VMs:
			h.moved(h.last.SharedVM(one.ID), snapshot.SharedVM(one.ID), concerned)
		}
	}
	if edited {
		h.learn(snapshot)
	}
	return concerned
}

// sameRules tells whether two records of a group take in the same VMs and nodes. Either may be of none.
func sameRules(a, b *model.Resource) bool {
	same := func(x, y map[string][]string) bool { return maps.EqualFunc(x, y, slices.Equal) }
	return a.ID == b.ID && same(a.Members, b.Members) && same(a.Lists, b.Lists)
}

// moved adds the groups of a VM that is elsewhere, or is another group's member. Either may be nil.
func (h *holding) moved(was, is *model.VM, concerned map[string]bool) {
	if was != nil && is != nil && was.Holder == is.Holder && was.Operation == is.Operation && slices.Equal(was.Labels, is.Labels) {
		return
	}
	for _, vm := range []*model.VM{was, is} {
		if vm == nil {
			continue
		}
		for _, group := range h.groupsOf(vm) {
			concerned[group] = true
		}
		for _, label := range vm.Labels {
			if carriers := h.carriers[label]; carriers != nil {
				if vm == is {
					carriers[vm.ID] = true
				} else {
					delete(carriers, vm.ID)
				}
			}
		}
	}
}

// groupsOf are the IDs of the groups that have a VM, some perhaps twice.
func (h *holding) groupsOf(vm *model.VM) []string {
	groups := slices.Clone(h.listed[vm.ID])
	for _, label := range vm.Labels {
		groups = append(groups, h.labelled[label]...)
	}
	return groups
}

// learn reads all groups, and who carries their labels. It returns all groups.
func (h *holding) learn(snapshot *state.Snapshot) map[string]bool {
	*h = holding{
		last: snapshot, owed: h.owed, names: map[string]string{}, listed: map[string][]string{}, labelled: map[string][]string{},
		carriers: map[string]map[string]bool{}, nodes: map[string][]string{},
	}
	all, nodes := make(map[string]bool), false
	for _, record := range snapshot.Groups() {
		all[record.ID] = true
		for _, vm := range record.Members[model.MembersVMs] {
			h.listed[vm] = append(h.listed[vm], record.ID)
		}
		for _, label := range record.Lists[model.ListVMLabels] {
			h.labelled[label] = append(h.labelled[label], record.ID)
			h.carriers[label] = make(map[string]bool)
		}
		nodes = nodes || len(record.Lists[model.ListNodeLabels]) > 0
	}
	if len(all) == 0 {
		return all
	}
	for _, record := range snapshot.Clusters() {
		h.names[record.ID] = record.Name
	}
	if len(h.carriers) > 0 {
		for vm := range snapshot.SharedVMs() {
			for _, label := range vm.Labels {
				if carriers := h.carriers[label]; carriers != nil {
					carriers[vm.ID] = true
				}
			}
		}
	}
	if nodes {
		for node := range snapshot.SharedNodes() {
			for _, label := range node.Labels {
				h.nodes[label] = append(h.nodes[label], node.ID)
			}
		}
	}
	return all
}

// group is a group with all its members of the last moment, and where those are that run. It is not settled while one of them is on its
// way: whether it comes there is seen at the end.
func (h *holding) group(id string, where affinity.Where) (group model.Group, record model.Resource, settled bool) {
	record, there := h.last.Resource(id)
	if !there || record.Kind != model.KindGroup {
		return model.Group{}, model.Resource{}, false
	}
	group = model.GroupOf(&record, cmp.Or(h.names[record.Links[model.LinkCluster]], model.DefaultCluster))
	inside := func(id string) bool {
		node, known := h.last.Node(id)
		return known && node.ClusterName() == group.Cluster
	}
	vms := slices.Clone(group.VMs)
	for _, label := range group.VMLabels {
		vms = slices.AppendSeq(vms, maps.Keys(h.carriers[label]))
	}
	slices.Sort(vms)
	group.VMs = nil
	for _, id := range slices.Compact(vms) {
		vm := h.last.SharedVM(id)
		if vm == nil || vm.Holder == "" || !inside(vm.Holder) {
			continue // who does not run here breaks nothing
		}
		if op, works := h.last.Operation(vm.Operation); works && op.Kind == operation.Migrate {
			return group, record, false
		}
		group.VMs, where[id] = append(group.VMs, id), vm.Holder
	}
	nodes := slices.Clone(group.Nodes)
	for _, label := range group.NodeLabels {
		nodes = append(nodes, h.nodes[label]...)
	}
	slices.Sort(nodes)
	group.Nodes = slices.DeleteFunc(slices.Compact(nodes), func(id string) bool { return !inside(id) })
	return group, record, true
}

// beside are the groups that are broken since now, and all that share a VM with them.
func (h *holding) beside(broken map[string]bool, where affinity.Where) (groups []model.Group) {
	found := make(map[string]bool)
	for id, is := range broken {
		if !is {
			continue
		}
		group, _, _ := h.group(id, where)
		for _, vm := range group.VMs {
			for _, other := range h.groupsOf(h.last.SharedVM(vm)) {
				found[other] = true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(found)) {
		if group, _, settled := h.group(id, where); settled {
			groups = append(groups, group)
		}
	}
	return groups
}

// name is what people call a VM or a node; the ID of one that is gone.
func (h *holding) name(id string) string {
	if vm := h.last.SharedVM(id); vm != nil {
		return vm.Name
	}
	if node, known := h.last.Node(id); known {
		return node.Name
	}
	return id
}
