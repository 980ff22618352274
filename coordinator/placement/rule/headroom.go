package rule

import (
	"cmp"
	"math"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/units"
)

// Uncovered is what could not be restarted if nodes failed. The zero value: all could be.
type Uncovered struct {
	Nodes  []string    `json:"nodes,omitempty"`  // names of those that fail
	VMs    []string    `json:"vms,omitempty"`    // names of the first few VMs that no other node is known to have room for
	Total  int         `json:"total,omitempty"`  // of these VMs
	Memory units.Bytes `json:"memory,omitempty"` // of all of them
}

// mostUncovered is how many VMs an Uncovered names.
const mostUncovered = 5

// Headroom tells, of a cluster with spare nodes, what could be restarted if nodes failed after a VM had been placed.
//
// Each node by itself is taken to fail and, with more than one spare node, also those nodes together that have most memory
// of highly available VMs. That is exact for one spare node. For more it is an estimate: other sets of nodes are not looked at.
//
// Whether the VMs fit on the others is tried by placing them, the largest first, each on the first node that has room on both
// ledgers and that hard rules of groups leave to it, those first that have most room before anything is placed. So what is covered can
// be restarted in this way, and what is not might be in another one. VMs that only hard rules between more than two groups tie
// together are taken one by one, and rules that weigh, networks, pools and CPU models are not looked at. Nor are vCPUs: no start is
// refused for want of them.
type Headroom struct {
	columns *view.Columns
	placed  view.HAVM // with all that comes along: they are restarted on one node
	labels  []string  // of the VM
	ha      bool      // what is placed is highly available
	current int       // index of the node that it leaves; negative: it starts
	stands  int       // index of the node where hard rules see it before it is placed; negative: nowhere

	begun bool
	order []int32 // nodes with room, most first
	rules rules
	sets  []failure     // single nodes
	most  *failure      // those with most memory; nil with one spare node
	sums  []units.Bytes // by node: memory of highly available VMs
	tight []units.Bytes // by node: the least that any failure leaves free that puts VMs there
	left  []units.Bytes // by node: scratch of one packing
	found []Uncovered   // by node
	known []bool        // by node: found was worked out
	worst Uncovered     // of the VMs that are there, whatever is placed
	stays units.Bytes   // that is not covered when the VM stays
}

// failure is one set of nodes that fail.
type failure struct {
	nodes []int
	vms   []view.HAVM // the largest first
	found Uncovered   // of them, whatever is placed
	meets bool        // one of them is in a group with what is placed
}

// NewHeadroom looks at nothing yet. The input says what is placed together with the VM.
func NewHeadroom(columns *view.Columns, in *Input, vm view.Allocation) *Headroom {
	h := &Headroom{
		columns: columns, ha: vm.HA, labels: vm.Labels, current: -1, stands: -1,
		placed: view.HAVM{VM: vm.VM, Name: cmp.Or(vm.Name, vm.VM), Memory: in.Memory},
	}
	if at, found := columns.Index(in.Current); found {
		h.current = at
	}
	return h
}

// ShortOf is what of a cluster could not be restarted now if nodes failed; the zero value if it keeps none in spare.
func ShortOf(columns *view.Columns) Uncovered {
	if columns.Headroom == nil {
		return Uncovered{}
	}
	h := &Headroom{columns: columns, current: -1, stands: -1}
	h.begin()
	return h.worst
}

// At is what could not be restarted with the VM on a node. A VM that stays where it is changes nothing.
func (h *Headroom) At(node int) *Uncovered {
	h.begin()
	if !h.known[node] {
		h.known[node] = true
		if node != h.current {
			h.found[node] = h.judge(node)
		}
	}
	return &h.found[node]
}

// Uncover is what could not be restarted with the VM on a node; nil if all could be.
func (in *Input) Uncover(node int) *Uncovered {
	var found *Uncovered
	switch {
	case in.Headroom != nil:
		found = in.Headroom.At(node)
	case in.Uncovered != nil:
		found = &in.Uncovered[node]
	}
	if found == nil || found.Total == 0 {
		return nil
	}
	return found
}

