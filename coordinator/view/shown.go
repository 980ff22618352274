package view

import (
	"iter"
	"slices"

	"berth/coordinator/model"
)

// tells whether what a node shows of its domains counts. What it showed before it fell silent does not.
func (n *NodeView) tells() bool { return n.Facts.Liveness != model.Unreachable && n.Facts.DomainsKnown }

// ShownOn are the nodes that show a domain of a VM in a state that counts, by node ID: the one that holds it by its record, and others.
// What a node showed before it fell silent does not count.
func (v *View) ShownOn(vm string, counts func(model.DomainState) bool) []*NodeView {
	o := v.origin()
	on := slices.Clone(o.strays.on(vm))
	if record := o.roster.vms.ByID(vm); record != nil && record.Holder != "" {
		on = append(on, record.Holder)
	}
	slices.Sort(on)
	var shown []*NodeView
	for _, id := range slices.Compact(on) {
		if node := v.Node(id); node != nil && node.tells() {
			if domain := node.Facts.Domain(vm); domain != nil && counts(domain.State) {
				shown = append(shown, node)
			}
		}
	}
	return shown
}

// Strays are the UUIDs of domains that hold memory on nodes which do not hold them by a record of a VM, with the IDs of these nodes:
// foreign ones, copies that migrations fill, and what should not be there.
func (v *View) Strays() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		o := v.origin()
		o.strays.nodes.Scan(yield)
	}
}

// Runs tells whether a domain runs.
func Runs(state model.DomainState) bool { return state == model.DomainRunning }

// Running is how many VMs a node shows to run, and of how many that may run nobody tells: their node is silent, or has not told its
// domains since this member leads.
func (v *View) Running() (running, untold int) {
	for _, node := range v.Nodes.All() {
		if node.tells() {
			running += node.ran
		} else {
			untold += node.ran + len(node.odd)
		}
	}
	for uuid := range v.Strays() {
		record := v.origin().roster.vms.ByID(uuid)
		if record == nil {
			continue
		}
		shown := v.ShownOn(uuid, Runs)
		if len(shown) == 0 || slices.ContainsFunc(shown, func(n *NodeView) bool { return n.Node.ID == record.Holder }) {
			continue // one that its holder shows is counted there
		}
		running++
		if holder := v.Node(record.Holder); holder != nil && !holder.tells() {
			untold-- // another node tells of it
		}
	}
	return running, untold
}

// NotRunning are the IDs of the VMs that a node holds and does not show to run, by node; of one that says nothing, all that it holds.
func (v *View) NotRunning() iter.Seq2[*NodeView, []string] {
	return func(yield func(*NodeView, []string) bool) {
		for _, node := range v.Nodes.All() {
			ids := node.odd
			if !node.tells() || node.Facts.Liveness == model.Degraded || node.Node.Fenced() {
				ids = nil
				for vm := range v.origin().roster.vms.On(node.Node.ID) {
					ids = append(ids, vm.ID)
				}
			}
			if len(ids) > 0 && !yield(node, ids) {
				return
			}
		}
	}
}
