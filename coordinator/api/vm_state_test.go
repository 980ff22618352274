package api

import (
	"testing"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

func TestVMState(t *testing.T) {
	const (
		stopped   = berthv1.VMState_VM_STATE_STOPPED
		starting  = berthv1.VMState_VM_STATE_STARTING
		running   = berthv1.VMState_VM_STATE_RUNNING
		stopping  = berthv1.VMState_VM_STATE_STOPPING
		migrating = berthv1.VMState_VM_STATE_MIGRATING
		paused    = berthv1.VMState_VM_STATE_PAUSED
		unknown   = berthv1.VMState_VM_STATE_UNKNOWN
		lost      = berthv1.VMState_VM_STATE_LOST
	)
	node := func(facts cluster.NodeFacts) *cluster.NodeView {
		return &cluster.NodeView{Node: cluster.Node{ID: "n1", Name: "hv1"}, Facts: facts}
	}
	shows := func(state cluster.DomainState, reason string) *cluster.NodeView {
		return node(cluster.NodeFacts{
			Liveness: cluster.Up, Inventory: true, DomainsKnown: true,
			Domains: []cluster.Domain{{UUID: "other", State: cluster.DomainRunning}, {UUID: "v1", State: state, Reason: reason}},
		})
	}
	empty := node(cluster.NodeFacts{Liveness: cluster.Up, Inventory: true, DomainsKnown: true})
	held := cluster.VM{ID: "v1", Name: "web", Desired: cluster.Running, Holder: "n1"}
	free := cluster.VM{ID: "v1", Name: "web", Desired: cluster.Stopped}
	but := func(vm cluster.VM, change func(*cluster.VM)) cluster.VM {
		change(&vm)
		return vm
	}
	op := func(kind operation.Kind) *operation.Operation {
		return &operation.Operation{ID: "o1", Kind: kind, Phase: operation.Dispatched}
	}
	parked := func(kind operation.Kind) *operation.Operation {
		return &operation.Operation{ID: "o1", Kind: kind, Phase: operation.Judging, Result: operation.Parked, Message: "both nodes run it"}
	}
	for name, test := range map[string]struct {
		in        vmObservation
		state     berthv1.VMState
		condition string
	}{
		"stopped":          {vmObservation{VM: free}, stopped, ""},
		"starting":         {vmObservation{VM: free, Operation: op(operation.Start)}, starting, ""},
		"first start":      {vmObservation{VM: but(free, func(vm *cluster.VM) { vm.Desired = cluster.Running }), Operation: op(operation.Start)}, starting, ""},
		"running":          {vmObservation{VM: held, Holder: shows(cluster.DomainRunning, "booted")}, running, ""},
		"stopping":         {vmObservation{VM: held, Holder: shows(cluster.DomainRunning, ""), Operation: op(operation.Stop)}, stopping, ""},
		"migrating":        {vmObservation{VM: held, Holder: shows(cluster.DomainRunning, ""), Operation: op(operation.Migrate)}, migrating, ""},
		"in the hand-over": {vmObservation{VM: held, Holder: shows(cluster.DomainPausedMigration, ""), Operation: op(operation.Migrate)}, migrating, ""},
		"migrating, target shows it too": {
			vmObservation{VM: held, Holder: shows(cluster.DomainRunning, ""), Operation: op(operation.Migrate), Elsewhere: []string{"hv2"}}, migrating, "",
		},
		"migrating away from a silent node": {
			vmObservation{VM: held, Holder: node(cluster.NodeFacts{Liveness: cluster.Unreachable}), Operation: op(operation.Migrate)}, migrating, "",
		},
		"paused by its owner":                {vmObservation{VM: held, Holder: shows(cluster.DomainPaused, "user")}, paused, "paused on hv1 (user): 'virsh resume web' there lets it run"},
		"paused by a migration that is over": {vmObservation{VM: held, Holder: shows(cluster.DomainPausedMigration, "")}, paused, "paused by a migration on node hv1"},
		"silent node": {
			vmObservation{VM: held, Holder: node(cluster.NodeFacts{
				Liveness: cluster.Unreachable, LivenessReason: "silent for 40s", Inventory: true, DomainsKnown: true,
				Domains: []cluster.Domain{{UUID: "v1", State: cluster.DomainRunning}},
			})}, unknown, "node hv1 is unreachable: silent for 40s",
		},
		"silent node that did not show it": {
			vmObservation{VM: held, Holder: node(cluster.NodeFacts{Liveness: cluster.Unreachable, Inventory: true, DomainsKnown: true})},
			unknown, "node hv1 is unreachable",
		},
		"suspect node": {
			vmObservation{VM: held, Holder: node(cluster.NodeFacts{
				Liveness: cluster.Suspect, Inventory: true, DomainsKnown: true, Domains: []cluster.Domain{{UUID: "v1", State: cluster.DomainRunning}},
			})}, running, "",
		},
		"new leader":          {vmObservation{VM: held, Holder: node(cluster.NodeFacts{Liveness: cluster.Suspect})}, unknown, "node hv1 has not reported to this leader yet"},
		"libvirt is down":     {vmObservation{VM: held, Holder: node(cluster.NodeFacts{Liveness: cluster.Degraded, LivenessReason: "refused", Inventory: true, DomainsKnown: true})}, unknown, "node hv1 is degraded: refused"},
		"listing failed":      {vmObservation{VM: held, Holder: node(cluster.NodeFacts{Liveness: cluster.Up, Inventory: true})}, unknown, "node hv1 could not list its domains"},
		"agent cannot tell":   {vmObservation{VM: held, Holder: shows(cluster.DomainUnknown, "")}, unknown, "the agent on node hv1 cannot tell"},
		"node without record": {vmObservation{VM: held}, unknown, "its node is no longer known"},
		"gone":                {vmObservation{VM: held, Holder: empty}, lost, "node hv1 does not run it"},
		"shut off":            {vmObservation{VM: held, Holder: shows(cluster.DomainShutoff, "")}, lost, "node hv1 does not run it"},
		"crashed":             {vmObservation{VM: held, Holder: shows(cluster.DomainCrashed, "panicked")}, lost, "crashed on node hv1"},
		"lost in a migration": {
			vmObservation{VM: but(held, func(vm *cluster.VM) { vm.Holder, vm.Condition = "", "lost during a migration" })}, lost, "lost during a migration",
		},
		"should be stopped, runs": {
			vmObservation{VM: but(held, func(vm *cluster.VM) { vm.Desired = cluster.Stopped }), Holder: shows(cluster.DomainRunning, "")},
			running, "should be stopped",
		},
		"should be stopped, is": {
			vmObservation{VM: but(held, func(vm *cluster.VM) { vm.Desired = cluster.Stopped }), Holder: empty}, stopped, "",
		},
		"two copies": {
			vmObservation{VM: held, Holder: shows(cluster.DomainRunning, ""), Elsewhere: []string{"hv2", "hv3"}}, running, "also runs on hv2, hv3",
		},
		"stopped, and somebody runs it": {vmObservation{VM: free, Elsewhere: []string{"hv2"}}, stopped, "also runs on hv2"},
		"parked": {
			vmObservation{VM: held, Holder: shows(cluster.DomainRunning, ""), Operation: parked(operation.Migrate)},
			running, "operation o1 is parked: both nodes run it",
		},
		"parked, and its holder shows nothing": {
			vmObservation{VM: held, Holder: empty, Operation: parked(operation.Migrate)}, unknown, "operation o1 is parked: both nodes run it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, condition := vmState(test.in)
			if state != test.state || condition != test.condition {
				t.Errorf("%s, %q; want %s, %q", state, condition, test.state, test.condition)
			}
		})
	}
}
