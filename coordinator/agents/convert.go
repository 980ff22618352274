package agents

import (
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// For is an order as an agent can be given it that knows these capabilities. To one that cannot be told that an order is taken back it
// goes out as before: nothing else tells how the order has ended.
func For(knows []string, order operation.Order) operation.Order {
	order.TakenBack = order.TakenBack && slices.Contains(knows, capability.DatedOrders)
	return order
}

// Command puts an order on the wire, in the message that has the name of its action.
func Command(term uint64, order operation.Order) *berthv1.Command {
	c := &berthv1.Command{
		OperationId: order.Operation, Step: order.Step, Term: term, Epoch: order.Epoch, VmId: order.VM, VmName: order.VMName,
		TakenBack: order.TakenBack,
	}
	message := c.ProtoReflect()
	action := message.Descriptor().Oneofs().ByName("action").Fields().ByName(protoreflect.Name(order.Action))
	if action == nil {
		return c // the agent refuses it
	}
	into := message.Mutable(action).Message()
	for i := range action.Message().Fields().Len() {
		field := action.Message().Fields().Get(i)
		switch value := parameters[field.Name()](&order).(type) {
		case []*berthv1.Volume:
			list(into, field, value)
		case []*berthv1.DeviceEdit:
			list(into, field, value)
		case []*berthv1.SnapshotFile:
			list(into, field, value)
		case []string:
			for _, one := range value {
				into.Mutable(field).List().Append(protoreflect.ValueOf(one))
			}
		case proto.Message:
			into.Set(field, protoreflect.ValueOf(value.ProtoReflect()))
		default:
			into.Set(field, protoreflect.ValueOf(value))
		}
	}
	return c
}

func list[M proto.Message](into protoreflect.Message, field protoreflect.FieldDescriptor, messages []M) {
	for _, one := range messages {
		into.Mutable(field).List().Append(protoreflect.ValueOf(one.ProtoReflect()))
	}
}

// parameters are what the messages of actions may ask of an order, by the names of their fields.
var parameters = map[protoreflect.Name]func(*operation.Order) any{
	"spec":       func(o *operation.Order) any { return wire.Spec(o.Spec) },
	"volumes":    func(o *operation.Order) any { return volumes(o.Volumes) },
	"persistent": func(o *operation.Order) any { return o.Persistent },
	"edits": func(o *operation.Order) any {
		var edits []*berthv1.DeviceEdit
		for _, one := range o.Edits {
			edits = append(edits, &berthv1.DeviceEdit{Kind: one.Kind, Key: one.Key, Xml: one.XML})
		}
		return edits
	},

	"tag":    func(o *operation.Order) any { return o.Snapshot.Tag },
	"off":    func(o *operation.Order) any { return o.Snapshot.Off },
	"freeze": func(o *operation.Order) any { return string(o.Snapshot.Freeze) },
	"files": func(o *operation.Order) any {
		var files []*berthv1.SnapshotFile
		for _, one := range o.Snapshot.Disks {
			files = append(files, &berthv1.SnapshotFile{
				Target: one.Target, Path: one.Source.Path, Pool: one.Source.Pool, Volume: one.Source.Volume,
			})
		}
		return files
	},

	"memory_bytes": func(o *operation.Order) any { return int64(o.Size.Memory) },
	"vcpus":        func(o *operation.Order) any { return int32(o.Size.VCPUs) }, // at most model.MaxVCPUs

	"force":         func(o *operation.Order) any { return o.Force },
	"grace_seconds": func(o *operation.Order) any { return o.Grace.Seconds() },

	"target_uri":       func(o *operation.Order) any { return o.TargetURI },
	"target_address":   func(o *operation.Order) any { return o.TargetHost },
	"target_node":      func(o *operation.Order) any { return o.TargetNode },
	"target_epoch":     func(o *operation.Order) any { return o.TargetEpoch },
	"bandwidth_bps":    func(o *operation.Order) any { return int64(o.Bandwidth) },
	"deadline_seconds": func(o *operation.Order) any { return o.Deadline.Seconds() },

	"copy_storage": func(o *operation.Order) any { return o.CopyStorage },
	"unwatched":    func(o *operation.Order) any { return o.Unwatched },
	"given_up":     func(o *operation.Order) any { return o.GivenUp },
	"shared_pools": func(o *operation.Order) any { return o.SharedPools },
	"from": func(o *operation.Order) any {
		from, _ := copied(o)
		return from
	},
	"to": func(o *operation.Order) any {
		_, to := copied(o)
		return to
	},
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
func copied(order *operation.Order) (from, to []*berthv1.Volume) {
	if !order.CopyStorage {
		return nil, nil
	}
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
		Code: errorCode(result.GetCode(), result.GetErrorCode()), Error: result.GetError(), Note: result.GetNote(),
		Frozen:   result.GetFrozen(),
		Seen:     observation(result.GetDomain()),
		Repeated: result.GetRepeated(),
	}
	for _, one := range result.GetOverlays() {
		a.Overlays = append(a.Overlays, operation.Overlay{
			Target: one.GetTarget(), Path: one.GetPath(), Overlay: one.GetOverlay(), Format: one.GetFormat(), Rivals: one.GetRivals(),
		})
	}
	if !a.Repeated { // what was seen earlier may be of an earlier boot
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
		State: operation.Seen(inventory.StateOf(domain.GetState())), Epoch: inventory.EpochOf(domain.GetEpoch()),
		JobActive: domain.GetJobActive(),
		Ended:     domain.GetEndedHere(), Missing: domain.GetMissing(), Unseen: domain.GetEndUnseen(),
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
