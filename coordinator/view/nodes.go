package view

import (
	"cmp"
	"slices"
	"sort"
)

// NodeList is a list of nodes by ID. It never changes: the view after a report has another one, which shares all parts but that of the
// node that reported.
type NodeList struct{ Column[*NodeView] }

// NodesOf is a list of some nodes, given in the order of their IDs. It keeps the slice.
func NodesOf(nodes []*NodeView) NodeList { return NodeList{ColumnOf(nodes...)} }

// search finds the place of a node by its ID.
func (l NodeList) search(id string) (int, bool) {
	part := sort.Search(len(l.parts), func(i int) bool { return l.parts[i][0].Node.ID > id }) - 1
	if part < 0 {
		return 0, false
	}
	at, found := slices.BinarySearchFunc(l.parts[part], id, func(n *NodeView, id string) int { return cmp.Compare(n.Node.ID, id) })
	return part*inPart + at, found
}

// with is the list with other nodes at some places.
func (l NodeList) with(nodes map[int]*NodeView) NodeList {
	owned := own[*NodeView]{column: &l.Column}
	for at, node := range nodes {
		owned.set(at, node)
	}
	return l
}
