package vm

import (
	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// newVMFlags are all flags that describe a new VM: 'vm add' and 'vm start' have them.
type newVMFlags struct {
	spec  specFlags
	links linkFlags
	moves moveFlags
	place placeFlags
	root  rootFlags
}

func (f *newVMFlags) flags(a *term.App, cmd *cobra.Command) {
	f.spec.flags(cmd)
	f.links.flags(a, cmd)
	f.links.keyFlag(cmd)
	f.place.flags(a, cmd)
	f.root.flags(a, cmd)
	f.moves.flags(a, cmd)
}

// message is the new VM that the command line describes; nil if it describes none.
func (f *newVMFlags) message(cmd *cobra.Command, name string) (*berthv1.NewVM, error) {
	spec, err := f.spec.spec(cmd, name)
	if err != nil || spec == nil {
		return nil, err
	}
	vm := &berthv1.NewVM{
		Spec: spec, Vdc: f.links.vdc, Offer: f.links.offer, Image: f.links.from, Disks: f.links.attach, Nics: f.links.nics,
	}
	if vm.Keys, err = f.links.keys(cmd); err != nil {
		return nil, err
	}
	if vm.Within, err = f.place.within(cmd); err != nil {
		return nil, err
	}
	if vm.Root, err = f.root.disk(cmd, f.spec.imageName()); err != nil {
		return nil, err
	}
	if err = f.moves.check(cmd); err != nil {
		return nil, err
	}
	vm.Preferred, vm.Labels, vm.Migration, vm.Ha = f.moves.prefer, f.moves.labels, f.moves.migration.Text, f.moves.ha
	return vm, nil
}
