package view

import (
	"slices"
	"strings"

	"berth/coordinator/view/column"
)

// Column is one figure of each node of a cluster, in the order of the nodes.
type Column[T comparable] = column.Column[T]

// ColumnOf is a column of some values. It keeps the slice; nil is a column that was not given.
func ColumnOf[T comparable](values ...T) Column[T] { return column.Of(values...) }

// revise sets some rows of a column that others may have.
func revise[T comparable](list *Column[T], rows []int, nodes []*NodeView, of func(*NodeView) T) {
	shared := column.Share(list)
	for i, row := range rows {
		shared.Set(row, of(nodes[i]))
	}
}

// NodeList is a list of nodes by ID. It never changes: the view after a report has another one, which shares all parts but that of the
// node that reported.
type NodeList struct{ Column[*NodeView] }

// NodesOf is a list of some nodes, given in the order of their IDs. It keeps the slice.
func NodesOf(nodes []*NodeView) NodeList { return NodeList{ColumnOf(nodes...)} }

// search finds the place of a node by its ID, or where it would be.
func (l NodeList) search(id string) (int, bool) {
	return l.Search(func(n *NodeView) bool { return n.Node.ID > id }, func(n *NodeView) bool { return n.Node.ID == id })
}

// with is the list with other nodes at some places.
func (l NodeList) with(nodes map[int]*NodeView) NodeList {
	shared := column.Share(&l.Column)
	for at, node := range nodes {
		shared.Set(at, node)
	}
	return l
}

// joined is the list with some nodes more, and without some, given by ID. IDs grow with time, so a node that is enrolled is mostly the last
// one, and all parts but the last are shared.
func (l NodeList) joined(come []*NodeView, gone []string) NodeList {
	first := l.Len()
	for _, node := range come {
		at, _ := l.search(node.Node.ID)
		first = min(first, at)
	}
	for _, id := range gone {
		at, _ := l.search(id)
		first = min(first, at)
	}
	tail := make([]*NodeView, 0, l.Len()-first+len(come))
	for i := first; i < l.Len(); i++ {
		if node := l.At(i); !slices.Contains(gone, node.Node.ID) {
			tail = append(tail, node)
		}
	}
	for _, node := range come {
		at, _ := slices.BinarySearchFunc(tail, node.Node.ID, byID)
		tail = slices.Insert(tail, at, node)
	}
	return NodeList{l.Ending(first, tail...)}
}

func byID(n *NodeView, id string) int { return strings.Compare(n.Node.ID, id) }
