package vm

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func acceptCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "accept NAME", Short: "Keep what somebody has changed of a VM beside Berth", Args: term.Arguments(1, "NAME"),
		Long: `Keep what somebody has changed of a VM's disks and network interfaces beside Berth while it ran: a snapshot, a disk that
was copied to another place, a device that was attached or detached. The next start uses what ran last in any case; from
now on nothing warns of it.

Its size is kept as well if somebody has changed that with 'virsh setvcpus' or 'virsh setmem'. Without this the next
start has the size of the record. Memory counts only where --max-memory gives it room to grow.`,
		Example: `  berth vm accept web1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.AcceptDrift, &berthv1.AcceptDriftRequest{Vm: args[0], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return printSettled(a, cmd, answer, answer.GetVm(), "is kept as it runs")
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
}

func revertCommand(a *term.App) *cobra.Command {
	var withoutWrites bool
	cmd := &cobra.Command{
		Use: "revert NAME", Short: "Have a VM start with the devices of its record", Args: term.Arguments(1, "NAME"),
		Long: `Have the next start of a VM use the disks and network interfaces of its record, and not what somebody has changed of
them beside Berth. The guest that runs does not notice. If it runs on another disk than its record names, what it has
written there is not in the disk of the record: that takes --without-writes.`,
		Example: `  berth vm revert web1
  berth vm revert web1 --without-writes`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.RevertDrift, &berthv1.RevertDriftRequest{
				Vm: args[0], RequestId: term.RequestID(), WithoutWrites: withoutWrites,
			})
			if err != nil {
				return err
			}
			return printSettled(a, cmd, answer, answer.GetVm(), "uses its record at its next start")
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().BoolVar(&withoutWrites, "without-writes", false, "leave what the guest has written to other disks than those of its record")
	return cmd
}

func printSettled(a *term.App, cmd *cobra.Command, answer proto.Message, vm, what string) error {
	return a.Print(cmd, term.Result{
		Message: answer,
		Names:   []string{"vm/" + vm},
		Text:    func(p *term.Page, _ bool) { p.Line("vm/%s %s", vm, what) },
	})
}

// driftRows tell with which devices a VM runs that somebody has changed beside Berth.
func driftRows(a *term.App, vm *berthv1.VM) (rows [][2]string) {
	drift := vm.GetDrift()
	if drift == nil {
		return nil
	}
	for _, one := range drift.GetDevices() {
		name := one.GetKind() + " " + one.GetKey()
		var text string
		switch {
		case one.GetFound():
			text = fmt.Sprintf("%s: %s is on top of %s, which its record has, and was written later", name, one.GetIs(), one.GetWas())
			if one.GetRivals() != "" {
				text += ", and so is " + one.GetRivals()
			}
			rows = append(rows, [2]string{"found", text})
			continue
		case one.GetWas() == "":
			text = fmt.Sprintf("%s: %s, not in its record", name, one.GetIs())
		case one.GetIs() == "":
			text = fmt.Sprintf("%s: none, its record has %s", name, one.GetWas())
		default:
			text = fmt.Sprintf("%s: %s, its record has %s", name, one.GetIs(), one.GetWas())
		}
		if one.GetBy() != "" {
			text += fmt.Sprintf("; changed by %s %s", one.GetBy(), a.At(one.GetAt()))
		}
		rows = append(rows, [2]string{"runs with", text})
	}
	return rows
}
