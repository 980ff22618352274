package wire

import (
	"berth/coordinator/operation"
	"berth/coordinator/prediction"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Predicted is what a live migration was expected to take when it began, by those that had ended; nil: nothing told.
func Predicted(op *operation.Operation, ended prediction.Measured) *berthv1.MigrationPrediction {
	return PredictedBy(op, ended, prediction.Hints{Disks: copied(op)})
}

// PredictedBy is that of one about which more is known.
func PredictedBy(op *operation.Operation, ended prediction.Measured, known prediction.Hints) *berthv1.MigrationPrediction {
	found, told := prediction.Before(ended, op).Of(op, known)
	if !told {
		return nil
	}
	return &berthv1.MigrationPrediction{
		ElapsedSeconds: found.Copy.Seconds(), DataProcessedBytes: int64(found.Sent), DowntimeSeconds: found.Downtime.Seconds(),
		Of: int32(found.By), LeastSeconds: found.Least.Seconds(), MostSeconds: found.Most.Seconds(), By: found.Why,
	}
}

// copied is how large the disks are that a migration takes along: as long as it lives by its orders, and then by what libvirt counted.
func copied(op *operation.Operation) (size units.Bytes) {
	for i := range op.Volumes {
		size += op.Volumes[i].Capacity
	}
	if size == 0 && op.Migration != nil {
		size = op.Migration.DiskTotal
	}
	return size
}
