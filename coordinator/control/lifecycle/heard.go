package lifecycle

import "berth/coordinator/model"

// heard tells whether a node is heard, so that it can be given an order.
func (o *Operations) heard(node string) bool {
	liveness := o.Inventory.Facts(node, o.Now()).Liveness
	return liveness == model.Up || liveness == model.Degraded
}
