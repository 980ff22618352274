package api

import (
	"fmt"
	"strings"

	"berth/coordinator/api/answer"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
)

// vmObservation is what a VM's state is derived from.
type vmObservation struct {
	VM        model.VM
	Operation *operation.Operation // the live one; nil when there is none
	Holder    *view.NodeView       // nil when no node holds the VM, or the node is not known any more
	Elsewhere []string             // names of other nodes that show a running domain of this UUID
}

// vmState derives what people see of a VM, and what is unusual about it. A silent node makes its VMs unknown, never lost:
// silence is not death.
func vmState(o vmObservation) (berthv1.VMState, model.Condition) {
	state, condition := settledState(o)
	missing := !o.VM.Whereabouts.Missing.IsZero()
	vague := condition.Is(model.NotRunning, model.Paused) || missing && condition.Is(model.HolderOff, model.NodeSilent)
	if vague && o.VM.Condition.Beside() {
		condition = model.Condition{} // what the watch has found out says more, and what ends it
	}
	if missing && state == berthv1.VMState_VM_STATE_LOST {
		state = berthv1.VMState_VM_STATE_UNKNOWN // another node may run it
	}
	if op := o.Operation; op != nil {
		if op.Result == operation.Parked {
			condition = model.Condition{
				Kind: model.Parked, About: op.ID, Text: fmt.Sprintf("operation %s is parked: %s", op.ID, op.Message),
			}
			if state == berthv1.VMState_VM_STATE_LOST {
				state = berthv1.VMState_VM_STATE_UNKNOWN // the other node may have it: a person has to tell
			}
		} else if !op.Awaits() { // nothing is done to it yet
			state, condition = busyStates[op.Kind.Meanwhile()], model.Condition{}
		}
	}
	if condition.Is(model.NoCondition) {
		condition = o.VM.Condition
		condition.Kind = condition.What()
	}
	if len(o.Elsewhere) > 0 && (o.Operation == nil || o.Operation.Kind != operation.Migrate) {
		also := "also runs on " + strings.Join(o.Elsewhere, ", ")
		if condition.Is(model.NoCondition) {
			return state, model.Condition{Kind: model.RunsElsewhere, Text: also}
		}
		condition.Text += "; " + also
	}
	return state, condition
}

// VMStates are the words for the states of VMs, as lists show them.
func VMStates() []string { return answer.Words(berthv1.VMState_name, vmStates) }

// vmStateWords are the same, by state.
var vmStateWords = func() map[berthv1.VMState]string {
	words := make(map[berthv1.VMState]string, len(berthv1.VMState_name))
	for state, name := range berthv1.VMState_name {
		words[berthv1.VMState(state)] = answer.Word(name, vmStates)
	}
	return words
}()

// VMState is the word for the state of a VM that an operation works on and a node holds; nil: none does.
func VMState(vm *model.VM, op *operation.Operation, holder *view.NodeView) string {
	state, _ := vmState(vmObservation{VM: *vm, Operation: op, Holder: holder})
	return vmStateWords[state]
}

// busyStates are the states of VMs that operations work on. One that is not here has no state of its own.
var busyStates = map[operation.Meanwhile]berthv1.VMState{
	operation.Starting:  berthv1.VMState_VM_STATE_STARTING,
	operation.Stopping:  berthv1.VMState_VM_STATE_STOPPING,
	operation.Migrating: berthv1.VMState_VM_STATE_MIGRATING,
	operation.Running:   berthv1.VMState_VM_STATE_RUNNING,
}

// settledState is the state of a VM that nothing is being done to.
func settledState(o vmObservation) (berthv1.VMState, model.Condition) {
	if o.VM.Holder == "" {
		if o.VM.Desired == model.Running && o.Operation == nil {
			return berthv1.VMState_VM_STATE_LOST, model.Condition{}
		}
		return berthv1.VMState_VM_STATE_STOPPED, model.Condition{}
	}
	silent := func(text string) (berthv1.VMState, model.Condition) {
		return berthv1.VMState_VM_STATE_UNKNOWN, model.Condition{Kind: model.NodeSilent, About: o.VM.Holder, Text: text}
	}
	if o.Holder == nil {
		return silent("its node is no longer known")
	}
	name, facts := o.Holder.Node.Name, o.Holder.Facts
	switch {
	case o.Holder.Node.Fenced():
		return berthv1.VMState_VM_STATE_LOST, model.Condition{
			Kind: model.HolderOff, About: o.VM.Holder, Text: answer.Because("node "+name+" is proven to be off", o.Holder.Node.Fencing.Message),
		}
	case facts.Liveness == model.Unreachable:
		return silent(answer.Because("node "+name+" is unreachable", facts.LivenessReason))
	case facts.Liveness == model.Degraded: // its agent has said what ails it, perhaps before anything else
		return silent(answer.Because("node "+name+" is degraded", facts.LivenessReason))
	case !facts.Inventory:
		return silent("node " + name + " has not reported to this leader yet")
	case !facts.DomainsKnown:
		return silent("node " + name + " could not list its domains")
	}
	return domainState(o.VM, name, facts.Domain(o.VM.ID))
}

// domainState translates what the holder shows.
func domainState(vm model.VM, node string, domain *model.Domain) (berthv1.VMState, model.Condition) {
	if domain == nil {
		domain = &model.Domain{State: model.DomainAbsent}
	}
	is := func(kind model.ConditionKind, text string) model.Condition {
		return model.Condition{Kind: kind, About: vm.Holder, Text: text}
	}
	switch domain.State {
	case model.DomainRunning:
		if vm.Desired == model.Stopped {
			return berthv1.VMState_VM_STATE_RUNNING, is(model.NotStopped, "should be stopped")
		}
		return berthv1.VMState_VM_STATE_RUNNING, model.Condition{}
	case model.DomainPaused:
		return berthv1.VMState_VM_STATE_PAUSED, is(model.Paused, evidence.PausedOn(node, domain, &vm))
	case model.DomainPausedMigration:
		return berthv1.VMState_VM_STATE_PAUSED, is(model.Paused, "paused by a migration on node "+node)
	case model.DomainUnknown:
		return berthv1.VMState_VM_STATE_UNKNOWN, is(model.NodeSilent, "the agent on node "+node+" cannot tell")
	case model.DomainOrphan:
		here := evidence.Copy{Node: vm.Holder, Name: node, Domain: *domain}
		return berthv1.VMState_VM_STATE_UNKNOWN, is(model.OutOfBand, here.Orphaned())
	case model.DomainCrashed:
		return berthv1.VMState_VM_STATE_LOST, is(model.NotRunning, "crashed on node "+node)
	default:
		if vm.Desired == model.Stopped {
			return berthv1.VMState_VM_STATE_STOPPED, model.Condition{}
		}
		return berthv1.VMState_VM_STATE_LOST, is(model.NotRunning, "node "+node+" does not run it")
	}
}
