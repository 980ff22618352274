package vm

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// mostAsked is how many VMs a question names.
const mostAsked = 16

func snapshotCommand(a *term.App) *cobra.Command {
	return term.Noun("snapshot COMMAND", "Take snapshots of VMs' disks, and revert to them", `
Take snapshots of the disks of VMs, see them, remove them, and revert to them. A snapshot is kept inside the qcow2 files
of the disks: it makes no new file, moves with the VM on shared storage, and is lost with the disk. It is no backup. A
VM with a disk of another kind gets none.`,
		snapshotCreateCommand(a), snapshotListCommand(a), snapshotRevertCommand(a), snapshotDeleteCommand(a))
}

// snapshotAct is a command that works on the snapshot of one name of VMs. Question is asked before, if it is not empty: its place is for
// the names of the VMs.
func snapshotAct(
	a *term.App, cmd *cobra.Command, words deed, question string, fill func(*berthv1.ActOnVMsRequest, string) error,
) *cobra.Command {
	var name string
	var yes bool
	flags := &acting{}
	cmd.Args, cmd.ValidArgsFunction = someNames, a.VMNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if name == "" {
			return term.Usagef(cmd, "--name is missing")
		}
		request := &berthv1.ActOnVMsRequest{Vms: args}
		if err := fill(request, name); err != nil {
			return term.Usagef(cmd, "%w", err)
		}
		if question != "" && !flags.dryRun {
			flags.confirm = func(names []string) error {
				return term.Confirm(cmd, yes, fmt.Sprintf(question, units.Some(names, mostAsked, ", "), name))
			}
		}
		return flags.act(a, cmd, request, words)
	}
	cmd.Flags().StringVar(&name, "name", "", "`NAME` of the snapshot")
	term.Complete(cmd, "name", cobra.NoFileCompletions)
	if question != "" {
		term.ConfirmFlag(cmd, &yes)
	}
	cmd.Flags().BoolVar(&flags.dryRun, "dry-run", false, "only say what would be done, and what would be refused")
	flags.choosing.flag(cmd)
	flags.wait.Flags(cmd)
	return cmd
}

func snapshotCreateCommand(a *term.App) *cobra.Command {
	var description string
	var freeze, noFreeze bool
	cmd := snapshotAct(a, &cobra.Command{
		Use: "add NAME...", Aliases: []string{"create"},
		Short: "Take a snapshot of the disks of VMs",
		Long: `Take a snapshot of all disks that a VM writes to, of all of them at one moment. While it is taken the guest's file
systems stand still, if the guest agent in it answers: then they are whole. Without the agent the disks are as after a
power cut. 'berth vm snapshot list' says which.`,
		Example: `  berth vm snapshot add web1 --name before-upgrade
  berth vm snapshot add --selector label=web --name weekly --freeze
  berth vm snapshot add web1 --name before-upgrade --dry-run`,
	}, "taken", "", func(r *berthv1.ActOnVMsRequest, name string) error {
		action := &berthv1.SnapshotAction{Name: name, Description: description, Freeze: "auto"}
		switch {
		case freeze && noFreeze:
			return errBothFreeze
		case freeze:
			action.Freeze = "always"
		case noFreeze:
			action.Freeze = "never"
		}
		r.Action = &berthv1.ActOnVMsRequest_Snapshot{Snapshot: action}
		return nil
	})
	cmd.Flags().StringVar(&description, "description", "", "`TEXT` for people")
	cmd.Flags().BoolVar(&freeze, "freeze", false, "take none unless the guest's file systems can stand still")
	cmd.Flags().BoolVar(&noFreeze, "no-freeze", false, "do not ask the guest agent")
	term.Complete(cmd, "description", cobra.NoFileCompletions)
	return cmd
}

var errBothFreeze = fmt.Errorf("--freeze and --no-freeze exclude each other")

func snapshotRevertCommand(a *term.App) *cobra.Command {
	return snapshotAct(a, &cobra.Command{
		Use: "revert NAME...", Short: "Have the disks of stopped VMs be as in a snapshot",
		Long: `Have the disks of a VM that is stopped be as they were when a snapshot was taken. What was written since is lost, unless
another snapshot has it. All snapshots stay. Until all disks are reverted the VM is not started: if a revert was broken
off, repeat it.`,
		Example: `  berth vm snapshot revert web1 --name before-upgrade
  berth vm snapshot revert web1 --name before-upgrade --yes`,
	}, "reverted", "What %s has written since snapshot %s was taken is lost. Revert?",
		func(r *berthv1.ActOnVMsRequest, name string) error {
			r.Action = &berthv1.ActOnVMsRequest_Restore{Restore: &berthv1.RestoreAction{Name: name}}
			return nil
		})
}

