package inventory

import (
	"cmp"
	"context"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// named is a reference to an object of NetBox by its name.
type named struct {
	Name string `json:"name"`
}

// machine is a virtual machine as NetBox takes it.
type machine struct {
	Name        string `json:"name"`
	Status      string `json:"status,omitempty"`
	Cluster     named  `json:"cluster"`
	Device      *named `json:"device,omitempty"`
	Tenant      *named `json:"tenant,omitempty"`
	VCPUs       int32  `json:"vcpus"`
	Memory      int64  `json:"memory"` // MiB
	Serial      string `json:"serial"`
	Description string `json:"description,omitempty"`
}

// statuses are NetBox's words for the states of VMs. One that is not known has none: silence is not death.
var statuses = map[berthv1.VMState]string{
	berthv1.VMState_VM_STATE_STOPPED:   "offline",
	berthv1.VMState_VM_STATE_STARTING:  "staged",
	berthv1.VMState_VM_STATE_RUNNING:   "active",
	berthv1.VMState_VM_STATE_STOPPING:  "active",
	berthv1.VMState_VM_STATE_MIGRATING: "active",
	berthv1.VMState_VM_STATE_PAUSED:    "active",
	berthv1.VMState_VM_STATE_LOST:      "failed",
}

func netboxMachines(ctx context.Context, session *term.Session, s *site) (any, error) {
	if err := s.readVMs(ctx, session); err != nil {
		return nil, err
	}
	machines := make([]machine, 0, len(s.vms))
	for _, vm := range s.vms {
		vcpus, memory := vm.GetSpec().GetVcpus(), vm.GetSpec().GetMemoryBytes()
		if running := vm.GetRunning(); running != nil {
			vcpus, memory = running.GetVcpus(), running.GetMemoryBytes()
		}
		machines = append(machines, machine{
			Name: vm.GetName(), Status: statuses[vm.GetState()], Cluster: named{cmp.Or(vm.GetCluster(), model.DefaultCluster)},
			Device: reference(vm.GetNode()), Tenant: reference(vm.GetCustomer()), VCPUs: vcpus, Memory: memory / int64(units.MiB),
			Serial: vm.GetId(), Description: vm.GetDescription(),
		})
	}
	return machines, nil
}

func reference(name string) *named {
	if name == "" {
		return nil
	}
	return &named{name}
}
