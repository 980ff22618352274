package domxml

import (
	"errors"

	"libvirt.org/go/libvirtxml"
)

// cpu is what the guest sees. A model by name is the cluster's baseline: every node of it can run that one, so the VM can
// go to any of them.
func (s Spec) cpu(m Machine) (*libvirtxml.DomainCPU, error) {
	switch {
	case s.CPU == "":
		return m.cpu(), nil
	case s.CPU == CPUHostPassthrough && m.DomainType != VirtKVM:
		return nil, errors.New("CPU host-passthrough: this node runs guests in software, which has no CPU to pass through: " +
			"name a model, or leave it out")
	case s.CPU == CPUHostPassthrough:
		return &libvirtxml.DomainCPU{Mode: CPUHostPassthrough, Migratable: "on"}, nil
	}
	cpu := &libvirtxml.DomainCPU{
		Mode: "custom", Match: "exact", Check: "partial",
		Model: &libvirtxml.DomainCPUModel{Value: s.CPU, Fallback: "forbid"},
	}
	if m.DomainType != VirtKVM {
		cpu.Check = "none" // software lacks single features of most models, and guests do without them
	}
	return cpu, nil
}

// cpu chooses a model that a migration can keep. Under KVM libvirt's host-model is fixed at the start and travels with
// the domain; passing the host's CPU through would pin the VM to nodes with the very same one. Software emulation can
// do the same on every node, so one named model serves: the oldest that current distributions still boot on (x86-64-v2).
func (m Machine) cpu() *libvirtxml.DomainCPU {
	switch {
	case m.DomainType == VirtKVM && m.x86():
		return &libvirtxml.DomainCPU{Mode: "host-model"}
	case m.DomainType == VirtKVM:
		return &libvirtxml.DomainCPU{Mode: "host-passthrough"} // the only mode that KVM has on arm64 and others
	case m.x86():
		return &libvirtxml.DomainCPU{
			Mode: "custom", Match: "exact", Check: "none",
			Model: &libvirtxml.DomainCPUModel{Value: "Nehalem", Fallback: "forbid"},
		}
	default:
		return nil
	}
}
