package vm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// moveFlags say where a VM had better run, what groups take it in by, and who may move it.
type moveFlags struct {
	prefer, labels []string
	migration      term.StringFlag
	ha             bool
}

var (
	moveFlagNames = []string{"prefer", "label", "migration", "ha"}
	migrations    = []string{"automatic", "manual", "never"}
)

func (f *moveFlags) flags(a *term.App, cmd *cobra.Command) {
	flags := cmd.Flags()
	f.migration.Word = "WHO"
	flags.StringSliceVar(&f.prefer, "prefer", nil, "`NODES` that it had better start on; repeat for more")
	flags.StringSliceVar(&f.labels, "label", nil, "`LABELS` by which groups take it in; repeat for more")
	flags.Var(&f.migration, "migration", "who may move it while it runs: automatic (Berth too), manual (people only) or never")
	flags.BoolVar(&f.ha, "ha", false, "highly available: Berth restarts it elsewhere once its node is proven to be off, or when it is gone")
	term.Complete(cmd, "prefer", a.NodeNames())
	term.Complete(cmd, "label", cobra.NoFileCompletions)
	term.Complete(cmd, "migration", term.CompleteFixed(migrations...))
}

func (f *moveFlags) check(cmd *cobra.Command) error {
	if err := term.CheckNames(cmd, "prefer", f.prefer); err != nil {
		return err
	}
	if err := term.CheckNames(cmd, "label", f.labels); err != nil {
		return err
	}
	if cmd.Flags().Changed("migration") && !slices.Contains(migrations, f.migration.Text) {
		return term.Usagef(cmd, "--migration %s: use %s", f.migration.Text, strings.Join(migrations, ", "))
	}
	return nil
}

// change puts what stands on the line into a change, and takes back what is to go.
func (f *moveFlags) change(cmd *cobra.Command, into *berthv1.VMChange, unset []string) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	wanted := func(flag string) bool { return cmd.Flags().Changed(flag) || slices.Contains(unset, flag) }
	if wanted("prefer") {
		into.Preferred = &berthv1.Names{Names: f.prefer}
	}
	if wanted("label") {
		into.Labels = &berthv1.Names{Names: f.labels}
	}
	if wanted("migration") {
		migration := cmp.Or(f.migration.Text, migrations[0])
		into.Migration = &migration
	}
	if wanted("ha") {
		into.Ha = &f.ha
	}
	return nil
}

// moveRows are what decides where a VM runs and who may move it.
func moveRows(a *term.App, vm *berthv1.VM) [][2]string {
	rows := [][2]string{
		{"labels", strings.Join(vm.GetLabels(), ", ")},
		{"groups", strings.Join(vm.GetGroups(), ", ")},
		{"prefers", strings.Join(vm.GetPreferred(), ", ")},
	}
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
