package wire

import (
	"berth/coordinator/balance"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	berthv1 "berth/shared/gen/berth/v1"
)

// PlanReport is all that one plan's message is made of.
type PlanReport struct {
	Plan  model.Plan
	Group string        // name, of a repair
	Moves []moving.Move // how far they have come; nil leaves them out, for lists

	// Progress is what was last reported of an operation that copies; nil if nothing was.
	Progress func(operation string) *berthv1.MigrationStats
	// Preflight is what was found out before a drain; nil for any other plan.
	Preflight *balance.Preflight
}

// Plan makes the message of one plan.
func Plan(report PlanReport) *berthv1.Plan {
	plan := report.Plan
	message := &berthv1.Plan{
		Id:           plan.ID,
		Kind:         string(plan.Kind),
		State:        string(plan.State),
		Cluster:      plan.Cluster,
		Node:         plan.NodeName,
		Group:        report.Group,
		Policy:       plan.Policy,
		Caller:       plan.Caller,
		Reason:       plan.Reason,
		Parallel:     int32(plan.Parallel),
		BandwidthBps: int64(plan.Bandwidth),
		Unit:         plan.Unit,
		Message:      plan.Message,
		CreatedAt:    timestamp(plan.CreatedAt),
		EndedAt:      timestamp(plan.EndedAt),
		Revision:     plan.Revision,
	}
	if plan.Unit != "" {
		message.Before, message.Predicted = new(plan.Before), new(plan.Predicted)
	}
	if !plan.ObservedAt.IsZero() {
		message.Observed = new(plan.Observed)
	}
	for _, move := range report.Moves {
		message.Moves = append(message.Moves, moveMessage(move, report.Progress))
	}
	preflight(message, report.Preflight)
	return message
}

func moveMessage(move moving.Move, progress func(string) *berthv1.MigrationStats) *berthv1.Move {
	message := &berthv1.Move{
		Vm:          move.VMName,
		Source:      move.SourceName,
		Target:      move.TargetName,
		State:       move.State,
		Reason:      move.Reason,
		Attempts:    int32(move.Attempts),
		OperationId: move.Operation.ID,
		MemoryBytes: int64(move.Memory),
		Message:     move.Message,
	}
	if move.State == moving.Moving && progress != nil {
		stats := progress(move.Operation.ID)
		message.CopiedBytes, message.RemainingBytes = stats.GetDataProcessedBytes(), stats.GetDataRemainingBytes()
	}
	return message
}

// preflight adds what was found out before a drain. A drain that was begun by an earlier call has none.
func preflight(message *berthv1.Plan, found *balance.Preflight) {
	if found == nil || found.Plan.Kind == "" {
		return
	}
	message.HeadroomBytes, message.LargestVmBytes = new(int64(found.Headroom)), new(int64(found.Largest))
	if found.Estimate > 0 {
		message.EstimateSeconds = new(found.Estimate.Seconds())
	}
	message.Warnings = found.Warnings
}
