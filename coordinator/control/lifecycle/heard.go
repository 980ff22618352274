package lifecycle

// heard tells whether a node is heard, so that it can be given an order.
func (o *Operations) heard(node string) bool {
	return o.Inventory.Facts(node, o.Now()).Liveness.Answers()
}
