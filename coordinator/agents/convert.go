package agents

import (
	"math"
	"slices"
	"time"

	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// Command puts an order on the wire.
func Command(term uint64, order operation.Order) *berthv1.Command {
	c := &berthv1.Command{
		OperationId: order.Operation, Step: order.Step, Term: term, Epoch: order.Epoch, VmId: order.VM, VmName: order.VMName,
	}
	switch order.Action {
	case operation.ActStart:
		c.Action = &berthv1.Command_Start{Start: &berthv1.StartCommand{
			Spec: wire.Spec(order.Spec), Volumes: volumes(order.Volumes), Persistent: order.Persistent,
		}}
	case operation.ActStop:
		c.Action = &berthv1.Command_Stop{Stop: &berthv1.StopCommand{Force: order.Force, GraceSeconds: order.Grace.Seconds()}}
	case operation.ActMigrate:
		c.Action = &berthv1.Command_Migrate{Migrate: &berthv1.MigrateCommand{
			TargetUri: order.TargetURI, TargetAddress: order.TargetHost, TargetNode: order.TargetNode, TargetEpoch: order.TargetEpoch,
			BandwidthBps: int64(order.Bandwidth), DeadlineSeconds: order.Deadline.Seconds(), Spec: wire.Spec(order.Spec),
			CopyStorage: order.CopyStorage,
		}}
		if order.CopyStorage {
			c.GetMigrate().From, c.GetMigrate().To = copied(order)
		}
	case operation.ActResume:
		c.Action = &berthv1.Command_Resume{Resume: &berthv1.ResumeCommand{}}
	case operation.ActDiscard:
		c.Action = &berthv1.Command_Discard{Discard: &berthv1.DiscardCommand{Volumes: volumes(order.Volumes)}}
	case operation.ActInspect:
		c.Action = &berthv1.Command_Inspect{Inspect: &berthv1.InspectCommand{}}
	case operation.ActPrepare:
		c.Action = &berthv1.Command_Prepare{Prepare: &berthv1.PrepareCommand{
			Volumes: volumes(order.Volumes), Spec: wire.Spec(order.Spec),
		}}
	case operation.ActClear:
		c.Action = &berthv1.Command_Clear{Clear: &berthv1.ClearCommand{Volumes: volumes(order.Volumes)}}
	case operation.ActAdopt:
		c.Action = &berthv1.Command_Adopt{Adopt: &berthv1.AdoptCommand{}}
	case operation.ActRelease:
		c.Action = &berthv1.Command_Release{Release: &berthv1.ReleaseCommand{}}
	}
	return c
}

func volumes(orders []model.VolumeOrder) []*berthv1.Volume {
	var out []*berthv1.Volume
	for i := range orders {
		out = append(out, volume(&orders[i]))
	}
	return out
}

func volume(o *model.VolumeOrder) *berthv1.Volume {
	return &berthv1.Volume{
		DiskName: o.DiskName, Pool: o.PoolName, Name: o.Name, Format: o.Format, CapacityBytes: int64(o.Capacity), Shared: o.Shared,
		BackingPool: o.BackingPool, BackingName: o.BackingName, BackingFormat: o.BackingFormat,
		Seed: o.Disk == "",
	}
}

// copied pairs the volumes that go along with those that they are copied into: the same disk's.
func copied(order operation.Order) (from, to []*berthv1.Volume) {
	for i := range order.Replaced {
		of := func(made model.VolumeOrder) bool { return made.Disk == order.Replaced[i].Disk }
		if at := slices.IndexFunc(order.Volumes, of); at >= 0 {
			from, to = append(from, volume(&order.Replaced[i])), append(to, volume(&order.Volumes[at]))
		}
	}
	return from, to
}

// Answer takes a command's result from the wire. Boot is that of the host whose agent gave it.
func Answer(node, boot string, result *berthv1.CommandResult) operation.Answer {
	a := operation.Answer{
		Operation: result.GetOperationId(), Node: node, Step: result.GetStep(), Outcome: outcome(result.GetOutcome()),
		Code: errorCode(result.GetCode(), result.GetErrorCode()), Error: result.GetError(), Seen: observation(result.GetDomain()),
	}
	if !result.GetRepeated() { // what was seen earlier may be of an earlier boot
		a.Seen.Boot = boot
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
		return operation.Observation{State: model.DomainUnknown}
	}
	return operation.Observation{
		State: inventory.StateOf(domain.GetState()), Epoch: domain.GetEpoch(), JobActive: domain.GetJobActive(), Ended: domain.GetEndedHere(),
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
		DiskTotal:     units.Bytes(stats.GetDiskTotalBytes()),
		DiskProcessed: units.Bytes(stats.GetDiskProcessedBytes()),
		DiskRemaining: units.Bytes(stats.GetDiskRemainingBytes()),
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
