package explain

import (
	"fmt"

	"berth/coordinator/api/answer"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Waits is what an operation waits for that nobody hears: the node that is asked next is silent. Empty: it waits for no such node, or
// asks none, because it has ended or a person has to decide.
func Waits(p *answer.Moment, op *operation.Operation) string {
	vm, _ := p.VM(op.VM)
	for _, order := range operation.Orders(*op, vm, 0) {
		node := p.View().Node(order.Node)
		if node == nil || node.Facts.Liveness != model.Unreachable {
			continue
		}
		return fmt.Sprintf("%s, which is silent: it goes on once that is heard, or 'berth node fence %s' has proven that it is off "+
			"(--confirmed-off: somebody has seen that)", node.Node.Name, node.Node.Name)
	}
	return ""
}
