package vm

import (
	"slices"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// specFields are the fields of a VM's specification, which its message VMSpec has; traitFields all others.
var (
	specFields  = fieldsWhere(true)
	traitFields = fieldsWhere(false)
)

func fieldsWhere(spec bool) []schema.Field[model.VM] {
	return slices.DeleteFunc(slices.Clone(schema.VM), func(f schema.Field[model.VM]) bool { return f.Spec != spec })
}

// Names of the flags of these fields.
var (
	specFlagNames  = fieldform.Of(specFields).Names()
	traitFlagNames = fieldform.Of(traitFields).Names()
)
