package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
)

func (a *app) operationCommand() *cobra.Command {
	return noun("operation COMMAND", "See, cancel and resolve what is being done to VMs", `
An operation is one start, stop or migration, or another change of a VM. It goes on whatever becomes of the command that
began it, and when a coordinator dies the next leader takes it up.`,
		a.operationListCommand(), a.operationShowCommand(), a.operationWatchCommand(), a.operationCancelCommand(),
		a.operationResolveCommand())
}

func (a *app) operationListCommand() *cobra.Command {
	var (
		running bool
		limit   int32
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List operations, newest first", Args: arguments(0),
		Example: `  berth operation list --running`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, limit); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListOperations,
				&berthv1.ListOperationsRequest{RunningOnly: running}, limit)
			if err != nil {
				return err
			}
			a.nothing(cmd, len(answer.GetOperations()), "no operations")
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("operation/", answer.GetOperations(), (*berthv1.Operation).GetId),
				text:    func(p *page, wide bool) { a.operationTable(p, answer.GetOperations(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVar(&running, "running", false, "only those that have not ended")
	cmd.Flags().Int32Var(&limit, "limit", defaultLimit, "how many at most")
	complete(cmd, "limit", cobra.NoFileCompletions)
	return cmd
}

func (a *app) operationTable(p *page, operations []*berthv1.Operation, wide bool) {
	headings := []string{"ID", "KIND", "VM", "STATE", "SOURCE", "TARGET", "AGE", "TOOK"}
	if wide {
		headings = append(headings, "CALLER", "ATTEMPT", "EPOCH", "DECISION")
	}
	rows := make([][]string, 0, len(operations))
	for _, op := range operations {
		row := []string{
			op.GetId(), op.GetKind(), op.GetVm(), operationState(op), or(op.GetSource(), none), or(op.GetTarget(), none),
			a.since(op.GetCreatedAt()), took(op),
		}
		if wide {
			row = append(row, or(op.GetCaller(), none), strconv.Itoa(int(op.GetAttempt())),
				strconv.FormatUint(op.GetEpoch(), 10), or(op.GetDecisionId(), none))
		}
		rows = append(rows, append(row, op.GetMessage()))
	}
	p.table(append(headings, "MESSAGE"), rows)
}

// operationState is the phase while it runs, and how it ended afterwards.
func operationState(op *berthv1.Operation) string {
	if ended(op) {
		return enum(op.GetResult(), "OPERATION_RESULT_")
	}
	return or(op.GetPhase(), "running")
}

func (a *app) operationShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show ID", Short: "Show an operation and what each step was decided on", Args: arguments(1, "ID"),
		Example: `  berth operation show 3nqk7d2m0x1ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetOperation, &berthv1.GetOperationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   []string{"operation/" + answer.GetOperation().GetId()},
				text:    func(p *page, wide bool) { a.operationText(p, answer.GetOperation(), wide) },
			})
		},
		ValidArgsFunction: first(a.operationIDs()),
	}
}

func (a *app) operationText(p *page, op *berthv1.Operation, _ bool) {
	p.line("operation %s", op.GetId())
	rows := [][2]string{
		{"what", strings.TrimSpace(op.GetKind() + " vm/" + op.GetVm())},
		{"state", operationState(op)},
		{"message", op.GetMessage()},
		{"source", op.GetSource()},
		{"target", op.GetTarget()},
		{"by", op.GetCaller()},
		{"begun", fmt.Sprintf("%s (%s ago)", a.at(op.GetCreatedAt()), a.since(op.GetCreatedAt()))},
		{"took", differs(took(op), none)},
		{"attempt", strconv.Itoa(int(op.GetAttempt()))},
		{"epoch", strconv.FormatUint(op.GetEpoch(), 10)},
		{"decision", op.GetDecisionId()},
		{"resolved", resolution(op)},
		{"next step", parkedStep(op)},
	}
	if op.GetMigration() != nil {
		rows = append(rows, [2]string{"migration", moved(op.GetMigration())})
	}
	p.fields("  ", rows...)
	a.viewTable(p, op)
	if len(op.GetEvidence()) > 0 {
		p.line("  evidence, oldest first")
		for _, line := range op.GetEvidence() {
			p.line("    %s", line)
		}
	}
}

func (a *app) operationWatchCommand() *cobra.Command {
	var timeout time.Duration
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow an operation to its end", Args: arguments(1, "ID"),
		Long: `Follow an operation to its end. The exit code is that of the command that began it: 0 when it ended well. Ending the
watch does nothing to the operation.`,
		Example: `  berth operation watch 3nqk7d2m0x1ab --timeout 30m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return Usagef(cmd, "--timeout %s: want more than nothing", timeout)
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetOperation, &berthv1.GetOperationRequest{Id: args[0]})
			if err != nil {
				return err
			}
			op, err := a.await(cmd, s, answer.GetOperation(), timeout)
			if err != nil {
				return err
			}
			answer.Operation = op
			return a.print(cmd, result{
				message: answer,
				names:   []string{"operation/" + op.GetId()},
				text:    func(p *page, wide bool) { a.operationText(p, op, wide) },
			})
		},
		ValidArgsFunction: first(a.operationIDs()),
	}
	cmd.Flags().DurationVar(&timeout, "timeout", defaultTimeout, "`DURATION` to wait, for instance 90s; the operation goes on after that")
	complete(cmd, "timeout", cobra.NoFileCompletions)
	return cmd
}

func (a *app) operationCancelCommand() *cobra.Command {
	return &cobra.Command{
		Use: "cancel ID", Short: "Ask an operation to stop and to put back what it did", Args: arguments(1, "ID"),
		Long: `Ask an operation to stop and to put back what it did. Past its point of no return (for a migration: the guest runs on
the target) it goes on to its end. 'berth operation watch' tells which.`,
		Example: `  berth operation cancel 3nqk7d2m0x1ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.CancelOperation,
				&berthv1.CancelOperationRequest{Id: args[0], RequestId: requestID()})
			if err != nil {
				return err
			}
			op := answer.GetOperation()
			return a.print(cmd, result{
				message: answer,
				names:   []string{"operation/" + op.GetId()},
				text: func(p *page, _ bool) {
					p.line("operation %s (%s of vm/%s) is asked to stop; it is now %s", op.GetId(), op.GetKind(), op.GetVm(), operationState(op))
				},
			})
		},
		ValidArgsFunction: first(a.operationIDs()),
	}
}
