package api

import (
	"fmt"
	"strings"

	"berth/coordinator/cluster"
	"berth/coordinator/control"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// vmObservation is what a VM's state is derived from.
type vmObservation struct {
	VM        cluster.VM
	Operation *operation.Operation // the live one; nil when there is none
	Holder    *cluster.NodeView    // nil when no node holds the VM, or the node is not known any more
	Elsewhere []string             // names of other nodes that show a running domain of this UUID
}

// vmState derives what people see of a VM, and what is unusual about it in words. A silent node makes its VMs unknown,
// never lost: silence is not death.
func vmState(o vmObservation) (berthv1.VMState, string) {
	state, condition := settledState(o)
	if op := o.Operation; op != nil {
		if op.Result == operation.Parked {
			condition = fmt.Sprintf("operation %s is parked: %s", op.ID, op.Message)
			if state == berthv1.VMState_VM_STATE_LOST {
				state = berthv1.VMState_VM_STATE_UNKNOWN // the other node may have it: a person has to tell
			}
		} else {
			state, condition = busyState(op.Kind), ""
		}
	}
	notes := make([]string, 0, 2)
	switch {
	case condition != "":
		notes = append(notes, condition)
	case o.VM.Condition != "":
		notes = append(notes, o.VM.Condition)
	}
	if len(o.Elsewhere) > 0 && (o.Operation == nil || o.Operation.Kind != operation.Migrate) {
		notes = append(notes, "also runs on "+strings.Join(o.Elsewhere, ", "))
	}
	return state, strings.Join(notes, "; ")
}

func busyState(kind operation.Kind) berthv1.VMState {
	switch kind {
	case operation.Start:
		return berthv1.VMState_VM_STATE_STARTING
	case operation.Stop:
		return berthv1.VMState_VM_STATE_STOPPING
	case operation.Migrate:
		return berthv1.VMState_VM_STATE_MIGRATING
	case operation.Adopt, operation.Release:
		return berthv1.VMState_VM_STATE_RUNNING // its guest does not notice
	default:
		return berthv1.VMState_VM_STATE_UNSPECIFIED
	}
}

// settledState is the state of a VM that nothing is being done to.
func settledState(o vmObservation) (berthv1.VMState, string) {
	if o.VM.Holder == "" {
		if o.VM.Desired == cluster.Running && o.Operation == nil {
			return berthv1.VMState_VM_STATE_LOST, ""
		}
		return berthv1.VMState_VM_STATE_STOPPED, ""
	}
	if o.Holder == nil {
		return berthv1.VMState_VM_STATE_UNKNOWN, "its node is no longer known"
	}
	name, facts := o.Holder.Node.Name, o.Holder.Facts
	switch {
	case o.Holder.Node.Fenced():
		return berthv1.VMState_VM_STATE_LOST, because("node "+name+" is proven to be off", o.Holder.Node.Fencing.Message)
	case facts.Liveness == cluster.Unreachable:
		return berthv1.VMState_VM_STATE_UNKNOWN, because("node "+name+" is unreachable", facts.LivenessReason)
	case !facts.Inventory:
		return berthv1.VMState_VM_STATE_UNKNOWN, "node " + name + " has not reported to this leader yet"
	case facts.Liveness == cluster.Degraded:
		return berthv1.VMState_VM_STATE_UNKNOWN, because("node "+name+" is degraded", facts.LivenessReason)
	case !facts.DomainsKnown:
		return berthv1.VMState_VM_STATE_UNKNOWN, "node " + name + " could not list its domains"
	}
	return domainState(o.VM, name, facts.Domain(o.VM.ID))
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// domainState translates what the holder shows.
func domainState(vm cluster.VM, node string, domain *cluster.Domain) (berthv1.VMState, string) {
	if domain == nil {
		domain = &cluster.Domain{State: cluster.DomainAbsent}
	}
	switch domain.State {
	case cluster.DomainRunning:
		if vm.Desired == cluster.Stopped {
			return berthv1.VMState_VM_STATE_RUNNING, "should be stopped"
		}
		return berthv1.VMState_VM_STATE_RUNNING, ""
	case cluster.DomainPaused:
		return berthv1.VMState_VM_STATE_PAUSED, control.PausedOn(node, domain.Reason, vm.Name)
	case cluster.DomainPausedMigration:
		return berthv1.VMState_VM_STATE_PAUSED, "paused by a migration on node " + node
	case cluster.DomainUnknown:
		return berthv1.VMState_VM_STATE_UNKNOWN, "the agent on node " + node + " cannot tell"
	case cluster.DomainCrashed:
		return berthv1.VMState_VM_STATE_LOST, "crashed on node " + node
	default:
		if vm.Desired == cluster.Stopped {
			return berthv1.VMState_VM_STATE_STOPPED, ""
		}
		return berthv1.VMState_VM_STATE_LOST, "node " + node + " does not run it"
	}
}
