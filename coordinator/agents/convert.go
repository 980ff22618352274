package agents

import (
	"math"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/inventory"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// command puts an order on the wire.
func command(term uint64, order operation.Order) *berthv1.Command {
	c := &berthv1.Command{
		OperationId: order.Operation, Step: order.Step, Term: term, Epoch: order.Epoch, VmId: order.VM, VmName: order.VMName,
	}
	switch order.Action {
	case operation.ActStart:
		c.Action = &berthv1.Command_Start{Start: &berthv1.StartCommand{Spec: spec(order.Spec)}}
	case operation.ActStop:
		c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{Force: order.Force, GraceSeconds: order.Grace.Seconds()}}
	case operation.ActMigrate:
		c.Action = &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{
			TargetUri: order.TargetURI, TargetAddress: order.TargetHost, TargetNode: order.TargetNode, TargetEpoch: order.TargetEpoch,
			BandwidthBps: int64(order.Bandwidth), DeadlineSeconds: order.Deadline.Seconds(), Spec: spec(order.Spec),
		}}
	case operation.ActResume:
		c.Action = &berthv1.Command_Resume{Resume: &berthv1.ResumeCommand{}}
	case operation.ActDiscard:
		c.Action = &berthv1.Command_Discard{Discard: &berthv1.DiscardCommand{}}
	case operation.ActInspect:
		c.Action = &berthv1.Command_Inspect{Inspect: &berthv1.InspectCommand{}}
	}
	return c
}

func spec(s cluster.VMSpec) *berthv1.VMSpec {
	out := &berthv1.VMSpec{
		MemoryBytes: int64(s.Memory), Vcpus: int32(min(s.VCPUs, math.MaxInt32)),
		Kernel: s.Kernel, Initrd: s.Initrd, Cmdline: s.Cmdline, Networks: s.Networks, Xml: s.XML,
	}
	for _, disk := range s.Disks {
		out.Disks = append(out.Disks, &berthv1.Disk{
			Path: disk.Path, Format: disk.Format, Bus: disk.Bus, ReadOnly: disk.ReadOnly,
		})
	}
	return out
}

// answer takes a command's result from the wire.
func answer(node string, result *berthv1.CommandResult) operation.Answer {
	a := operation.Answer{
		Operation: result.GetOperationId(), Node: node, Step: result.GetStep(), Outcome: outcome(result.GetOutcome()),
		Code: result.GetErrorCode(), Error: result.GetError(), Seen: observation(result.GetDomain()),
	}
	if stats := result.GetMigration(); stats != nil {
		a.Migration = migration(stats)
	}
	return a
}

// outcome reads an outcome. One that this release does not know leaves everything open.
func outcome(o berthv1.CommandOutcome) operation.Outcome {
	switch o {
	case berthv1.CommandOutcome_COMMAND_OUTCOME_DONE:
		return operation.OutcomeDone
	case berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED:
		return operation.OutcomeFailed
	case berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED:
		return operation.OutcomeRefused
	case berthv1.CommandOutcome_COMMAND_OUTCOME_CANCELLED:
		return operation.OutcomeCancelled
	default:
		return operation.OutcomeAmbiguous
	}
}

// observation is what the agent saw. An answer that says nothing of the domain has not seen it absent.
func observation(domain *berthv1.Domain) operation.Observation {
	if domain == nil {
		return operation.Observation{State: cluster.DomainUnknown}
	}
	return operation.Observation{
		State: inventory.StateOf(domain.GetState()), Epoch: domain.GetEpoch(), JobActive: domain.GetJobActive(),
	}
}

func migration(stats *berthv1.MigrationStats) *operation.MigrationStats {
	return &operation.MigrationStats{
		Elapsed:       duration(stats.GetElapsedSeconds()),
		DataTotal:     units.Bytes(stats.GetDataTotalBytes()),
		DataProcessed: units.Bytes(stats.GetDataProcessedBytes()),
		DataRemaining: units.Bytes(stats.GetDataRemainingBytes()),
		MemoryBPS:     units.Bytes(stats.GetMemoryBps()),
		DirtyRate:     stats.GetDirtyRatePages(),
		Iteration:     int(stats.GetIteration()),
		Downtime:      optional(stats.DowntimeSeconds),
		Handover:      optional(stats.HandoverSeconds),
	}
}

func optional(seconds *float64) *time.Duration {
	if seconds == nil {
		return nil
	}
	d := duration(*seconds)
	return &d
}

// duration reads seconds. What is no length of time is none.
func duration(seconds float64) time.Duration {
	const most = float64(math.MaxInt64) / float64(time.Second)
	if !(seconds > 0) {
		return 0
	}
	if seconds >= most {
		return math.MaxInt64
	}
	return time.Duration(seconds * float64(time.Second))
}