func snapshotDeleteCommand(a *term.App) *cobra.Command {
	var force bool
	cmd := snapshotAct(a, &cobra.Command{
		Use: "delete NAME...", Short: "Remove a snapshot of VMs",
		Long: `Remove a snapshot of VMs, whether they run or not. Their disks stay as they are. One that was taken or removed in part
only is removed as well. --force also removes one that a revert has not come to its end with, and gives that revert up:
the VM is then started with its disks as they are, of which some may be as in the snapshot and others not.`,
		Example: `  berth vm snapshot delete web1 --name before-upgrade
  berth vm snapshot delete --selector label=web --name weekly --yes`,
	}, "deleted", "Nobody can revert %s to snapshot %s afterwards. Delete it?",
		func(r *berthv1.ActOnVMsRequest, name string) error {
			r.Action = &berthv1.ActOnVMsRequest_Forget{Forget: &berthv1.ForgetAction{Name: name, Force: force}}
			return nil
		})
	cmd.Flags().BoolVar(&force, "force", false, "give up a revert to it that cannot come to its end")
	return cmd
}

func snapshotListCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "list NAME", Short: "List the snapshots of a VM", Args: term.Arguments(1, "NAME"), ValidArgsFunction: a.VMNames(),
		Example: `  berth vm snapshot list web1
  berth vm snapshot list web1 -o json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetVM, &berthv1.GetVMRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			vm := answer.GetVm()
			a.NoteIfEmpty(cmd, len(vm.GetSnapshots()), "no snapshots: 'berth vm snapshot add --help' shows how to take one")
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   term.Prefixed("snapshot/", vm.GetSnapshots(), (*berthv1.Snapshot).GetName),
				Text:    func(p *term.Page, _ bool) { snapshotTable(a, p, vm) },
			})
		},
	}
}

func snapshotTable(a *term.App, p *term.Page, vm *berthv1.VM) {
	rows := make([][]string, 0, len(vm.GetSnapshots()))
	for _, one := range vm.GetSnapshots() {
		rows = append(rows, []string{
			one.GetName(), a.Since(one.GetTakenAt()), one.GetTakenBy(), snapshotDisks(one), consistencyOf(one),
			cmp.Or(one.GetDescription(), term.None),
		})
	}
	p.Table([]string{"NAME", "AGE", "BY", "DISKS", "CONSISTENT", "DESCRIPTION"}, rows)
	if vm.GetReverting() != "" {
		p.Line("its disks are being reverted to %s, and not all are known to be: 'berth vm snapshot revert %s --name %s' brings it to an end",
			vm.GetReverting(), vm.GetName(), vm.GetReverting())
	}
}

func snapshotDisks(one *berthv1.Snapshot) string {
	targets := make([]string, 0, len(one.GetDisks()))
	for _, disk := range one.GetDisks() {
		targets = append(targets, disk.GetTarget())
	}
	return strings.Join(targets, ",")
}

// consistencyOf says how consistent a snapshot is, for people.
func consistencyOf(one *berthv1.Snapshot) string {
	switch {
	case one.GetPartial():
		return "not whole: delete it"
	case one.GetConsistency() == "crash":
		return "as after a power cut"
	case one.GetConsistency() == "frozen":
		return "yes, frozen"
	case one.GetConsistency() == "off":
		return "yes, off"
	}
	return cmp.Or(one.GetConsistency(), term.None)
}

// snapshotRows are the snapshots of a VM among what is shown of it.
func snapshotRows(a *term.App, vm *berthv1.VM) (rows [][2]string) {
	for _, one := range vm.GetSnapshots() {
		rows = append(rows, [2]string{"snapshot", fmt.Sprintf("%s, taken %s ago by %s of %s, consistent: %s", one.GetName(),
			a.Since(one.GetTakenAt()), one.GetTakenBy(), snapshotDisks(one), consistencyOf(one))})
	}
	if vm.GetReverting() != "" {
		rows = append(rows, [2]string{"reverting to", fmt.Sprintf("%s: until that is done it is not started; repeat "+
			"'berth vm snapshot revert %s --name %s' if no operation does it", vm.GetReverting(), vm.GetName(), vm.GetReverting())})
	}
	return rows
}
