package metrics

import (
	"berth/coordinator/model"
	"berth/coordinator/view"
	"berth/shared/exposition"
)

var (
	vmsFamily = gauge("berth_vms", "VMs, by state", "state")
	vmInfo    = gauge("berth_vm_info", "1; what a VM is and which node has it. The other figures of VMs have the UUID alone",
		"uuid", "vm", "node", "cluster", "state")
	vmDelay    = gauge("berth_vm_vcpu_delay_ratio", "Share of the time in which a vCPU of the VM waited for a CPU", "uuid")
	vmPressure = gauge("berth_vm_pressure_ratio",
		"Share of the last ten seconds in which a thread of the VM waited for a CPU, for memory or for disks (PSI, some)", "uuid", "resource")
	vmCPU      = gauge("berth_vm_cpus_used", "CPUs that the VM used over the last interval; 1 is one whole CPU", "uuid")
	vmVCPUs    = gauge("berth_vm_vcpus", "vCPUs that the VM runs with", "uuid")
	vmResident = gauge("berth_vm_memory_resident_bytes", "Memory of its node that the VM has now", "uuid")
	vmPromised = gauge("berth_vm_memory_promised_bytes", "Memory that the VM runs with", "uuid")

	vmFamilies = []*exposition.Family{&vmsFamily, &vmInfo, &vmDelay, &vmPressure, &vmCPU, &vmVCPUs, &vmResident, &vmPromised}
)

// vmSeen is a VM and what its node shows of it; nil: nothing.
type vmSeen struct {
	vm     *model.VM
	node   *view.NodeView
	domain *model.Domain
	state  string
}

func writeVMs(page *exposition.Page, s *Site) {
	var seen []vmSeen
	counts := make(map[string]int, len(s.States))
	for vm := range s.VMs {
		one := vmSeen{vm: vm, state: s.State(vm)}
		if vm.Holder != "" {
			one.node = s.View.Node(vm.Holder)
		}
		if one.node != nil && tells(one.node) {
			one.domain = one.node.Facts.Domain(vm.ID)
		}
		counts[one.state]++
		seen = append(seen, one)
	}
	for _, state := range s.States {
		page.Sample(&vmsFamily, float64(counts[state]), state)
	}
	for i := range seen {
		one := &seen[i]
		node, cluster := "", ""
		if one.node != nil {
			node, cluster = one.node.Node.Name, clusterOf(one.node)
		}
		page.Sample(&vmInfo, 1, one.vm.ID, one.vm.Name, node, cluster, one.state)
	}
	for _, figure := range []struct {
		family *exposition.Family
		of     func(*model.Domain) (float64, bool)
	}{
		{&vmDelay, func(d *model.Domain) (float64, bool) { return shown(d.Delay) }},
		{&vmCPU, func(d *model.Domain) (float64, bool) { return shown(d.CPU) }},
		{&vmVCPUs, func(d *model.Domain) (float64, bool) { return float64(d.VCPUs), d.State.Holds() }},
		{&vmResident, func(d *model.Domain) (float64, bool) { return amount(d.Resident) }},
		{&vmPromised, func(d *model.Domain) (float64, bool) { return float64(d.Memory), d.State.Holds() }},
	} {
		for i := range seen {
			if seen[i].domain == nil {
				continue
			}
			if value, known := figure.of(seen[i].domain); known {
				page.Sample(figure.family, value, seen[i].vm.ID)
			}
		}
	}
	for i := range seen {
		if seen[i].domain == nil || seen[i].domain.Pressure == nil {
			continue
		}
		of := seen[i].domain.Pressure
		page.Sample(&vmPressure, of.CPU/100, seen[i].vm.ID, "cpu")
		page.Sample(&vmPressure, of.Memory/100, seen[i].vm.ID, "memory")
		page.Sample(&vmPressure, of.IO/100, seen[i].vm.ID, "io")
	}
}
