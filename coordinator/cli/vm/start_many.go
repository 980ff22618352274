package vm

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// severalNames accepts any number of names, none of them empty and none twice.
func severalNames(cmd *cobra.Command, args []string) error {
	term.WithoutKinds(cmd, args)
	for i, name := range args {
		switch {
		case name == "":
			return term.Usagef(cmd, "NAME is empty")
		case slices.Contains(args[:i], name):
			return term.Usagef(cmd, "%q is there twice", name)
		}
	}
	return nil
}

// namesOrSelector accepts any number of names, or none where --selector chooses.
func namesOrSelector(cmd *cobra.Command, args []string) error {
	if bySelector(cmd) {
		return someNames(cmd, args)
	}
	return severalNames(cmd, args)
}

// describedOne refuses, with several names, the flags that are about one VM.
func describedOne(cmd *cobra.Command, args []string) error {
	given := term.ChangedFlags(cmd, slices.Concat(describing, []string{"xml", "key"}, traitFlagNames, placeFlagNames))
	switch {
	case len(args) < 2 && !bySelector(cmd):
		return nil
	case len(given) > 0:
		return term.Usagef(cmd, "%s describes one VM: several that exist start without it", given[0])
	case cmd.Flags().Changed("full"):
		return term.Usagef(cmd, "--full is for one VM")
	}
	return nil
}

// startMany starts VMs that exist. Each has a line of its own: that one is refused does not stop the others.
func startMany(a *term.App, cmd *cobra.Command, choose *choosing, request *berthv1.StartVMsRequest, wait follow.WaitFlags) error {
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	if request.Vms, err = choose.names(cmd.Context(), cmd, s, request.GetVms()); err != nil {
		return err
	}
	answer, err := term.Ask(cmd.Context(), s, term.Client.StartVMs, request)
	if err != nil {
		return err
	}
	var waited error
	if wait.Wait && !request.GetDryRun() {
		operations := make([]*berthv1.Operation, 0, len(answer.GetStarted()))
		for _, started := range answer.GetStarted() {
			operations = append(operations, started.GetOperation())
		}
		waited = follow.AwaitEach(a, cmd, s, operations, wait.Timeout, func(i int, last *berthv1.Operation) {
			started := answer.GetStarted()[i]
			started.Operation = last
			if last.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE {
				started.Decision = finalDecision(cmd, s, last, started.GetDecision())
			}
		})
	}
	for _, started := range answer.GetStarted() {
		a.Cautions(cmd.ErrOrStderr(), started.GetDecision().GetWarnings())
	}
	err = a.Print(cmd, term.Result{
		Message: answer,
		Names:   term.Prefixed("vm/", answer.GetStarted(), (*berthv1.StartedVM).GetVm),
		Text: func(p *term.Page, _ bool) {
			for _, started := range answer.GetStarted() {
				p.Line("%s", startedLine(started, request.GetDryRun()))
			}
		},
	})
	switch {
	case err != nil:
		return err
	case waited != nil:
		return waited
	}
	return startedError(answer.GetStarted())
}

// startedLine is what came of one of several starts.
func startedLine(started *berthv1.StartedVM, dryRun bool) string {
	op := started.GetOperation()
	text := fmt.Sprintf("vm/%s ", started.GetVm())
	switch {
	case started.GetError() != nil || started.GetMessage() != "":
		text += "is not started: " + cmp.Or(started.GetMessage(), started.GetError().GetCode())
	case dryRun:
		text += fmt.Sprintf("would start on %s (%s)", started.GetDecision().GetWinner(), explanation.Placement(started.GetDecision()))
	case op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE:
		text += fmt.Sprintf("running on %s (%s)", op.GetTarget(), explanation.Placement(started.GetDecision()))
	case op.GetCancelled():
		text += fmt.Sprintf("is not started: it was cancelled (operation %s)", op.GetId())
	case follow.Ended(op):
		text += fmt.Sprintf("did not start, %s: %s (operation %s)", term.Enum(op.GetResult(), "OPERATION_RESULT_"),
			cmp.Or(op.GetMessage(), "no reason is recorded"), op.GetId())
	default:
		text += fmt.Sprintf("%s (operation %s, %s)", follow.Beginning(op), op.GetId(), explanation.Placement(started.GetDecision()))
	}
	if others := started.GetUnit(); len(others) > 0 {
		text += "; placed together with " + joined(term.Prefixed("vm/", others, func(name string) string { return name }))
	}
	return text
}

// joined lists names in a sentence.
func joined(names []string) string {
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0]
	}
	text := names[0]
	for _, name := range names[1 : len(names)-1] {
		text += ", " + name
	}
	return text + " and " + names[len(names)-1]
}

// startedError judges several starts: no node fits, if that is all that is wrong, has an exit code of its own.
func startedError(all []*berthv1.StartedVM) error {
	refused, failed := 0, 0
	for _, started := range all {
		switch op := started.GetOperation(); {
		case started.GetError().GetCode() == rpc.NoNodeFits:
			refused++
		case started.GetError() != nil || started.GetMessage() != "":
			failed++
		case follow.Ended(op) && op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE:
			failed++
		}
	}
	switch {
	case failed > 0:
		return term.Failf(
			rpc.Conflict, "see 'berth vm why NAME' for each, and 'berth operation list'", "%d of %s did not start", failed+refused,
			term.Count(len(all), "VM"),
		)
	case refused > 0:
		return term.Failf(rpc.NoNodeFits, "see 'berth vm why NAME' for each", "no node fits %d of %s", refused, term.Count(len(all), "VM"))
	}
	return nil
}
