package promised

import "berth/coordinator/model"

// NothingProves tells whether only somebody's word proves that a dead node is off, as far as it is about a VM.
func NothingProves(node *model.Node, ha bool) bool {
	switch {
	case ha && node.Fence.Method == model.FenceCommand:
		return node.Fencing.Struck != "" // a person is to look at its device first
	case ha && node.Fence.Method == model.FenceWatchdog:
		return node.Watchdog == 0
	default:
		return true
	}
}
