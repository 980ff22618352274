package wire

import (
	"slices"

	"berth/coordinator/drift"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// VMReport is all that one VM's message is made of.
type VMReport struct {
	VM        model.VM
	State     berthv1.VMState
	Condition model.Condition
	NodeName  func(id string) string
	Telemetry *berthv1.DomainTelemetry
	Domain    *model.Domain // as its holder shows it; nil: it does not

	ResourceName  func(id string) string // of what the VM links to
	Cluster       string                 // name, here and below; of its VDC, or the default one
	Customer      string
	BillingEntity string
	Groups        []string // names of those that it is a member of
	Within        string   // kind/name; empty: its VDC says
	Volumes       []VMVolume
	Immovable     []string // what keeps it on its node while it runs
}

// VMVolume is a disk that is a volume or is to become one.
type VMVolume struct {
	Disk model.Resource
	Size units.Bytes // 0: not known
}

var conditionKinds = map[model.ConditionKind]berthv1.ConditionKind{
	model.NoCondition:    berthv1.ConditionKind_CONDITION_KIND_UNSPECIFIED,
	model.OtherCondition: berthv1.ConditionKind_CONDITION_KIND_OTHER,
	model.OutOfBand:      berthv1.ConditionKind_CONDITION_KIND_OUT_OF_BAND,
	model.RunsTwice:      berthv1.ConditionKind_CONDITION_KIND_RUNS_TWICE,
	model.RestartRefused: berthv1.ConditionKind_CONDITION_KIND_RESTART_REFUSED,
	model.RestartRests:   berthv1.ConditionKind_CONDITION_KIND_RESTART_RESTS,
	model.HostBooted:     berthv1.ConditionKind_CONDITION_KIND_HOST_BOOTED,
	model.StorageLate:    berthv1.ConditionKind_CONDITION_KIND_STORAGE_LATE,
	model.RestartHeld:    berthv1.ConditionKind_CONDITION_KIND_RESTART_HELD,
	model.NoRoom:         berthv1.ConditionKind_CONDITION_KIND_NO_ROOM,
	model.GuestPanicked:  berthv1.ConditionKind_CONDITION_KIND_GUEST_PANICKED,
	model.ProcessDied:    berthv1.ConditionKind_CONDITION_KIND_PROCESS_DIED,
	model.RestartBehind:  berthv1.ConditionKind_CONDITION_KIND_RESTART_BEHIND,
	model.Parked:         berthv1.ConditionKind_CONDITION_KIND_PARKED,
	model.LostMoving:     berthv1.ConditionKind_CONDITION_KIND_LOST_MOVING,
	model.VolumesLeft:    berthv1.ConditionKind_CONDITION_KIND_VOLUMES_LEFT,
	model.HolderOff:      berthv1.ConditionKind_CONDITION_KIND_HOLDER_OFF,
	model.NowhereSeen:    berthv1.ConditionKind_CONDITION_KIND_NOWHERE_SEEN,
	model.NodeSilent:     berthv1.ConditionKind_CONDITION_KIND_NODE_SILENT,
	model.Paused:         berthv1.ConditionKind_CONDITION_KIND_PAUSED,
	model.NotRunning:     berthv1.ConditionKind_CONDITION_KIND_NOT_RUNNING,
	model.NotStopped:     berthv1.ConditionKind_CONDITION_KIND_NOT_STOPPED,
	model.RunsElsewhere:  berthv1.ConditionKind_CONDITION_KIND_RUNS_ELSEWHERE,
}

// VM makes the message of one VM.
func VM(report VMReport) *berthv1.VM {
	vm := report.VM
	message := &berthv1.VM{
		Id:             vm.ID,
		Name:           vm.Name,
		Spec:           Spec(vm.Spec),
		State:          report.State,
		Node:           nameOf(report.NodeName, vm.Holder),
		NodeId:         vm.Holder,
		Epoch:          vm.Epoch,
		OperationId:    vm.Operation,
		LastNode:       nameOf(report.NodeName, vm.LastNode),
		LastDecisionId: vm.Decision,
		CreatedAt:      timestamp(vm.CreatedAt),
		StartedAt:      timestamp(vm.StartedAt),
		Telemetry:      report.Telemetry,
		Condition:      report.Condition.Text,
		ConditionKind:  conditionKinds[report.Condition.What()],
		ConditionAbout: nameOf(report.NodeName, report.Condition.About),
		Revision:       vm.Revision,
		Customer:       report.Customer,
		BillingEntity:  report.BillingEntity,
		Cluster:        report.Cluster,
		Keys:           Keys(vm.Keys),
		Sticky:         Keys(vm.Sticky),
		Home:           nameOf(report.NodeName, vm.Home),
		Groups:         report.Groups,
		MovedAt:        timestamp(vm.MovedAt),
		Within:         report.Within,
		Cpu:            vm.CPU,
		Adopted:        vm.Adopted,
		Volumes:        vmDisks(report),
		Restarts:       int32(vm.Restarts),
		Discards:       discards(report),
		Drift:          drifted(report),
		Bound:          nameOf(report.NodeName, vm.Bound),
		Immovable:      report.Immovable,
		PausedBy:       vm.Paused.By,
		PausedAt:       timestamp(vm.Paused.At),
		Snapshots:      snapshots(&vm),
		Reverting:      vm.Reverting,
	}
	if vm.Holder != "" {
		size := drift.RunsAs(&vm, report.Domain)
		message.Running = &berthv1.VMSize{MemoryBytes: int64(size.Memory), Vcpus: int32(size.VCPUs)}
	}
	for _, one := range drift.AtNextStart(&vm, report.Domain) {
		message.NextStart = append(message.NextStart, &berthv1.PendingChange{
			Field: one.Field, Now: one.Was, Next: one.Next, SetBy: one.By, SetAt: timestamp(one.At),
		})
	}
	for _, one := range vm.ChangedLive() {
		message.ChangedLive = append(message.ChangedLive, &berthv1.PendingChange{
			Field: one.Field, Now: one.Was, Next: one.Next, SetBy: one.By, SetAt: timestamp(one.At),
		})
	}
	for i := range vmFields {
		vmFields[i].write(message.ProtoReflect(), &vm, func(kind model.Kind, id string) string {
			if kind == model.KindNode {
				return report.NodeName(id)
			}
			return report.ResourceName(id)
		})
	}
	return message
}

func drifted(report VMReport) *berthv1.Drift {
	drift := report.VM.Drift
	if drift == nil {
		return nil
	}
	message := &berthv1.Drift{
		Node: nameOf(report.NodeName, drift.Node), Since: timestamp(drift.Since), Accepted: drift.Accepted, Reverted: drift.Reverted,
	}
	for _, edit := range drift.Edits {
		message.Devices = append(message.Devices, &berthv1.DriftedDevice{
			Kind: edit.Kind, Key: edit.Key, Was: edit.Was, Is: edit.Is,
			By: edit.By, At: timestamp(edit.At), Found: edit.Found, Rivals: edit.Rivals,
		})
	}
	return message
}

func snapshots(vm *model.VM) (messages []*berthv1.Snapshot) {
	for _, one := range vm.Snapshots {
		message := &berthv1.Snapshot{
			Name: one.Name, Tag: one.Tag, TakenAt: timestamp(one.TakenAt), TakenBy: one.TakenBy, Description: one.Description,
			Consistency: string(one.Consistency), Partial: one.Partial,
		}
		for _, disk := range one.Disks {
			message.Disks = append(message.Disks, &berthv1.SnapshotDisk{Target: disk.Target, Source: disk.Source.Text()})
		}
		messages = append(messages, message)
	}
	return messages
}

func discards(report VMReport) []*berthv1.Discard {
	var messages []*berthv1.Discard
	for _, left := range report.VM.Discards {
		messages = append(messages, &berthv1.Discard{Node: nameOf(report.NodeName, left.Node), Epoch: left.Epoch})
	}
	return messages
}

func vmDisks(report VMReport) []*berthv1.VMDisk {
	var messages []*berthv1.VMDisk
	for i := range report.Volumes {
		disk := &report.Volumes[i].Disk
		message := &berthv1.VMDisk{
			Disk: disk.Name, CapacityBytes: int64(report.Volumes[i].Size), Image: nameOf(report.ResourceName, disk.Links[schema.LinkImage]),
			Keep: estate.Kept(disk),
		}
		if made := disk.Volume; made != nil {
			message.ShrunkBytes = int64(shrunk(report, disk))
			message.Pool, message.Volume = report.ResourceName(made.Pool), made.Name
			if len(made.Nodes) > 0 {
				message.Node = report.NodeName(made.Nodes[0])
			}
		}
		messages = append(messages, message)
	}
	return messages
}

// shrunk is the size of a disk that somebody has made smaller beside Berth, as the guest of its VM has it; 0: nobody has.
func shrunk(report VMReport, disk *model.Resource) units.Bytes {
	vm, domain := &report.VM, report.Domain
	if vm.Holder == "" || domain == nil || domain.Epoch != vm.Epoch {
		return 0
	}
	if is := drift.SizeShown(vm, disk, vm.Holder, domain.Devices); is < disk.Volume.Capacity {
		return is
	}
	return 0
}

func namesOf(name func(string) string, ids []string) []string {
	names := make([]string, 0, len(ids))
	for _, id := range ids {
		names = append(names, name(id))
	}
	return names
}

// sortedNames are those of members, which are kept in the order of their IDs.
func sortedNames(name func(string) string, ids []string) []string {
	names := namesOf(name, ids)
	slices.Sort(names)
	return names
}

func nameOf(name func(string) string, id string) string {
	if id == "" {
		return ""
	}
	return name(id)
}

// Spec makes the message of a VM's specification.
func Spec(spec model.VMSpec) *berthv1.VMSpec {
	message := &berthv1.VMSpec{
		MemoryBytes: int64(spec.Memory),
		Vcpus:       int32(spec.VCPUs),
		Kernel:      spec.Kernel,
		Initrd:      spec.Initrd,
		Cmdline:     spec.Cmdline,
		Networks:    spec.Networks,
		Xml:         spec.XML,
		Machine:     spec.Machine,
		Firmware:    spec.Firmware,
		Cpu:         spec.CPU,
		UserData:    spec.UserData,

		MaxMemoryBytes: int64(spec.MaxMemory),
		MaxVcpus:       int32(spec.MaxVCPUs),
	}
	for _, disk := range spec.Disks {
		message.Disks = append(message.Disks, &berthv1.Disk{
			Path: disk.Path, Format: disk.Format, Bus: disk.Bus, ReadOnly: disk.ReadOnly, Pool: disk.Pool, Volume: disk.Volume,
		})
	}
	return message
}

// SpecFrom reads the specification that a request carries, unchecked.
func SpecFrom(message *berthv1.VMSpec) model.VMSpec {
	spec := model.VMSpec{
		Memory:   units.Bytes(message.GetMemoryBytes()),
		VCPUs:    int(message.GetVcpus()),
		Kernel:   message.GetKernel(),
		Initrd:   message.GetInitrd(),
		Cmdline:  message.GetCmdline(),
		Networks: message.GetNetworks(),
		XML:      message.GetXml(),
		Machine:  message.GetMachine(),
		Firmware: message.GetFirmware(),
		CPU:      message.GetCpu(),
		UserData: message.GetUserData(),

		MaxMemory: units.Bytes(message.GetMaxMemoryBytes()),
		MaxVCPUs:  int(message.GetMaxVcpus()),
	}
	for _, disk := range message.GetDisks() {
		spec.Disks = append(spec.Disks, model.Disk{
			Path: disk.GetPath(), Format: disk.GetFormat(), Bus: disk.GetBus(), ReadOnly: disk.GetReadOnly(),
			Pool: disk.GetPool(), Volume: disk.GetVolume(),
		})
	}
	return spec
}
