package view

import (
	"iter"
	"slices"

	"berth/coordinator/model"
)

// bearing are those of some nodes that may have a VM which a word stands for, with their places in the list. A view knows them, so a
// decision does not look at all VMs to find those of one customer, or those that show one key.
func bearing(v *View, word string, among NodeList) iter.Seq2[int, *NodeView] {
	v = v.origin()
	nodes := v.words.Nodes(word)
	if len(v.roster.coming) > 0 {
		for _, one := range v.roster.coming {
			nodes = append(nodes, one.node)
		}
		slices.Sort(nodes)
		nodes = slices.Compact(nodes)
	}
	return func(yield func(int, *NodeView) bool) {
		for _, id := range nodes {
			if at, there := among.search(id); there && !yield(at, among.At(at)) {
				return
			}
		}
	}
}

// ofCustomer is the word for the VMs of a customer, given by ID.
func ofCustomer(id string) string { return "owner " + id }

// word stands for the VMs that show a key of the list.
func (l *residentList) word() string { return string(l.of) + " " + l.owner + " " + l.name }

// words are those for the VMs of a node.
func (n *NodeView) words() map[string]bool {
	words := make(map[string]bool)
	for i := range n.Allocations {
		one := &n.Allocations[i]
		if one.Owner.Customer != "" {
			words[ofCustomer(one.Owner.Customer)] = true
		}
		for _, key := range one.Resident {
			lists, count := listsOf(one.Owner, key)
			for l := range lists[:count] {
				words[lists[l].word()] = true
			}
		}
	}
	return words
}

// reword notes what differs between two accounts of a node; nil is none.
func reword(v *View, id string, before, now *NodeView) {
	if before != nil && now != nil && slices.EqualFunc(before.Allocations, now.Allocations, func(a, b Allocation) bool {
		return a.Owner == b.Owner && slices.EqualFunc(a.Resident, b.Resident, sameKey)
	}) {
		return
	}
	var was, is map[string]bool
	if before != nil {
		was = before.words()
	}
	if now != nil {
		is = now.words()
	}
	v.words.Replace(id, was, is)
}

// sameKey tells whether two VMs show a key in the same lists.
func sameKey(a, b model.ResidentKey) bool { return a.Class == b.Class && a.Name == b.Name }
