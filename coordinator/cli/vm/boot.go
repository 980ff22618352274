package vm

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// noteBootless tells at once that a VM that was just described has nothing to boot: otherwise it runs, and nobody sees why it does nothing.
// A VM with a network may boot from that, and one with a document is its author's.
func noteBootless(a *term.App, cmd *cobra.Command, name string, vm *berthv1.NewVM) {
	spec := vm.GetSpec()
	if vm == nil || spec.GetXml() != "" || spec.GetKernel() != "" || len(spec.GetDisks())+len(spec.GetNetworks()) > 0 ||
		vm.GetRoot() != nil || vm.GetImage() != "" || len(vm.GetDisks())+len(vm.GetNics()) > 0 {
		return
	}
	a.Note(cmd, fmt.Sprintf("note: vm/%s has nothing to boot: no disk, no kernel and no network; "+
		"'berth vm attach disk %s --disk PATH' gives it a disk", name, name))
}
