package lifecycle

import (
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// free is a VM that no operation works on.
func (l *Lifecycle) free(snapshot *state.Snapshot, id string) (model.VM, error) {
	if !l.Leading() {
		return model.VM{}, lead.ErrNotLeading
	}
	if err := lead.Quarantined(snapshot); err != nil {
		return model.VM{}, err
	}
	vm, exists := snapshot.VM(id)
	switch {
	case !exists:
		return vm, &lead.Error{
			Code: lead.NotFound, Subject: "vm/" + id, Message: fmt.Sprintf("there is no VM %q", id), NextStep: "see 'berth vm list'",
		}
	case vm.Operation != "":
		return vm, lead.VMBusy(snapshot, vm)
	}
	return vm, nil
}

// held is a VM that some node holds and no operation works on.
func (l *Lifecycle) held(snapshot *state.Snapshot, id string) (model.VM, error) {
	vm, err := l.free(snapshot, id)
	if err == nil && vm.Holder == "" {
		err = notRunning(vm, startIt)
	}
	return vm, err
}

const startIt = "start it with 'berth vm start %s'"

// notRunning refuses what needs a VM that runs. The next step has a place for the VM's name.
func notRunning(vm model.VM, nextStep string) error {
	return &lead.Error{
		Code: lead.Conflict, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q does not run", vm.Name),
		NextStep: fmt.Sprintf(nextStep, vm.Name),
	}
}
