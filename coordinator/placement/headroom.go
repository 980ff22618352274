package placement

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/constraint"
	"berth/coordinator/placement/rule"
)

// ShortOf says which VMs of a cluster with spare nodes could not be restarted if nodes failed now; empty: all could be, or it keeps
// none in spare.
func ShortOf(columns *cluster.Columns) string {
	short := rule.ShortOf(columns)
	if short.Total == 0 {
		return ""
	}
	return constraint.SayUncovered(&short)
}
