package wire

import (
	"iter"

	"berth/coordinator/operation"
	"berth/coordinator/prediction"
	berthv1 "berth/shared/gen/berth/v1"
)

// Predicted is what a live migration was expected to take when it began, by the operations that have ended, the oldest first; nil: nothing
// told.
func Predicted(op *operation.Operation, ended iter.Seq[*operation.Operation]) *berthv1.MigrationPrediction {
	if op.Kind != operation.Migrate {
		return nil
	}
	found, known := prediction.Over(ended, op.CreatedAt).Of(op)
	if !known {
		return nil
	}
	return &berthv1.MigrationPrediction{
		ElapsedSeconds: found.Copy.Seconds(), DataProcessedBytes: int64(found.Sent), DowntimeSeconds: found.Downtime.Seconds(),
		Of: int32(found.By),
	}
}
