package placement

import (
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// ShortOf says which VMs of a cluster with spare nodes could not be restarted if nodes failed now; empty: all could be, or
// the cluster has no spare nodes.
func ShortOf(columns *view.Columns) string {
	short := rule.ShortOf(columns)
	if short.Total == 0 {
		return ""
	}
	return constraint.SayUncovered(&short)
}
