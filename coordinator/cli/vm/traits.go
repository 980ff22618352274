package vm

import (
	"fmt"
	"strings"

	"berth/coordinator/cli/fieldform"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// traitRows are what a VM links to and gets by that, and what decides where it runs and who may move it.
func traitRows(a *term.App, vm *berthv1.VM) [][2]string {
	rows := [][2]string{
		{"cluster", vm.GetCluster()},
		{"within", vm.GetWithin()},
		{"customer", vm.GetCustomer()},
		{"billing entity", vm.GetBillingEntity()},
	}
	rows = append(rows, fieldform.Rows(traitFields, vm)...)
	rows = append(rows, [2]string{"groups", strings.Join(vm.GetGroups(), ", ")})
	switch vm.GetMigration() {
	case "manual":
		rows = append(rows, [2]string{"migration", "manual: Berth does not move it by itself"})
	case "never":
		rows = append(rows, [2]string{"migration", "never: nobody moves it while it runs"})
	}
	if vm.GetHa() {
		said := "it is restarted elsewhere once its node is proven to be off, or when it is gone"
		if n := vm.GetRestarts(); n > 0 {
			said += fmt.Sprintf("; restarted %s by itself", term.Count(int(n), "time"))
		}
		rows = append(rows, [2]string{"HA", said})
	}
	if vm.GetMovedAt() != nil {
		rows = append(rows, [2]string{"moved", a.Since(vm.GetMovedAt()) + " ago"})
	}
	return rows
}
