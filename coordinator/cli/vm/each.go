package vm

import (
	"context"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// eachVM does to several VMs what is asked for one at a time, and then waits for all the operations together. What is refused of one
// is told of that one, and the others go on; where no coordinator answers any more, the rest is not asked for.
func eachVM(
	a *term.App, cmd *cobra.Command, s *term.Session, names []string, words deed, dryRun bool, wait follow.WaitFlags,
	ask func(context.Context, *term.Session, *berthv1.ActedVM) error,
) error {
	answer := &berthv1.ActOnVMsResponse{SchemaVersion: "1"}
	operations := make([]*berthv1.Operation, 0, len(names))
	var cut error
	for _, name := range names {
		acted := &berthv1.ActedVM{Vm: name}
		err := cut
		if err == nil {
			err = ask(cmd.Context(), s, acted)
		}
		if err != nil {
			acted.Operation, acted.Message = nil, term.Message(err)
			if acted.Error = rpc.Detail(err); acted.Error == nil {
				acted.Error = &berthv1.ErrorDetail{Code: rpc.Unavailable}
			}
			if cmd.Context().Err() != nil || !term.Answered(err) {
				cut = err
			}
		}
		answer.Acted, operations = append(answer.Acted, acted), append(operations, acted.GetOperation())
	}
	var waited error
	if wait.Wait && !dryRun {
		waited = follow.AwaitEach(a, cmd, s, operations, wait.Timeout, func(i int, last *berthv1.Operation) {
			answer.GetActed()[i].Operation = last
		})
	}
	return printActed(a, cmd, answer, words, dryRun, waited)
}
