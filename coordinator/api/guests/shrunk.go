package guests

import (
	"fmt"
	"slices"

	"berth/coordinator/api/answer"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// Shrinking is what control knows of disks that somebody has made smaller beside Berth.
type Shrinking interface {
	// ShrunkVMs are the VMs, by ID, of which a disk was smaller than its record when somebody looked last.
	ShrunkVMs() []string
}

// ShrunkProblems are the disks that are smaller than their records, as their nodes show them now: what was behind that is lost, and nobody
// takes it over by himself.
func ShrunkProblems(p *answer.Moment, control Shrinking) (lines []string) {
	if p.Meta(state.MetaQuarantine) != "" {
		return nil // the records are claims of the past
	}
	for _, id := range control.ShrunkVMs() {
		vm, known := p.VM(id)
		if !known {
			continue
		}
		shown := shrunk(p, &vm)
		for i := range shown {
			lines = append(lines, fmt.Sprintf("VM %s: %s; %s", vm.Name, shown[i].Text(), shown[i].Next(&vm)))
		}
	}
	slices.Sort(lines)
	return lines
}

// shrunk are the disks of a VM that are smaller than their records, as its holder shows them.
func shrunk(p *answer.Moment, vm *model.VM) []drift.Resized {
	facts := p.Soft.Facts(vm.Holder, p.At)
	domain := facts.Domain(vm.ID)
	if vm.Holder == "" || domain == nil || domain.Epoch != vm.Epoch {
		return nil
	}
	resized := drift.ResizedBeside(p, vm, vm.Holder, domain.Devices)
	return slices.DeleteFunc(resized, func(r drift.Resized) bool { return !r.Shrunk() })
}
