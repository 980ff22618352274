package domxml

import (
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// Capabilities are what a node's hypervisor says of itself.
type Capabilities struct {
	HostUUID       string
	Arch           string
	CPUModel       string
	CPUVendor      string
	CPUFeatures    []string // sorted
	Sockets        int      // of the whole node, as far as libvirt can tell: 0 means it cannot
	CoresPerSocket int
	ThreadsPerCore int
	NUMACells      int
	DomainTypes    []string // for guests of the node's own architecture: kvm, qemu
	MachineTypes   []string // sorted, aliases and what they stand for
}

// ParseCapabilities reads the document of virConnectGetCapabilities.
func ParseCapabilities(text string) (Capabilities, error) {
	var model libvirtxml.Caps
	if err := model.Unmarshal(text); err != nil {
		return Capabilities{}, fmt.Errorf("capabilities XML: %w", err)
	}
	caps := Capabilities{HostUUID: model.Host.UUID}
	if cpu := model.Host.CPU; cpu != nil {
		caps.Arch, caps.CPUModel, caps.CPUVendor = cpu.Arch, cpu.Model, cpu.Vendor
		for _, feature := range cpu.FeatureFlags {
			caps.CPUFeatures = append(caps.CPUFeatures, feature.Name)
		}
		slices.Sort(caps.CPUFeatures)
		if topology := cpu.Topology; topology != nil {
			caps.Sockets, caps.CoresPerSocket, caps.ThreadsPerCore = topology.Sockets, topology.Cores*max(1, topology.Dies), topology.Threads
		}
	}
	if numa := model.Host.NUMA; numa != nil && numa.Cells != nil {
		caps.NUMACells = len(numa.Cells.Cells)
		caps.Sockets = max(caps.Sockets, socketsOf(numa.Cells.Cells))
	}
	for _, guest := range model.Guests {
		if guest.OSType != "hvm" || guest.Arch.Name != caps.Arch {
			continue
		}
		for _, machine := range guest.Arch.Machines {
			caps.MachineTypes = append(caps.MachineTypes, machine.Name)
		}
		for _, domain := range guest.Arch.Domains {
			caps.DomainTypes = append(caps.DomainTypes, domain.Type)
			for _, machine := range domain.Machines {
				caps.MachineTypes = append(caps.MachineTypes, machine.Name)
			}
		}
	}
	slices.Sort(caps.DomainTypes)
	slices.Sort(caps.MachineTypes)
	caps.MachineTypes = slices.Compact(caps.MachineTypes)
	return caps, nil
}

// socketsOf counts the sockets of all NUMA cells. The topology element of the CPU tells those of one cell only.
func socketsOf(cells []libvirtxml.CapsHostNUMACell) int {
	sockets := map[int]bool{}
	for _, cell := range cells {
		if cell.CPUS == nil {
			continue
		}
		for _, cpu := range cell.CPUS.CPUs {
			if cpu.SocketID != nil {
				sockets[*cpu.SocketID] = true
			}
		}
	}
	return len(sockets)
}

// Machine is the kind of virtual machine that a node renders a VM as.
type Machine struct {
	DomainType string // kvm or qemu
	Arch       string
	Type       string // q35, pc, virt ...; empty: the hypervisor's default
}

// Words for the choice between hardware and software virtualisation.
const (
	VirtAuto = "auto" // kvm where the node has it
	VirtKVM  = "kvm"
	VirtQEMU = "qemu"
)

// Machine chooses how this node runs VMs. virtType is VirtAuto, VirtKVM or VirtQEMU.
func (c Capabilities) Machine(virtType string) (Machine, error) {
	if len(c.DomainTypes) == 0 {
		return Machine{}, fmt.Errorf(
			"the hypervisor can run no guest of this node's architecture %q: install the QEMU system emulator for it", c.Arch,
		)
	}
	switch virtType {
	case VirtAuto, "":
		virtType = VirtQEMU
		if slices.Contains(c.DomainTypes, VirtKVM) {
			virtType = VirtKVM
		}
	case VirtKVM, VirtQEMU:
	default:
		return Machine{}, fmt.Errorf("virt_type %q: write auto, kvm or qemu", virtType)
	}
	if !slices.Contains(c.DomainTypes, virtType) {
		return Machine{}, fmt.Errorf(
			"the hypervisor offers %v on this node, not %q: check that /dev/kvm exists, or set virt_type", c.DomainTypes, virtType,
		)
	}
	machine := Machine{DomainType: virtType, Arch: c.Arch}
	for _, preferred := range []string{"q35", "pc", "virt", "s390-ccw-virtio", "pseries"} {
		if slices.Contains(c.MachineTypes, preferred) {
			machine.Type = preferred
			break
		}
	}
	return machine, nil
}