// KeepUncovered copies what is uncovered with the VM on some nodes; nil if nothing is on any of them.
func (in *Input) KeepUncovered(nodes []int) []Uncovered {
	var kept []Uncovered
	for i, node := range nodes {
		if found := in.Uncover(node); found != nil {
			if kept == nil {
				kept = make([]Uncovered, len(nodes))
			}
			kept[i] = *found
		}
	}
	return kept
}

// begin packs the VMs that are there.
func (h *Headroom) begin() {
	if h.begun {
		return
	}
	h.begun = true
	n := h.columns.Len()
	h.left, h.tight = make([]units.Bytes, n), make([]units.Bytes, n)
	h.found, h.known = make([]Uncovered, n), make([]bool, n)
	for node, room := range h.columns.Room.All() {
		if h.tight[node] = math.MaxInt64; room > 0 {
			h.order = append(h.order, int32(node))
		}
	}
	slices.SortFunc(h.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(h.columns.Room.At(int(b)), h.columns.Room.At(int(a))), cmp.Compare(a, b))
	})
	h.rules.read(h.columns, h.placed.VM, h.labels)
	for node := range n {
		if vms := h.columns.Headroom.On(node); len(vms) > 0 {
			h.sets = append(h.sets, failure{nodes: []int{node}, vms: vms})
		}
	}
	if h.columns.Headroom.Spare > 1 {
		h.most = h.largest()
		h.learn(h.most)
	}
	for i := range h.sets {
		h.learn(&h.sets[i])
	}
	if h.current >= 0 {
		h.stays = h.staying()
	}
}

// staying is how much all failures leave uncovered while the VM is where it is. There it is charged as it was, not in full as
// on a new node: charged in full it could seem to be short already, and any move would be let in that leaves as much.
func (h *Headroom) staying() (short units.Bytes) {
	columns, found := h.columns.Restore(h.current)
	if !found {
		_, short = h.try(h.current)
		return short
	}
	as := &Headroom{columns: columns, placed: h.placed, labels: h.labels, current: -1, stands: h.current}
	as.begin()
	for i := range as.sets {
		short += as.sets[i].found.Memory
	}
	if as.most != nil {
		short += as.most.found.Memory
	}
	return short
}

// learn packs the VMs of one failure with nothing placed.
func (h *Headroom) learn(one *failure) {
	one.meets = h.rules.meet(one.vms, h.placed.VM)
	if one.found = h.pack(one, -1); one.found.Memory > h.worst.Memory {
		h.worst = one.found
	}
}

// largest are as many nodes as are in spare, those with most memory of highly available VMs first.
func (h *Headroom) largest() *failure {
	h.sums = make([]units.Bytes, h.columns.Len())
	nodes := make([]int, len(h.sums))
	for node := range nodes {
		nodes[node] = node
		for _, vm := range h.columns.Headroom.On(node) {
			h.sums[node] += vm.Memory
		}
	}
	slices.SortStableFunc(nodes, func(a, b int) int { return cmp.Compare(h.sums[b], h.sums[a]) })
	one := h.failing(nodes[:min(h.columns.Headroom.Spare, len(nodes))])
	return &one
}

// tryMost is what is uncovered of the nodes with most, with what is placed on a node: it may be one of them by that.
func (h *Headroom) tryMost(node int) Uncovered {
	nodes := h.most.nodes
	last := nodes[len(nodes)-1]
	switch {
	case slices.Contains(nodes, node):
		return h.packOn(h.most, node)
	case h.ha && h.sums[node]+h.placed.Memory > h.sums[last]:
		with := h.failing(append(slices.Clone(nodes[:len(nodes)-1]), node))
		return h.packWith(&with, node)
	default:
		return h.packBeside(h.most, node)
	}
}

