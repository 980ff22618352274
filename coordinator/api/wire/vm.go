package wire

import (
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/estate"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// VMReport is all that one VM's message is made of.
type VMReport struct {
	VM        cluster.VM
	State     berthv1.VMState
	Condition string // in words; empty when nothing is unusual
	NodeName  func(id string) string
	Telemetry *berthv1.DomainTelemetry

	ResourceName  func(id string) string // of what the VM links to
	Cluster       string                 // name, here and below; of its VDC, or the default one
	Customer      string
	BillingEntity string
	Groups        []string // names of those that it is a member of
	Within        string   // kind/name; empty: its VDC says
	Volumes       []VMVolume
}

// VMVolume is a disk that is a volume or is to become one.
type VMVolume struct {
	Disk cluster.Resource
	Size units.Bytes // 0: not known
}

// VM makes the message of one VM.
func VM(report VMReport) *berthv1.VM {
	vm := report.VM
	return &berthv1.VM{
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
		Condition:      report.Condition,
		Revision:       vm.Revision,
		Vdc:            nameOf(report.ResourceName, vm.VDC),
		Offer:          nameOf(report.ResourceName, vm.Offer),
		Image:          nameOf(report.ResourceName, vm.Image),
		Customer:       report.Customer,
		BillingEntity:  report.BillingEntity,
		Cluster:        report.Cluster,
		Disks:          namesOf(report.ResourceName, vm.Disks),
		Nics:           namesOf(report.ResourceName, vm.NICs),
		Keys:           Keys(vm.Keys),
		Sticky:         Keys(vm.Sticky),
		Home:           nameOf(report.NodeName, vm.Home),
		Labels:         vm.Labels,
		Migration:      estate.MigrationText(vm.Migration),
		Preferred:      namesOf(report.NodeName, vm.Preferred),
		Groups:         report.Groups,
		MovedAt:        timestamp(vm.MovedAt),
		Within:         report.Within,
		Cpu:            vm.CPU,
		Adopted:        vm.Adopted,
		Volumes:        vmDisks(report),
		Ha:             vm.HA,
		Restarts:       int32(vm.Restarts),
		Discards:       discards(report),
	}
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
			Disk: disk.Name, CapacityBytes: int64(report.Volumes[i].Size), Image: nameOf(report.ResourceName, disk.Links[estate.LinkImage]),
			Keep: estate.Kept(disk),
		}
		if made := disk.Volume; made != nil {
			message.Pool, message.Volume = report.ResourceName(made.Pool), made.Name
			if len(made.Nodes) > 0 {
				message.Node = report.NodeName(made.Nodes[0])
			}
		}
		messages = append(messages, message)
	}
	return messages
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
func Spec(spec cluster.VMSpec) *berthv1.VMSpec {
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
	}
	for _, disk := range spec.Disks {
		message.Disks = append(message.Disks, &berthv1.Disk{
			Path: disk.Path, Format: disk.Format, Bus: disk.Bus, ReadOnly: disk.ReadOnly, Pool: disk.Pool, Volume: disk.Volume,
		})
	}
	return message
}

// SpecFrom reads the specification that a request carries, unchecked.
func SpecFrom(message *berthv1.VMSpec) cluster.VMSpec {
	spec := cluster.VMSpec{
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
	}
	for _, disk := range message.GetDisks() {
		spec.Disks = append(spec.Disks, cluster.Disk{
			Path: disk.GetPath(), Format: disk.GetFormat(), Bus: disk.GetBus(), ReadOnly: disk.GetReadOnly(),
			Pool: disk.GetPool(), Volume: disk.GetVolume(),
		})
	}
	return spec
}
