package api

import (
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/view"
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
	node := func(facts model.NodeFacts) *view.NodeView {
		return &view.NodeView{Node: model.Node{ID: "n1", Name: "hv1"}, Facts: facts}
	}
	shows := func(state model.DomainState, reason string) *view.NodeView {
		return node(model.NodeFacts{
			Liveness: model.Up, Inventory: true, DomainsKnown: true,
			Domains: []model.Domain{{UUID: "other", State: model.DomainRunning}, {UUID: "v1", State: state, Reason: reason}},
		})
	}
	empty := node(model.NodeFacts{Liveness: model.Up, Inventory: true, DomainsKnown: true})
	held := model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1"}
	free := model.VM{ID: "v1", Name: "web", Desired: model.Stopped}
	but := func(vm model.VM, change func(*model.VM)) model.VM {
		change(&vm)
		return vm
	}
	op := func(kind operation.Kind) *operation.Operation {
		return &operation.Operation{ID: "o1", Kind: kind, Phase: operation.Dispatched}
	}
	parked := func(kind operation.Kind) *operation.Operation {
		return &operation.Operation{ID: "o1", Kind: kind, Phase: operation.Judging, Result: operation.Parked, Message: "both nodes run it"}
	}
	missing := but(held, func(vm *model.VM) {
		vm.Whereabouts.Missing = time.Unix(1, 0)
		vm.Condition = model.Condition{
			Kind: model.OutOfBand, About: "n1", Text: "out of band: hv1 does not run it any more, and hv2 cannot be asked",
		}
	})
	kinds := map[string]model.ConditionKind{
		"paused by its owner": model.Paused, "paused by a migration that is over": model.Paused,
		"silent node": model.NodeSilent, "silent node that did not show it": model.NodeSilent, "new leader": model.NodeSilent,
		"libvirt is down": model.NodeSilent, "listing failed": model.NodeSilent, "agent cannot tell": model.NodeSilent,
		"forgotten by libvirt": model.OutOfBand,
		"node without record":  model.NodeSilent, "gone": model.NotRunning, "shut off": model.NotRunning, "crashed": model.NotRunning,
		"gone, and nobody saw how": model.OutOfBand, "gone, nobody saw how, and its node is silent since": model.OutOfBand,
		"lost in a migration": model.LostMoving, "should be stopped, runs": model.NotStopped,
		"two copies": model.RunsElsewhere, "stopped, and somebody runs it": model.RunsElsewhere,
		"parked": model.Parked, "parked, and its holder shows nothing": model.Parked,
	}
	for name, test := range map[string]struct {
		in        vmObservation
		state     berthv1.VMState
		condition string
	}{
		"stopped":  {vmObservation{VM: free}, stopped, ""},
		"starting": {vmObservation{VM: free, Operation: op(operation.Start)}, starting, ""},
		"first start": {
			vmObservation{VM: but(free, func(vm *model.VM) { vm.Desired = model.Running }), Operation: op(operation.Start)}, starting, "",
		},
		"running":   {vmObservation{VM: held, Holder: shows(model.DomainRunning, "booted")}, running, ""},
		"stopping":  {vmObservation{VM: held, Holder: shows(model.DomainRunning, ""), Operation: op(operation.Stop)}, stopping, ""},
		"migrating": {vmObservation{VM: held, Holder: shows(model.DomainRunning, ""), Operation: op(operation.Migrate)}, migrating, ""},
		"rebooting": {vmObservation{VM: held, Holder: shows(model.DomainShutoff, ""), Operation: op(operation.Reboot)}, running, ""},
		"in the hand-over": {
			vmObservation{VM: held, Holder: shows(model.DomainPausedMigration, ""), Operation: op(operation.Migrate)}, migrating, "",
		},
		"migrating, target shows it too": {
			vmObservation{
				VM: held, Holder: shows(model.DomainRunning, ""), Operation: op(operation.Migrate), Elsewhere: []string{"hv2"},
			}, migrating, "",
		},
		"migrating away from a silent node": {
			vmObservation{VM: held, Holder: node(model.NodeFacts{Liveness: model.Unreachable}), Operation: op(operation.Migrate)}, migrating, "",
		},
		"paused by its owner": {
			vmObservation{VM: held, Holder: shows(model.DomainPaused, "user")},
			paused,
			"paused on hv1 (user): 'berth vm resume web' lets it run",
		},
		"paused by a migration that is over": {
			vmObservation{VM: held, Holder: shows(model.DomainPausedMigration, "")}, paused, "paused by a migration on node hv1",
		},
		"silent node": {
			vmObservation{VM: held, Holder: node(model.NodeFacts{
				Liveness: model.Unreachable, LivenessReason: "silent for 40s", Inventory: true, DomainsKnown: true,
				Domains: []model.Domain{{UUID: "v1", State: model.DomainRunning}},
			})}, unknown, "node hv1 is unreachable: silent for 40s",
		},
		"silent node that did not show it": {
			vmObservation{VM: held, Holder: node(model.NodeFacts{Liveness: model.Unreachable, Inventory: true, DomainsKnown: true})},
			unknown, "node hv1 is unreachable",
		},
		"suspect node": {
			vmObservation{VM: held, Holder: node(model.NodeFacts{
				Liveness: model.Suspect, Inventory: true, DomainsKnown: true, Domains: []model.Domain{{UUID: "v1", State: model.DomainRunning}},
			})}, running, "",
		},
		"new leader": {
			vmObservation{VM: held, Holder: node(model.NodeFacts{Liveness: model.Suspect})},
			unknown,
			"node hv1 has not reported to this leader yet",
		},
		"libvirt is down": {
			vmObservation{
				VM:     held,
				Holder: node(model.NodeFacts{Liveness: model.Degraded, LivenessReason: "refused", Inventory: true, DomainsKnown: true}),
			},
			unknown, "node hv1 is degraded: refused",
		},
		"listing failed": {
			vmObservation{VM: held, Holder: node(model.NodeFacts{Liveness: model.Up, Inventory: true})},
			unknown,
			"node hv1 could not list its domains",
		},
		"forgotten by libvirt": {
			vmObservation{VM: held, Holder: shows(model.DomainOrphan, "")},
			unknown,
			"process 0 on hv1 runs it, and libvirt there does not list it: it is started nowhere as long as that process lives; " +
				"shut its guest down from inside, or end it with 'kill 0' on hv1",
		},
		"agent cannot tell":   {vmObservation{VM: held, Holder: shows(model.DomainUnknown, "")}, unknown, "the agent on node hv1 cannot tell"},
		"node without record": {vmObservation{VM: held}, unknown, "its node is no longer known"},
		"gone":                {vmObservation{VM: held, Holder: empty}, lost, "node hv1 does not run it"},
		"shut off":            {vmObservation{VM: held, Holder: shows(model.DomainShutoff, "")}, lost, "node hv1 does not run it"},
		"crashed":             {vmObservation{VM: held, Holder: shows(model.DomainCrashed, "panicked")}, lost, "crashed on node hv1"},
		"gone, and nobody saw how": {
			vmObservation{VM: missing, Holder: empty}, unknown, "out of band: hv1 does not run it any more, and hv2 cannot be asked",
		},
		"gone, nobody saw how, and its node is silent since": {
			vmObservation{VM: missing, Holder: node(model.NodeFacts{Liveness: model.Unreachable})},
			unknown, "out of band: hv1 does not run it any more, and hv2 cannot be asked",
		},
		"lost in a migration": {
			vmObservation{VM: but(
				held, func(vm *model.VM) { vm.Holder, vm.Condition.Text = "", "lost during a migration: it is gone" },
			)}, lost, "lost during a migration: it is gone",
		},
		"should be stopped, runs": {
			vmObservation{VM: but(held, func(vm *model.VM) { vm.Desired = model.Stopped }), Holder: shows(model.DomainRunning, "")},
			running, "should be stopped",
		},
		"should be stopped, is": {
			vmObservation{VM: but(held, func(vm *model.VM) { vm.Desired = model.Stopped }), Holder: empty}, stopped, "",
		},
		"two copies": {
			vmObservation{VM: held, Holder: shows(model.DomainRunning, ""), Elsewhere: []string{"hv2", "hv3"}}, running, "also runs on hv2, hv3",
		},
		"stopped, and somebody runs it": {vmObservation{VM: free, Elsewhere: []string{"hv2"}}, stopped, "also runs on hv2"},
		"parked": {
			vmObservation{VM: held, Holder: shows(model.DomainRunning, ""), Operation: parked(operation.Migrate)},
			running, "operation o1 is parked: both nodes run it",
		},
		"parked, and its holder shows nothing": {
			vmObservation{VM: held, Holder: empty, Operation: parked(operation.Migrate)}, unknown, "operation o1 is parked: both nodes run it",
		},
	} {
		t.Run(name, func(t *testing.T) {
			state, condition := vmState(test.in)
			if state != test.state || condition.Text != test.condition {
				t.Errorf("%s, %q; want %s, %q", state, condition.Text, test.state, test.condition)
			}
			if condition.Kind != kinds[name] {
				t.Errorf("a condition of kind %q, want %q", condition.Kind, kinds[name])
			}
		})
	}
}
