package view

import "berth/coordinator/model"

// MassSilence is that of the view's nodes. Nodes in maintenance do not count. Those that are fenced do, as long as they are
// silent: or a fault that spreads would take one node after the other.
func (v *View) MassSilence() string {
	silent, all := 0, 0
	for _, node := range v.Nodes.All() {
		if node.Node.Maintenance {
			continue
		}
		all++
		if l := node.Facts.Liveness; l == model.Unreachable || l == model.Suspect {
			silent++
		}
	}
	return model.MassSilence(silent, all)
}
