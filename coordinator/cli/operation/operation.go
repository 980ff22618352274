package operation

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
)

// Command is the noun operation.
func Command(a *term.App) *cobra.Command {
	return term.Noun("operation COMMAND", "See, cancel and resolve what is being done to VMs", `
An operation is one start, stop or migration, or another change of a VM. It goes on whatever becomes of the command that
began it, and when a coordinator dies the next leader takes it up.`,
		listCommand(a), showCommand(a), watchCommand(a), cancelCommand(a),
		resolveCommand(a))
}

func listCommand(a *term.App) *cobra.Command {
	var (
		running bool
		limit   int32
	)
	list := &term.Lister[*berthv1.Operation]{
		What: "operation", Empty: "no operations", Limit: &limit,
		Ask: func(ctx context.Context, s *term.Session, filter *berthv1.Filter, limit int32) (term.Filtered, []*berthv1.Operation, error) {
			answer, err := term.AskAll(ctx, s, term.Client.ListOperations,
				&berthv1.ListOperationsRequest{RunningOnly: running, Filter: filter}, limit)
			return answer, answer.GetOperations(), err
		},
		Name: func(op *berthv1.Operation) string { return "operation/" + op.GetId() },
		State: func(op *berthv1.Operation) string {
			return fmt.Sprint(follow.OperationState(op), op.GetTarget(), op.GetMessage())
		},
		Table: func(p *term.Page, operations []*berthv1.Operation, wide bool) { table(a, p, operations, wide) },
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "list", Short: "List operations, newest first",
		Example: `  berth operation list --running
  berth operation list --node node1 --state failed,parked
  berth operation list --running --watch
  berth operation list --vm web1 --kind migrate --since 2d`,
	})
	cmd.Flags().BoolVar(&running, "running", false, "only those that have not ended")
	list.VMFlags(cmd, a, "from or to", "VMs of ")
	list.StateFlags(cmd, a, "VMs", "running", "done", "failed", "cancelled", "parked")
	list.PastFlags(cmd, a, "only those of `KIND`, for instance start, migrate", operation.KindNames()...)
	list.Flag(cmd,
		term.ByText("name", (*berthv1.Operation).GetVm),
		term.ByText("node", func(op *berthv1.Operation) string { return cmp.Or(op.GetTarget(), op.GetSource()) }),
		term.ByText("state", follow.OperationState),
		term.ByMost("age", func(op *berthv1.Operation) int64 { return -op.GetCreatedAt().AsTime().UnixNano() }),
	)
	return cmd
}

func table(a *term.App, p *term.Page, operations []*berthv1.Operation, wide bool) {
	headings := []string{"ID", "KIND", "VM", "STATE", "SOURCE", "TARGET", "AGE", "TOOK"}
	if wide {
		headings = append(headings, "CALLER", "ATTEMPT", "EPOCH", "DECISION")
	}
	rows := make([][]string, 0, len(operations))
	for _, op := range operations {
		row := []string{
			op.GetId(), op.GetKind(), op.GetVm(), follow.OperationState(op), cmp.Or(op.GetSource(), term.None), cmp.Or(op.GetTarget(), term.None),
			a.Since(op.GetCreatedAt()), follow.Took(op),
		}
		if wide {
			row = append(row, cmp.Or(op.GetCaller(), term.None), strconv.Itoa(int(op.GetAttempt())),
				strconv.FormatUint(op.GetEpoch(), 10), cmp.Or(op.GetDecisionId(), term.None))
		}
		rows = append(rows, append(row, op.GetMessage()))
	}
	p.Table(append(headings, "MESSAGE"), rows)
}

func showCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show an operation and what each step was decided on", Args: term.Arguments(1, "ID"),
		Example: `  berth operation show 3nqk7d2m0x1ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetOperation, &berthv1.GetOperationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"operation/" + answer.GetOperation().GetId()},
				Text:    func(p *term.Page, wide bool) { follow.WriteOperation(a, p, answer.GetOperation(), wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.OperationIDs()),
	}
}

func watchCommand(a *term.App) *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow an operation to its end", Args: term.Arguments(1, "ID"),
		Long: `Follow an operation to its end. The exit code is that of the command that began it: 0 when it ended well. Ending the
watch does nothing to the operation.`,
		Example: `  berth operation watch 3nqk7d2m0x1ab --timeout 30m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return term.Usagef(cmd, "--timeout %s: want more than nothing", timeout)
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(cmd.Context(), s, term.Client.GetOperation, &berthv1.GetOperationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			op, err := follow.Await(a, cmd, s, answer.GetOperation(), timeout)
			if err != nil {
				return err
			}
			answer.Operation = op
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"operation/" + op.GetId()},
				Text:    func(p *term.Page, wide bool) { follow.WriteOperation(a, p, op, wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.OperationIDs()),
	}
	cmd.Flags().DurationVar(
		&timeout, "timeout", follow.DefaultTimeout, "`DURATION` to wait, for instance 90s; the operation goes on after that",
	)
	term.Complete(cmd, "timeout", cobra.NoFileCompletions)
	return cmd
}

func cancelCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Ask an operation to stop and to put back what it did", Args: term.Arguments(1, "ID"),
		Long: `Ask an operation to stop and to put back what it did. Past its point of no return (for a migration: the guest runs on
the target) it goes on to its end. 'berth operation watch' tells which.`,
		Example: `  berth operation cancel 3nqk7d2m0x1ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(cmd.Context(), s, term.Client.CancelOperation,
				&berthv1.CancelOperationRequest{Id: args[0], RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			op := answer.GetOperation()
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"operation/" + op.GetId()},
				Text: func(p *term.Page, _ bool) {
					p.Line("operation %s (%s of vm/%s) is asked to stop; it is now %s", op.GetId(), op.GetKind(), op.GetVm(), follow.OperationState(op))
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.OperationIDs()),
	}
}
