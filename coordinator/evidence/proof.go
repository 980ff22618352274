package evidence

import (
	"slices"
	"time"

	"berth/coordinator/model"
)

// Proofs is when this leader had the proof that a node is off, by node ID. What an earlier leader has proven is in the records
// only.
type Proofs map[string]time.Time

// Off tells whether a node counts as off: that is proven, nothing contradicts it, and it was not heard under another boot,
// which its record tells of a moment later only.
func (p Proofs) Off(m Moment, node *model.Node) bool {
	return node.Fenced() && p.Contradicted(m, node) == "" && !BootedAnew(m.Facts(node.ID), node, node.Fencing.Boot)
}

// BootedAnew tells whether a node was heard under another boot than one that was known. What is left of a session of a machine that the
// node is not, as somebody has decided, tells nothing of it.
func BootedAnew(facts model.NodeFacts, node *model.Node, boot string) bool {
	speaks := facts.Liveness == model.Up || facts.Liveness == model.Degraded
	wrong := !speaks && !node.Held() && node.Doubt(facts.Machine()) != ""
	return !facts.HeardAt.IsZero() && facts.Boot != "" && boot != "" && facts.Boot != boot && !wrong
}

// Boot is the boot under which a node was heard last; empty: none was, or not by the machine that the node is.
func (m Moment) Boot(id string) string {
	node, known := m.Node(id)
	facts := m.Facts(id)
	if !known || node.Doubt(facts.Machine()) != "" {
		return ""
	}
	return facts.Boot
}

// Contradicted says that a node answers which is proven to be off, and has not booted since; empty: it does not. Either its
// device lied, or it was only frozen: nobody may count on the proof any more.
func (p Proofs) Contradicted(m Moment, node *model.Node) string {
	if !node.Fenced() {
		return ""
	}
	facts := m.Facts(node.ID)
	heard := facts.HeardAt.After(p[node.ID]) // of another leader's proof: heard at all
	if !heard || facts.HeardAt.IsZero() || facts.Boot != node.Fencing.Boot && node.Fencing.Boot != "" {
		return ""
	}
	return "it answers, and has not booted since: its fence device told a lie, or it was only frozen"
}

// Showing is the name of a node that is heard and shows a copy of a VM which holds memory; empty: none does. Asked only for
// nodes that contradict the proof that they are off, others do not count: what they show may be older than the record.
func (p Proofs) Showing(m Moment, vm string, contradicting bool) string {
	for _, node := range m.showing(vm) {
		if p.Off(m, &node) || contradicting && p.Contradicted(m, &node) == "" {
			continue
		}
		facts := m.Facts(node.ID)
		if domain := facts.Domain(vm); domain != nil && domain.State.Holds() && facts.Liveness != model.Unreachable {
			return node.Name
		}
	}
	return ""
}

// showing are the nodes that may show a VM, by ID.
func (m Moment) showing(vm string) []model.Node {
	if m.MayShow == nil {
		return m.Nodes()
	}
	ids := m.MayShow(vm)
	slices.Sort(ids)
	var nodes []model.Node
	for _, id := range slices.Compact(ids) {
		if node, known := m.Node(id); known {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// Strangers are those of the nodes that show a VM which do not hold it. What a node showed before it was switched off does
// not count.
func (p Proofs) Strangers(m Moment, vm model.VM, shown []string) []string {
	return slices.DeleteFunc(slices.Clone(shown), func(id string) bool {
		node, _ := m.Node(id)
		return id == vm.Holder || p.Off(m, &node)
	})
}
