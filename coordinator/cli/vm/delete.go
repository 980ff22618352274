package vm

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func deleteCommand(a *term.App) *cobra.Command {
	var (
		yes    bool
		keep   bool
		dryRun bool
		choose choosing
		wait   follow.WaitFlags
	)
	cmd := &cobra.Command{
		Use: "delete NAME...", Short: "Forget stopped VMs, with the disks that were made for them", Args: someNames,
		Long: `Forget stopped VMs: their descriptions, their keys and their places in groups. Disks that Berth has made in a storage
pool are removed with them, but for those that are to be kept; --keep-disks keeps all. Disks that are files are not
touched. One that is refused does not keep the others from being deleted.`,
		Example: `  berth vm delete web1
  berth vm delete web1 --keep-disks
  berth vm delete web1 web2 --yes
  berth vm delete --selector label=test,state=stopped --dry-run`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if !dryRun && !choose.on() {
				if err := term.Confirm(cmd, yes, deleteQuestion(args, keep)); err != nil {
					return err
				}
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			names, err := choose.names(cmd.Context(), cmd, s, args)
			if err != nil {
				return err
			}
			if dryRun {
				return eachVM(a, cmd, s, names, "deleted", true, wait, wouldDelete)
			}
			if choose.on() {
				if err := term.Confirm(cmd, yes, deleteQuestion(names, keep)); err != nil {
					return err
				}
			}
			if len(args) == 1 {
				return vmDelete(a, cmd, s, &berthv1.DeleteVMRequest{Vm: args[0], KeepDisks: keep, RequestId: term.RequestID()}, wait)
			}
			return eachVM(a, cmd, s, names, "deleted", false, wait, func(ctx context.Context, s *term.Session, acted *berthv1.ActedVM) error {
				answer, err := term.Ask(ctx, s, term.Client.DeleteVM, &berthv1.DeleteVMRequest{
					Vm: acted.GetVm(), KeepDisks: keep, RequestId: term.RequestID(),
				})
				acted.Operation = answer.GetOperation()
				return err
			})
		},
		ValidArgsFunction: term.CompleteOthers(a.VMNames()),
	}
	cmd.Flags().BoolVar(&keep, "keep-disks", false, "all of their disks stay, as disks of no VM")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be deleted, and what would be refused")
	choose.flag(cmd)
	term.ConfirmFlag(cmd, &yes)
	wait.Flags(cmd)
	return cmd
}

// deleteQuestion is asked before VMs are deleted. It names all of them: who has chosen them by labels sees here which they are.
func deleteQuestion(names []string, keep bool) string {
	refs := term.Prefixed("vm/", names, func(name string) string { return name })
	what, whose, their := "vm/"+names[0], "it", "Its"
	if len(names) > 1 {
		what, whose, their = fmt.Sprintf("%s (%s)", term.Count(len(names), "VM"), strings.Join(refs, ", ")), "them", "Their"
	}
	if keep {
		return fmt.Sprintf("Forget %s? %s disks stay.", what, their)
	}
	return fmt.Sprintf("Forget %s? Disks that were made for %s go with %[2]s.", what, whose)
}

// wouldDelete says what would keep a VM from being deleted now.
func wouldDelete(ctx context.Context, s *term.Session, acted *berthv1.ActedVM) error {
	answer, err := term.Ask(ctx, s, term.Client.GetVM, &berthv1.GetVMRequest{Vm: acted.GetVm()})
	if err != nil {
		return err
	}
	vm := answer.GetVm()
	switch {
	case vm.GetOperationId() != "":
		return term.Failf(rpc.Busy, fmt.Sprintf("wait for it with 'berth operation watch %s'", vm.GetOperationId()),
			"operation %s works on VM %q", vm.GetOperationId(), vm.GetName())
	case vm.GetNode() != "" || vm.GetState() != berthv1.VMState_VM_STATE_STOPPED:
		return term.Failf(rpc.Conflict, fmt.Sprintf("stop it first: 'berth vm stop %s'", vm.GetName()),
			"VM %q is not stopped: it is %s", vm.GetName(), term.Enum(vm.GetState(), "VM_STATE_"))
	}
	return nil
}

func vmDelete(
	a *term.App, cmd *cobra.Command, s *term.Session, request *berthv1.DeleteVMRequest, wait follow.WaitFlags,
) error {
	answer, err := term.Ask(cmd.Context(), s, term.Client.DeleteVM, request)
	if err != nil {
		return err
	}
	if answer.GetOperation() != nil {
		return follow.Through(a, cmd, s, answer, &answer.Operation, wait, func(op *berthv1.Operation) string {
			return fmt.Sprintf("vm/%s deleted, and its disks removed, after %s", op.GetVm(), follow.Took(op))
		})
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + request.GetVm()},
		Text: func(p *term.Page, _ bool) { p.Line("vm/%s deleted; its disks stay where they are", request.GetVm()) },
	})
}
