package operation

import (
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// keeps are whose copy may be the VM.
var keeps = []string{"source", "target", "none"}

func resolveCommand(a *term.App) *cobra.Command {
	var (
		keep string
		wait follow.WaitFlags
	)
	cmd := &cobra.Command{
		Use: "resolve ID --keep source|target|none", Short: "Decide about a parked operation", Args: term.Arguments(1, "ID"),
		Long: `Decide about a parked operation: whose copy is the VM. No rule could, and until somebody does the VM is locked.
'berth operation show ID' tells what both nodes show. Nothing is killed: as long as a node shows a copy that is not to
be kept, the decision is refused, with the command that ends that copy. The copy that is kept is resumed if the
migration has paused it. With --keep none no copy is left, and the VM is stopped.

It also decides about the copies of disks that a migration has left because it has lost its VM. With the side on which
they are, mostly the target, they are its disks from now on; with the other one they are removed. The VM's condition
says where they are.`,
		Example: `  berth operation resolve 3nqk7d2m0x1ab --keep target`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(cmd.Context(), s, term.Client.ResolveOperation,
				&berthv1.ResolveOperationRequest{Id: args[0], Keep: keep, RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			op := answer.GetOperation()
			said := fmt.Sprintf("operation %s (%s of vm/%s) is being resolved: keep %s", op.GetId(), op.GetKind(), op.GetVm(), keep)
			if wait.Wait {
				if op, err = follow.AwaitEnd(a, cmd, s, op, wait.Timeout); err != nil {
					return err
				}
				if op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_PARKED {
					return follow.OperationError(op, rpc.Conflict, fmt.Sprintf("see 'berth operation show %s'", op.GetId()), "%s is parked again: %s",
						follow.OperationPhrase(op), op.GetMessage())
				}
				answer.Operation = op
				said = fmt.Sprintf("operation %s (%s of vm/%s) is resolved: %s", op.GetId(), op.GetKind(), op.GetVm(), kept(op, keep))
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: []string{"operation/" + op.GetId()}, Text: func(p *term.Page, _ bool) { p.Line("%s", said) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.OperationIDs()),
	}
	cmd.Flags().StringVar(&keep, "keep", "", "whose copy is the VM: `source, target or none`")
	_ = cmd.MarkFlagRequired("keep") // the flag is there
	term.Complete(cmd, "keep", term.CompleteFixed(keeps...))
	wait.Flags(cmd)
	return cmd
}

// kept is what a resolution comes to.
func kept(op *berthv1.Operation, keep string) string {
	switch keep {
	case "source":
		return op.GetSource() + " has the VM"
	case "target":
		return op.GetTarget() + " has the VM"
	default:
		return "the VM is stopped"
	}
}