// failing are some nodes with their VMs.
func (h *Headroom) failing(nodes []int) failure {
	one := failure{nodes: nodes}
	for _, node := range nodes {
		one.vms = append(one.vms, h.columns.Headroom.On(node)...)
	}
	slices.SortFunc(one.vms, view.CompareHAVMs)
	one.vms = slices.CompactFunc(one.vms, func(a, b view.HAVM) bool { return a.VM == b.VM }) // one that moves between two of them
	return one
}

// judge tries a node. A start has to leave everything covered; a move must not leave more uncovered than staying does.
func (h *Headroom) judge(node int) Uncovered {
	worst, short := h.try(node)
	if h.current >= 0 && short <= h.stays {
		return Uncovered{}
	}
	return worst
}

// try puts what is placed on a node. It returns the failure that leaves most uncovered, and how much all of them leave.
func (h *Headroom) try(node int) (worst Uncovered, short units.Bytes) {
	count := func(found Uncovered) {
		short += found.Memory
		if found.Memory > worst.Memory {
			worst = found
		}
	}
	own := false
	for i := range h.sets {
		if one := &h.sets[i]; one.nodes[0] == node {
			own = true
			count(h.packOn(one, node))
		} else {
			count(h.packBeside(one, node))
		}
	}
	if !own && h.ha {
		count(h.packWith(&failure{nodes: []int{node}}, node))
	}
	if h.most != nil {
		count(h.tryMost(node))
	}
	return worst, short
}

// packBeside is pack with what is placed on a node that does not fail. Where enough is left, nothing has to be packed anew.
func (h *Headroom) packBeside(one *failure, node int) Uncovered {
	if !one.meets && one.found.Total == 0 && h.tight[node] > h.placed.Memory {
		return Uncovered{}
	}
	return h.pack(one, node)
}

// packOn is pack with what is placed on a node that fails.
func (h *Headroom) packOn(one *failure, node int) Uncovered {
	if !h.ha {
		return one.found
	}
	return h.packWith(one, node)
}

// packWith restarts what is placed, too.
func (h *Headroom) packWith(one *failure, node int) Uncovered {
	with := *one
	at, _ := slices.BinarySearchFunc(one.vms, h.placed, view.CompareHAVMs)
	with.vms = slices.Insert(slices.Clone(one.vms), at, h.placed)
	return h.pack(&with, node)
}

// pack restarts the VMs of nodes that fail on the others, with what is placed on a node unless that is negative: then it also
// learns how little is left where.
func (h *Headroom) pack(one *failure, on int) Uncovered {
	h.columns.Room.CopyTo(h.left)
	if on >= 0 {
		h.left[on] -= h.placed.Memory
	}
	if on < 0 {
		h.rules.begin(h, one.nodes, h.stands)
	} else {
		h.rules.begin(h, one.nodes, on)
	}
	var found Uncovered
	var touched []int32
	for i := range one.vms {
		vm := &one.vms[i]
		groups := h.rules.of(vm.VM)
		at := h.place(vm, groups, one.nodes)
		if at < 0 {
			found.Total, found.Memory = found.Total+1, found.Memory+vm.Memory
			if len(found.VMs) < mostUncovered {
				found.VMs = append(found.VMs, vm.Name)
			}
			continue
		}
		h.left[at] -= vm.Memory
		h.rules.put(groups, at)
		if on < 0 {
			touched = append(touched, int32(at))
		}
	}
	for _, node := range touched {
		h.tight[node] = min(h.tight[node], h.left[node])
	}
	if found.Total > 0 {
		for _, node := range one.nodes {
			found.Nodes = append(found.Nodes, h.columns.Names[node])
		}
	}
	return found
}

// place is the first node that takes a VM; negative: none does.
func (h *Headroom) place(vm *view.HAVM, groups []int, failed []int) int {
	for _, node := range h.order {
		if at := int(node); h.left[at] > vm.Memory && !slices.Contains(failed, at) && h.rules.allow(groups, at) {
			return at
		}
	}
	return -1
}

