package inventory

import "slices"

// changes are the nodes that something was heard of, in the order in which it was heard: what a view made earlier does not show.
type changes struct {
	forgotten uint64   // how many there were before the first of nodes
	nodes     []string // by ID; empty: everything is another
	noted     func(node string)
}

// keptChanges is how many are kept at least.
const keptChanges = 1 << 15

// note adds a node.
func (c *changes) note(node string) {
	c.noted(node)
	if len(c.nodes) >= 2*keptChanges {
		c.forgotten += keptChanges
		c.nodes = slices.Delete(c.nodes, 0, keptChanges)
	}
	c.nodes = append(c.nodes, node)
}

// count grows with each.
func (c *changes) count() uint64 { return c.forgotten + uint64(len(c.nodes)) }

// since are those after a count, some more than once. It is false if they are not kept, or everything is another.
func (c *changes) since(count uint64) ([]string, bool) {
	if count < c.forgotten || count > c.count() {
		return nil, false
	}
	nodes := c.nodes[count-c.forgotten:]
	return nodes, !slices.Contains(nodes, "")
}
