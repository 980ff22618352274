package view

import (
	"cmp"
	"iter"
	"slices"
	"sort"
)

// NodeList is a list of nodes by ID. It never changes. A list that differs from another one in a few nodes shares the parts in which
// none of them is: the view after a report costs what was reported, however many nodes there are.
type NodeList struct {
	parts [][]*NodeView // of nodesInPart each, but for the last
}

// nodesInPart is how many nodes are copied where one of them differs. The parts of 10,000 nodes are about as many.
const nodesInPart = 128

// ListOf is a list of some nodes, given in the order of their IDs. It keeps the slice.
func ListOf(nodes []*NodeView) NodeList {
	return NodeList{parts: slices.Collect(slices.Chunk(nodes, nodesInPart))}
}

// Len is how many nodes there are.
func (l NodeList) Len() int {
	if len(l.parts) == 0 {
		return 0
	}
	last := len(l.parts) - 1
	return last*nodesInPart + len(l.parts[last])
}

// At is a node by its place.
func (l NodeList) At(i int) *NodeView { return l.parts[i/nodesInPart][i%nodesInPart] }

// All are the nodes with their places.
func (l NodeList) All() iter.Seq2[int, *NodeView] {
	return func(yield func(int, *NodeView) bool) {
		for part, nodes := range l.parts {
			for i, node := range nodes {
				if !yield(part*nodesInPart+i, node) {
					return
				}
			}
		}
	}
}

// Slice is a copy of the nodes.
func (l NodeList) Slice() []*NodeView { return slices.Concat(l.parts...) }

// search finds the place of a node by its ID.
func (l NodeList) search(id string) (int, bool) {
	part := sort.Search(len(l.parts), func(i int) bool { return l.parts[i][0].Node.ID > id }) - 1
	if part < 0 {
		return 0, false
	}
	at, found := slices.BinarySearchFunc(l.parts[part], id, func(n *NodeView, id string) int { return cmp.Compare(n.Node.ID, id) })
	return part*nodesInPart + at, found
}

// with is the list with other nodes at some places.
func (l NodeList) with(nodes map[int]*NodeView) NodeList {
	if len(nodes) == 0 {
		return l
	}
	next := NodeList{parts: slices.Clone(l.parts)}
	for at, node := range nodes {
		part := at / nodesInPart
		if &next.parts[part][0] == &l.parts[part][0] {
			next.parts[part] = slices.Clone(l.parts[part])
		}
		next.parts[part][at%nodesInPart] = node
	}
	return next
}
