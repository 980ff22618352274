package vm

import (
	"fmt"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func adoptCommand(a *term.App) *cobra.Command {
	var (
		request berthv1.AdoptVMsRequest
		wait    follow.WaitFlags
	)
	cmd := &cobra.Command{
		Use: "adopt NAME|UUID...", Short: "Take running domains under management", Args: severalNames,
		Long: `Take domains under management that run and are not Berth's. No guest notices: a mark is written into the domain's
metadata, and Berth keeps what the domain is started with. What libvirt has a definition of keeps it; there is one, on
the node that has the VM. Its autostart is switched off, because a node that boots would start a VM that runs elsewhere
by then; 'berth vm set NAME --ha' has Berth start it again. A VM that has lost its mark, or runs where Berth has not
started it, is taken back by its name. What cannot be taken is named with the reason, and the others are.`,
		Example: `  berth vm adopt web1
  berth vm adopt --all --dry-run
  berth vm adopt --all --node node1 --vdc shop`,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && !request.GetAll():
				return term.Usagef(cmd, "name domains, or give --all")
			case len(args) > 0 && request.GetAll():
				return term.Usagef(cmd, "names and --all exclude each other")
			}
			request.Domains, request.RequestId = args, term.RequestID()
			return adopt(a, cmd, &request, wait)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&request.All, "all", false, "every domain that runs and is not Berth's")
	cmd.Flags().StringVar(&request.Node, "node", "", "only on `NODE`")
	cmd.Flags().StringVar(&request.Vdc, "vdc", "", "`VDC` that the VMs belong to")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "only tell what would be taken")
	term.Complete(cmd, "node", a.NodeNames())
	term.Complete(cmd, "vdc", cobra.NoFileCompletions)
	wait.Flags(cmd)
	return cmd
}

func adopt(a *term.App, cmd *cobra.Command, request *berthv1.AdoptVMsRequest, wait follow.WaitFlags) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	answer, err := term.Ask(cmd.Context(), s, term.Client.AdoptVMs, request)
	if err != nil {
		return err
	}
	a.NoteIfEmpty(cmd, len(answer.GetVms()), "no domain runs that is not Berth's")
	var waited error
	if wait.Wait && !request.GetDryRun() {
		operations := make([]*berthv1.Operation, 0, len(answer.GetVms()))
		for _, one := range answer.GetVms() {
			operations = append(operations, one.GetOperation())
		}
		waited = follow.AwaitEach(a, cmd, s, operations, wait.Timeout, func(i int, last *berthv1.Operation) { answer.Vms[i].Operation = last })
	}
	err = a.Print(cmd, term.Result{
		Message: answer,
		Names:   term.Prefixed("vm/", answer.GetVms(), (*berthv1.AdoptedVM).GetVm),
		Text: func(p *term.Page, _ bool) {
			for _, one := range answer.GetVms() {
				p.Line("%s", adoptedLine(one, request.GetDryRun()))
			}
		},
	})
	switch {
	case err != nil:
		return err
	case waited != nil:
		return waited
	case request.GetDryRun():
		return nil
	}
	return adoptedError(answer.GetVms())
}

// adoptedLine is what came of one domain.
func adoptedLine(one *berthv1.AdoptedVM, dryRun bool) string {
	op := one.GetOperation()
	text := "vm/" + one.GetVm()
	if one.GetNode() != "" {
		text += " on " + one.GetNode()
	}
	switch {
	case one.GetProblem() != "":
		return fmt.Sprintf("%s: not adopted: %s; %s", text, one.GetProblem(), one.GetNextStep())
	case dryRun:
		text += ": would be adopted"
	case op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE:
		text += ": adopted"
	case follow.Ended(op):
		return fmt.Sprintf("%s: not adopted: %s (operation %s)", text, op.GetMessage(), op.GetId())
	default:
		text += fmt.Sprintf(": %s (operation %s)", follow.Beginning(op), op.GetId())
	}
	if one.GetNote() != "" {
		text += "; " + one.GetNote()
	}
	return text
}

// adoptedError makes the command fail if one of several domains was not taken.
func adoptedError(all []*berthv1.AdoptedVM) error {
	missed := 0
	for _, one := range all {
		op := one.GetOperation()
		if one.GetProblem() != "" || follow.Ended(op) && op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
			missed++
		}
	}
	if missed == 0 {
		return nil
	}
	return rpc.Errorf(connect.CodeUnknown, &berthv1.ErrorDetail{
		Code: rpc.Conflict, Subject: "vm", NextStep: "each line above tells what to do",
	},
		"%d of %s not adopted", missed, term.Count(len(all), "domain"))
}

func releaseCommand(a *term.App) *cobra.Command {
	var wait follow.WaitFlags
	cmd := &cobra.Command{
		Use: "release NAME", Short: "Give a running VM back to libvirt alone", Args: term.Arguments(1, "NAME"),
		Long: `Give a VM back: Berth's mark is taken out of its metadata and Berth forgets it. The guest runs on and does not notice.
Its disks stay where they are, those that Berth has made as disks of no VM. A VM that Berth has made is transient: when
it stops, libvirt forgets it, unless 'virsh dumpxml' and 'virsh define' keep it before. A stopped VM is forgotten by
'berth vm delete'.`,
		Example: `  berth vm release web1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(cmd.Context(), s, term.Client.ReleaseVM, &berthv1.ReleaseVMRequest{Vm: args[0], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return follow.Through(a, cmd, s, answer, &answer.Operation, wait, func(op *berthv1.Operation) string {
				return fmt.Sprintf("vm/%s released; its domain runs on, on %s", op.GetVm(), op.GetSource())
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	wait.Flags(cmd)
	return cmd
}
