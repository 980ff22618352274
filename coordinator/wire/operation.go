package wire

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

// Operation makes the message of one operation. Nodes appear under the names that they had when it began.
func Operation(op operation.Operation) *berthv1.Operation {
	return &berthv1.Operation{
		Id:         op.ID,
		Kind:       string(op.Kind),
		Vm:         op.VMName,
		VmId:       op.VM,
		Caller:     op.Caller,
		Source:     op.SourceName,
		Target:     op.TargetName,
		Phase:      string(op.Phase),
		Result:     result(op.Result),
		Message:    op.Message,
		Attempt:    op.Attempt,
		Epoch:      op.Epoch,
		DecisionId: op.Decision,
		CreatedAt:  timestamp(op.CreatedAt),
		UpdatedAt:  timestamp(op.UpdatedAt),
		EndedAt:    timestamp(op.EndedAt),
		Migration:  migration(op.Migration),
		Evidence:   op.Evidence,
		PlanId:     op.Plan,

		Doing:       op.Doing(),
		Cancelled:   op.Cancelled(),
		CopyStorage: op.CopyStorage,
		Resolution:  op.Resolution,
		ResolvedBy:  op.ResolvedBy,
	}
}

// CopyView makes the message of what a node shows of a VM; no domain: none. Absent is said only by a node that positively tells.
func CopyView(node *view.NodeView, domain *model.Domain, at time.Time) *berthv1.CopyView {
	facts := node.Facts
	view := &berthv1.CopyView{
		Node: node.Node.Name, NodeId: node.Node.ID, NodeState: Liveness(facts.Liveness), State: berthv1.DomainState_DOMAIN_STATE_UNKNOWN,
	}
	heard := facts.InventoryAt
	if facts.TelemetryAt.After(heard) {
		heard = facts.TelemetryAt
	}
	if !heard.IsZero() {
		view.AgeSeconds = max(at.Sub(heard).Seconds(), 0)
	}
	switch {
	case domain != nil:
		view.State, view.StateReason, view.Epoch, view.JobActive = DomainState(domain.State), domain.Reason, domain.Epoch, domain.JobActive
	case facts.Liveness == model.Up && facts.Inventory && facts.DomainsKnown:
		view.State = berthv1.DomainState_DOMAIN_STATE_ABSENT
	}
	return view
}

// DomainState is the state of a domain in the words of the protocol.
func DomainState(state model.DomainState) berthv1.DomainState {
	switch state {
	case model.DomainAbsent:
		return berthv1.DomainState_DOMAIN_STATE_ABSENT
	case model.DomainRunning:
		return berthv1.DomainState_DOMAIN_STATE_RUNNING
	case model.DomainPaused:
		return berthv1.DomainState_DOMAIN_STATE_PAUSED
	case model.DomainPausedMigration:
		return berthv1.DomainState_DOMAIN_STATE_PAUSED_MIGRATION
	case model.DomainShutoff:
		return berthv1.DomainState_DOMAIN_STATE_SHUTOFF
	case model.DomainCrashed:
		return berthv1.DomainState_DOMAIN_STATE_CRASHED
	case model.DomainOrphan:
		return berthv1.DomainState_DOMAIN_STATE_ORPHAN
	default:
		return berthv1.DomainState_DOMAIN_STATE_UNKNOWN
	}
}

func result(r operation.Result) berthv1.OperationResult {
	switch r {
	case operation.Pending:
		return berthv1.OperationResult_OPERATION_RESULT_RUNNING
	case operation.Done:
		return berthv1.OperationResult_OPERATION_RESULT_DONE
	case operation.Failed:
		return berthv1.OperationResult_OPERATION_RESULT_FAILED
	case operation.Parked:
		return berthv1.OperationResult_OPERATION_RESULT_PARKED
	default:
		return berthv1.OperationResult_OPERATION_RESULT_UNSPECIFIED
	}
}

func migration(stats *operation.MigrationStats) *berthv1.MigrationStats {
	if stats == nil {
		return nil
	}
	return &berthv1.MigrationStats{
		ElapsedSeconds:     stats.Elapsed.Seconds(),
		DataTotalBytes:     int64(stats.DataTotal),
		DataProcessedBytes: int64(stats.DataProcessed),
		DataRemainingBytes: int64(stats.DataRemaining),
		MemoryBps:          int64(stats.MemoryBPS),
		DirtyRatePages:     stats.DirtyRate,
		Iteration:          int32(stats.Iteration),
		DowntimeSeconds:    seconds(stats.Downtime),
		HandoverSeconds:    seconds(stats.Handover),
		DiskTotalBytes:     int64(stats.DiskTotal),
		DiskProcessedBytes: int64(stats.DiskProcessed),
		DiskRemainingBytes: int64(stats.DiskRemaining),
	}
}

func seconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}
