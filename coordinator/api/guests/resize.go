package guests

import (
	"errors"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// resize changes the size of a VM while it runs.
func resize(action *berthv1.ResizeAction) asked {
	return func(_ *answer.Moment, vm *model.VM) (lifecycle.ActOnVM, error) {
		size := model.Size{Memory: units.Bytes(action.GetMemoryBytes()), VCPUs: int(action.GetVcpus())}
		wanted, subject := lifecycle.ActOnVM{Kind: operation.Resize, Size: size}, "vm/"+vm.Name
		if size == (model.Size{}) {
			return wanted, refusal.Invalid(subject, "say how much memory, or how many vCPUs", errNoSize)
		}
		spec := vm.Spec
		if size.Memory != 0 {
			spec.Memory = size.Memory
		}
		if size.VCPUs != 0 {
			spec.VCPUs = size.VCPUs
		}
		if err := model.ValidateSpec(spec); err != nil {
			return wanted, refusal.Invalid(subject, "see 'berth vm set --help' for the ranges", err)
		}
		return wanted, nil
	}
}

var errNoSize = errors.New("no size is given")

// grownOf is what follows of another size: of one that does not run its next start has that, and of one that runs it is the most from
// then on.
func grownOf(vm *model.VM, size model.Size) []string {
	if vm.Holder == "" {
		return []string{"it does not run: its next start has that"}
	}
	if size.Memory > 0 && size.Memory < vm.SizeOn(nil).Memory {
		return []string{"from its next start on that is the most that it can have while it runs"}
	}
	return nil
}
