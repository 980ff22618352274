package vm

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// deed is what a command does to VMs, in one word: "vm/web1 paused", "vm/web1 would be paused", "vm/web1 is not paused".
type deed string

// acting are the flags of a command that does one thing to several VMs.
type acting struct {
	choosing choosing
	confirm  func(names []string) error // asks before anything is done to the VMs; nil: it is not asked
	dryRun   bool
	whenBack bool
	wait     follow.WaitFlags
}

func (f *acting) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only say what would be done, and what would be refused")
	whenBackFlag(cmd, &f.whenBack)
	f.wait.Flags(cmd)
}

// several tells whether more than one VM may be meant, or nothing is to be done: then each VM has a line of its own.
func (f *acting) several(args []string) bool { return len(args) > 1 || f.choosing.on() || f.dryRun }

// someNames accepts one name and more, or none where --selector chooses.
func someNames(cmd *cobra.Command, args []string) error {
	switch chosen := bySelector(cmd); {
	case chosen && len(args) > 0:
		return term.Usagef(cmd, "name VMs or choose them with --selector, not both")
	case !chosen && len(args) == 0:
		return term.Usagef(cmd, "NAME is missing")
	}
	return severalNames(cmd, args)
}

// actCommand is a command that needs nothing but the names of VMs.
func actCommand(a *term.App, cmd *cobra.Command, words deed, fill func(*berthv1.ActOnVMsRequest)) *cobra.Command {
	flags := &acting{}
	cmd.Args, cmd.ValidArgsFunction = someNames, a.VMNames()
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		request := &berthv1.ActOnVMsRequest{Vms: args}
		fill(request)
		return flags.act(a, cmd, request, words)
	}
	flags.flags(cmd)
	flags.choosing.flag(cmd)
	return cmd
}

func pauseCommand(a *term.App) *cobra.Command {
	return actCommand(a, &cobra.Command{
		Use: "pause NAME...", Short: "Have the guests of VMs stand still, with their memory",
		Long: `Have the guests of VMs stand still where they run. They keep their memory and their place, and notice nothing but that
time has passed. Berth tells who has paused a VM, and lets it run by no means but 'berth vm resume'. While it is paused
it does not move, and a drain says so. What a guest has in its memory ends with its node: with high availability it
starts again elsewhere, and runs.`,
		Example: `  berth vm pause web1
  berth vm pause web1 web2 --dry-run
  berth vm pause --selector label=web`,
	}, "paused", func(r *berthv1.ActOnVMsRequest) {
		r.Action = &berthv1.ActOnVMsRequest_Pause{Pause: &berthv1.PauseAction{}}
	})
}

func resumeCommand(a *term.App) *cobra.Command {
	return actCommand(a, &cobra.Command{
		Use: "resume NAME...", Short: "Let the guests of paused VMs run on",
		Long: `Let guests run on that stand still: because somebody has paused them, with Berth or with virsh, or because a disk found
no room. It is refused while another node runs a copy of the VM.`,
		Example: `  berth vm resume web1
  berth vm resume web1 web2`,
	}, "resumed", func(r *berthv1.ActOnVMsRequest) {
		r.Action = &berthv1.ActOnVMsRequest_Resume{Resume: &berthv1.ResumeAction{}}
	})
}

func resetCommand(a *term.App) *cobra.Command {
	return actCommand(a, &cobra.Command{
		Use: "reset NAME...", Short: "Restart the guests of VMs where they run, without asking them",
		Long: `Restart the guests of VMs where they run, like the reset button: a guest is not asked, and what it has not written
to its disks is gone. 'berth vm reboot' asks the guest.`,
		Example: `  berth vm reset web1
  berth vm reset web1 web2`,
	}, "reset", func(r *berthv1.ActOnVMsRequest) {
		r.Action = &berthv1.ActOnVMsRequest_Reset_{Reset_: &berthv1.ResetAction{}}
	})
}

