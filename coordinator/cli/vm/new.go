package vm

import (
	"github.com/spf13/cobra"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// newVMFlags are all flags that describe a new VM: 'vm add' and 'vm start' have them.
type newVMFlags struct {
	spec   specFlags
	traits *fieldform.Flags[model.VM]
	keys   keyFlag
	place  placeFlags
	root   rootFlags
}

func (f *newVMFlags) flags(a *term.App, cmd *cobra.Command) {
	f.traits = fieldform.Of(traitFields)
	f.spec.flags(a, cmd)
	f.traits.Define(a, cmd)
	f.keys.flag(cmd)
	f.place.flags(a, cmd)
	f.root.flags(a, cmd)
}

// message is the new VM that the command line describes; nil if it describes none.
func (f *newVMFlags) message(cmd *cobra.Command, name string) (*berthv1.NewVM, error) {
	spec, err := f.spec.spec(cmd, name)
	if err != nil || spec == nil {
		return nil, err
	}
	vm := &berthv1.NewVM{Spec: spec}
	if vm.Keys, err = f.keys.keys(cmd); err != nil {
		return nil, err
	}
	if vm.Within, err = f.place.within(cmd); err != nil {
		return nil, err
	}
	if vm.Root, err = f.root.disk(cmd, f.spec.imageName()); err != nil {
		return nil, err
	}
	return vm, f.traits.Make(cmd, vm)
}