// rules are the hard rules of groups, and where members are while VMs are packed.
type rules struct {
	all    []model.Group
	bound  map[string][]int
	nodes  []map[int]bool // by group: its nodes
	there  [][]int32      // by group and node: members, without any failure
	stays  [][]int32      // of these, those that will stay there
	now    [][]int32      // by group and node: members that block others, during a packing
	tied   [][]int32      // members that others have to join
	joined []int          // by group: how many of these there are
}

// read takes the groups up. A VM that is placed may carry labels that no list of members knows yet.
func (r *rules) read(columns *view.Columns, placed string, labels []string) {
	r.bound = columns.Groups.Bound()
	r.all = columns.Groups.All()
	for g := range r.all {
		one := &r.all[g]
		if hard := one.VMsRule.Hard() || one.NodesRule.Hard(); !hard || placed == "" || slices.Contains(r.bound[placed], g) {
			continue
		}
		if columns.Groups.Has(g, placed, labels) {
			if r.bound == nil {
				r.bound = make(map[string][]int)
			}
			r.bound[placed] = append(r.bound[placed], g)
		}
	}
	if len(r.bound) == 0 {
		return
	}
	r.nodes = make([]map[int]bool, len(r.all))
	r.there, r.stays = make([][]int32, len(r.all)), make([][]int32, len(r.all))
	r.now, r.tied, r.joined = make([][]int32, len(r.all)), make([][]int32, len(r.all)), make([]int, len(r.all))
	for g := range r.all {
		one := &r.all[g]
		if one.NodesRule.Hard() && len(one.Nodes) > 0 {
			r.nodes[g] = make(map[int]bool)
			for _, id := range one.Nodes {
				if at, found := columns.Index(id); found {
					r.nodes[g][at] = true
				}
			}
		}
		if !one.VMsRule.Hard() {
			continue
		}
		n := columns.Len()
		r.there[g], r.stays[g], r.now[g], r.tied[g] = make([]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
		for _, p := range columns.Presences(g, nil) {
			if p.Node >= 0 {
				r.there[g][p.Node], r.stays[g][p.Node] = p.Count, p.Stay()
			}
		}
	}
}

// of are the groups that bind a VM.
func (r *rules) of(vm string) []int { return r.bound[vm] }

// meet tells whether one of some VMs is in a group with another VM.
func (r *rules) meet(vms []view.HAVM, other string) bool {
	groups := r.of(other)
	return len(groups) > 0 && slices.ContainsFunc(vms, func(vm view.HAVM) bool {
		return slices.ContainsFunc(r.of(vm.VM), func(g int) bool { return slices.Contains(groups, g) })
	})
}

// begin takes the members off the nodes that fail, and puts what is placed on its node.
func (r *rules) begin(h *Headroom, failed []int, on int) {
	for g := range r.there {
		if r.there[g] == nil {
			continue
		}
		copy(r.now[g], r.there[g])
		copy(r.tied[g], r.stays[g])
		if on >= 0 && slices.Contains(r.of(h.placed.VM), g) {
			r.now[g][on]++
			r.tied[g][on]++
		}
		for _, node := range failed {
			r.now[g][node], r.tied[g][node] = 0, 0
		}
		r.joined[g] = 0
		for _, count := range r.tied[g] {
			r.joined[g] += int(count)
		}
	}
}

// allow tells whether hard rules leave the node to a VM of these groups.
func (r *rules) allow(groups []int, node int) bool {
	for _, g := range groups {
		one := &r.all[g]
		if r.nodes[g] != nil && r.nodes[g][node] == (one.NodesRule.Polarity == model.Negative) {
			return false
		}
		if r.there[g] == nil {
			continue
		}
		if one.VMsRule.Polarity == model.Negative && r.now[g][node] > 0 {
			return false
		}
		if one.VMsRule.Polarity == model.Positive && r.joined[g] > 0 && r.tied[g][node] == 0 {
			return false
		}
	}
	return true
}

// put notes a VM that is restarted on a node.
func (r *rules) put(groups []int, node int) {
	for _, g := range groups {
		if r.there[g] != nil {
			r.now[g][node]++
			r.tied[g][node]++
			r.joined[g]++
		}
	}
}
