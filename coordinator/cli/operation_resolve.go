package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// keeps are whose copy may be the VM.
var keeps = []string{"source", "target", "none"}

func (a *app) operationResolveCommand() *cobra.Command {
	var (
		keep string
		wait waiting
	)
	cmd := &cobra.Command{
		Use: "resolve ID --keep source|target|none", Short: "Decide about a parked operation", Args: arguments(1, "ID"),
		Long: `Decide about a parked operation: whose copy is the VM. No rule could, and until somebody does the VM is locked.
'berth operation show ID' tells what both nodes show. Nothing is killed: as long as a node shows a copy that is not to
be kept, the decision is refused, with the command that ends that copy. The copy that is kept is resumed if the
migration has paused it. With --keep none no copy is left, and the VM is stopped.`,
		Example: `  berth operation resolve 3nqk7d2m0x1ab --keep target`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.ResolveOperation,
				&berthv1.ResolveOperationRequest{Id: args[0], Keep: keep, RequestId: requestID()})
			if err != nil {
				return err
			}
			op := answer.GetOperation()
			said := fmt.Sprintf("operation %s (%s of vm/%s) is being resolved: keep %s", op.GetId(), op.GetKind(), op.GetVm(), keep)
			if wait.wait {
				if op, err = a.awaitEnd(cmd, s, op, wait.timeout); err != nil {
					return err
				}
				if op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_PARKED {
					return operationError(op, rpc.Conflict, fmt.Sprintf("see 'berth operation show %s'", op.GetId()), "%s is parked again: %s",
						operationPhrase(op), op.GetMessage())
				}
				answer.Operation = op
				said = fmt.Sprintf("operation %s (%s of vm/%s) is resolved: %s", op.GetId(), op.GetKind(), op.GetVm(), kept(op, keep))
			}
			return a.print(cmd, result{
				message: answer, names: []string{"operation/" + op.GetId()}, text: func(p *page, _ bool) { p.line("%s", said) },
			})
		},
		ValidArgsFunction: first(a.operationIDs()),
	}
	cmd.Flags().StringVar(&keep, "keep", "", "whose copy is the VM: `source, target or none`")
	_ = cmd.MarkFlagRequired("keep") // the flag is there
	complete(cmd, "keep", fixed(keeps...))
	wait.flags(cmd)
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

// resolution says what an operator has decided.
func resolution(op *berthv1.Operation) string {
	if op.GetResolution() == "" {
		return ""
	}
	return fmt.Sprintf("keep %s, by %s", op.GetResolution(), op.GetResolvedBy())
}

// parkedStep is what a parked operation needs.
func parkedStep(op *berthv1.Operation) string {
	switch {
	case op.GetResult() != berthv1.OperationResult_OPERATION_RESULT_PARKED:
		return ""
	case op.GetEndedAt() != nil:
		return "none: it was at work when the backup was made that the cluster was restored from, and locks nothing"
	default:
		return fmt.Sprintf("decide which copy is the VM: 'berth operation resolve %s --keep source|target|none'", op.GetId())
	}
}

// viewTable shows what the nodes have of the VM now.
func (a *app) viewTable(p *page, op *berthv1.Operation) {
	if len(op.GetViews()) == 0 {
		return
	}
	p.line("  what the nodes show now")
	rows := make([][]string, 0, len(op.GetViews()))
	for _, view := range op.GetViews() {
		side := none
		switch view.GetNode() {
		case op.GetSource():
			side = "source"
		case op.GetTarget():
			side = "target"
		}
		state := strings.ReplaceAll(enum(view.GetState(), "DOMAIN_STATE_"), "_", "-")
		rows = append(rows, []string{
			"    " + view.GetNode(), side, enum(view.GetNodeState(), "NODE_STATE_"), state, or(view.GetStateReason(), none),
			strconv.FormatUint(view.GetEpoch(), 10), yesOrNo(view.GetJobActive()), yesOrNo(view.GetHolder()), span(seconds(view.GetAgeSeconds())),
		})
	}
	p.table([]string{"    NODE", "SIDE", "NODE STATE", "VM", "REASON", "EPOCH", "JOB", "HOLDER", "HEARD"}, rows)
}

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}