// act has it done, and waits for the operations if that is wanted. Each VM has a line of its own.
func (f *acting) act(a *term.App, cmd *cobra.Command, request *berthv1.ActOnVMsRequest, words deed) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if request.Vms, err = f.choosing.names(cmd.Context(), cmd, s, request.GetVms()); err != nil {
		return err
	}
	if f.confirm != nil {
		if err := f.confirm(request.GetVms()); err != nil {
			return err
		}
	}
	request.DryRun, request.WhenBack, request.RequestId = f.dryRun, f.whenBack, term.RequestID()
	answer, err := term.Ask(cmd.Context(), s, term.Client.ActOnVMs, request)
	if err != nil {
		return err
	}
	var waited error
	if f.wait.Wait && !f.dryRun {
		operations := make([]*berthv1.Operation, 0, len(answer.GetActed()))
		for _, one := range answer.GetActed() {
			op := one.GetOperation()
			if later(op, f.whenBack) {
				op = nil
			}
			operations = append(operations, op)
		}
		waited = follow.AwaitEach(a, cmd, s, operations, f.wait.Timeout, func(i int, last *berthv1.Operation) {
			answer.GetActed()[i].Operation = last
		})
	}
	return printActed(a, cmd, answer, words, f.dryRun, waited)
}

// printActed prints what came of each VM. The command fails if one of them came to nothing.
func printActed(a *term.App, cmd *cobra.Command, answer *berthv1.ActOnVMsResponse, words deed, dryRun bool, waited error) error {
	err := a.Print(cmd, term.Result{
		Message: answer,
		Names:   term.Prefixed("vm/", answer.GetActed(), (*berthv1.ActedVM).GetVm),
		Text: func(p *term.Page, _ bool) {
			for _, one := range answer.GetActed() {
				p.Line("%s", words.line(one, dryRun))
			}
		},
	})
	return cmp.Or(err, waited, actedError(answer.GetActed(), words))
}

// line is what came of one VM. Where a device of it is changed, that is what the word is about.
func (d deed) line(one *berthv1.ActedVM, dryRun bool) string {
	op, subject := one.GetOperation(), "vm/"+one.GetVm()
	if device := one.GetDevice(); device != "" {
		subject += ": " + device
	}
	failed := func(why, next string) string {
		text := fmt.Sprintf("%s is not %s: %s", subject, d, why)
		if next != "" {
			text += "; next step: " + next
		}
		return text
	}
	where := ""
	switch {
	case op.GetKind() == "migrate":
		where = fmt.Sprintf(" from %s to %s", op.GetSource(), op.GetTarget())
	case op.GetSource() != "":
		where = " on " + op.GetSource()
	}
	text := ""
	switch {
	case refused(one):
		return failed(cmp.Or(one.GetMessage(), one.GetError().GetCode()), one.GetError().GetNextStep())
	case op == nil && len(one.GetFollows()) > 0: // no operation is needed, and it says so
		return subject + " " + strings.Join(one.GetFollows(), "; ")
	case dryRun:
		text = fmt.Sprintf("%s would be %s%s", subject, d, where)
	case op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE:
		text = fmt.Sprintf("%s %s%s after %s", subject, d, where, follow.Took(op))
		if op.GetMessage() != "" {
			text += "; " + op.GetMessage()
		}
	case op.GetCancelled():
		return failed(fmt.Sprintf("it was cancelled (operation %s)", op.GetId()), "")
	case follow.Ended(op):
		return failed(fmt.Sprintf("%s (operation %s)", cmp.Or(op.GetMessage(), "no reason is recorded"), op.GetId()), "")
	case op == nil: // it took no operation
		text = fmt.Sprintf("%s %s", subject, d)
	default:
		text = fmt.Sprintf("vm/%s: %s (operation %s)", one.GetVm(), follow.Beginning(op), op.GetId())
	}
	return strings.Join(append([]string{text}, one.GetFollows()...), "; ")
}

func refused(one *berthv1.ActedVM) bool { return one.GetError() != nil || one.GetMessage() != "" }

// actedError is the error of a command some of whose VMs came to nothing. With one VM it has the code of its refusal. No node fits,
// if that is all that is wrong, has an exit code of its own.
func actedError(all []*berthv1.ActedVM, words deed) error {
	failed, unfit, code := 0, 0, rpc.Conflict
	for _, one := range all {
		switch op := one.GetOperation(); {
		case refused(one):
			failed++
			if one.GetError().GetCode() == rpc.NoNodeFits {
				unfit++
			}
			if len(all) == 1 {
				code = cmp.Or(one.GetError().GetCode(), code)
			}
		case follow.Ended(op) && op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE:
			failed++
		}
	}
	switch failed {
	case 0:
		return nil
	case unfit: // nothing else is wrong
		code = rpc.NoNodeFits
	}
	return term.Failf(code, "see 'berth vm show NAME' for each, and 'berth operation list'", "%d of %s not %s", failed,
		term.Count(len(all), "VM"), words)
}
