package api

import (
	"slices"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/estates"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/estate"
	"berth/coordinator/model"
)

// mayBeHA refuses a new VM with ha whose disks lie where no lock would stop a second copy of it.
func (s *vmCalls) mayBeHA(p *answer.Moment, wanted *lifecycle.StartVM) error {
	if _, exists := p.VMByName(wanted.Name); wanted.VM == nil || exists {
		return nil
	}
	var made []model.Resource
	if wanted.Root != nil {
		made = append(made, *wanted.Root)
	}
	vm := *wanted.VM
	vm.Name = wanted.Name
	return estates.MayBeHA(p, &vm, s.Control.PoolLocks, made...)
}

// touchesHA tells whether changes of a VM decide about whether its disks need locks.
func touchesHA(changes []estate.FieldChange) bool {
	return slices.ContainsFunc(changes, func(c estate.FieldChange) bool { return c.Field == "ha" || c.Field == "disks" })
}
