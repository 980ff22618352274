package estates

import (
	"context"

	"berth/coordinator/api/answer"
	"berth/coordinator/control/plans"
	"berth/coordinator/control/volumes"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Control does to volumes what needs the leader, and knows what its loops found. Package control implements it.
type Control interface {
	DeleteDisk(ctx context.Context, request volumes.DeleteDisk) error
	GrowDisk(ctx context.Context, request volumes.GrowDisk) (model.Resource, error)
	ImportImage(ctx context.Context, request volumes.ImportImage) (model.Resource, error)
	DeleteImage(ctx context.Context, request volumes.DeleteImage) error
	// Spread is that of a customer, by its ID.
	Spread(customer string) (plans.Spread, error)
	// PoolLocks is what is known of the locks of files in a shared pool.
	PoolLocks(snapshot *state.Snapshot, pool *model.Resource) evidence.Locks
	// LastPass is what the last look of the leader's loop at a cluster, by its name, came to.
	LastPass(cluster string) (plans.LastPass, bool)
}

// ResourceCalls are the calls about what people declare: resources of all kinds but groups, their keys, and the estate as a
// whole.
type ResourceCalls struct {
	*answer.Source
	Control Control
}

// GroupCalls are the calls about groups.
type GroupCalls struct {
	*answer.Source
	Control Control
}

// VolumeCalls are the calls about the content of disks and images, and the pools that have it.
type VolumeCalls struct {
	*answer.Source
	Control Control
	imports *spool
}

// NewVolumeCalls makes VolumeCalls. Imports is the directory for files of images on their way.
func NewVolumeCalls(on *answer.Source, control Control, imports string) VolumeCalls {
	return VolumeCalls{Source: on, Control: control, imports: newSpool(imports)}
}
