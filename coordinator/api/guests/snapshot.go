package guests

import (
	"cmp"
	"errors"
	"fmt"
	"unicode/utf8"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

var (
	errFreeze      = errors.New("the guest's file systems are frozen auto, always or never")
	errDescription = fmt.Errorf("a description has at most %d characters", model.MaxDescription)
)

// snapshot takes a snapshot of a VM's disks.
func snapshot(action *berthv1.SnapshotAction) asked {
	return func(_ *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		freeze := model.Freeze(cmp.Or(action.GetFreeze(), string(model.FreezeAuto)))
		wanted, err := aboutSnapshot(operation.Snapshot, vm, action.GetName())
		wanted.Snapshot.Description, wanted.Snapshot.Freeze = action.GetDescription(), freeze
		switch {
		case err != nil:
		case freeze != model.FreezeAuto && freeze != model.FreezeAlways && freeze != model.FreezeNever:
			err = refusal.Invalid("vm/"+vm.Name, "see 'berth vm snapshot add --help'", errFreeze)
		case utf8.RuneCountInString(action.GetDescription()) > model.MaxDescription:
			err = refusal.Invalid("vm/"+vm.Name, "say less", errDescription)
		}
		return wanted, err
	}
}

// restore has the disks of a VM be as they were when a snapshot was taken.
func restore(action *berthv1.RestoreAction) asked {
	return func(_ *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		return aboutSnapshot(operation.Restore, vm, action.GetName())
	}
}

// forget removes a snapshot.
func forget(action *berthv1.ForgetAction) asked {
	return func(_ *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		wanted, err := aboutSnapshot(operation.Forget, vm, action.GetName())
		wanted.Force = action.GetForce()
		return wanted, err
	}
}

func aboutSnapshot(kind operation.Kind, vm *model.VM, name string) (lifecycle.ActOnVM, error) {
	wanted := lifecycle.ActOnVM{Kind: kind, Snapshot: lifecycle.Snapshot{Name: name}}
	if err := model.ValidateName("snapshot", name); err != nil {
		return wanted, refusal.Invalid("vm/"+vm.Name, "give it another name", err)
	}
	return wanted, nil
}
