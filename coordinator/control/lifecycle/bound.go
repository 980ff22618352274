package lifecycle

import (
	"fmt"
	"strings"

	"berth/coordinator/binding"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// bound refuses to move a VM that libvirt would not migrate. Who reads why a move of a plan was not made reads the message alone.
func bound(snapshot *state.Snapshot, vm *model.VM, cluster string, facts *model.NodeFacts, planned bool) error {
	bindings := binding.Of(snapshot, vm, cluster, facts)
	if len(bindings) == 0 {
		return nil
	}
	refusal := &lead.Error{Code: lead.Conflict, Subject: "vm/" + vm.Name, NextStep: bindings[0].WayOut(vm.Name)}
	texts := binding.Texts(vm.Name, bindings)
	if !planned {
		for i := range texts {
			texts[i] = bindings[i].Text()
		}
	}
	refusal.Message = fmt.Sprintf("VM %q cannot move while it runs: it %s", vm.Name, strings.Join(texts, "; it "))
	return refusal
}

// uninterrupted refuses to end a guest while somebody else makes a backup of it, or works on its disks.
func (l *Lifecycle) uninterrupted(vm *model.VM, request ActOnVM) error {
	if vm.Holder == "" || request.Kind != operation.Stop || request.Force || request.InterruptBackup {
		return nil
	}
	broken := l.broken(vm)
	if broken == "" {
		return nil
	}
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q is not stopped: %s", vm.Name, broken),
		NextStep: fmt.Sprintf("wait until it ends, or stop it all the same with 'berth vm stop %s --interrupt-backup'", vm.Name),
	}
}

// broken says which jobs of somebody else the end of a guest would break off; empty: none.
func (o *Operations) broken(vm *model.VM) string {
	facts := o.Inventory.Facts(vm.Holder, o.Now())
	jobs := binding.Jobs(vm, &facts)
	texts := make([]string, 0, len(jobs))
	for i := range jobs {
		texts = append(texts, fmt.Sprintf("it %s: %s if the guest is stopped", jobs[i].Text(), jobs[i].Breaks()))
	}
	return strings.Join(texts, "; ")
}

// interrupts says why a stop that waited for its node is not given now that this is heard; empty: it is. A job that began meanwhile is
// waited for, because nobody has said that it may be broken off.
func (o *Operations) interrupts(op *operation.Operation, vm model.VM) string {
	if op.Kind != operation.Stop || op.Force {
		return ""
	}
	vm.Operation = "" // so that the job is not its own
	return o.broken(&vm)
}
