package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// DefaultTimeout is how long a command waits for an operation unless --timeout says otherwise.
const DefaultTimeout = 5 * time.Minute

// WaitFlags are the flags of a command that begins an operation.
type WaitFlags struct {
	noWait  bool
	Wait    bool
	Timeout time.Duration
}

// Flags adds the flags, and the check of their combination.
func (w *WaitFlags) Flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&w.Wait, "wait", true, "wait until the operation has ended")
	flags.BoolVar(&w.noWait, "no-wait", false, "return as soon as the operation is recorded; it then goes on by itself")
	flags.DurationVar(&w.Timeout, "timeout", DefaultTimeout, "`DURATION` to wait, for instance 90s; the operation goes on after that")
	term.Complete(cmd, "timeout", cobra.NoFileCompletions)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case w.Timeout <= 0:
			return term.Usagef(cmd, "--timeout %s: want more than nothing; --no-wait does not wait at all", w.Timeout)
		case w.noWait && cmd.Flags().Changed("wait") && w.Wait:
			return term.Usagef(cmd, "--wait and --no-wait exclude each other")
		case w.noWait && cmd.Flags().Changed("timeout"):
			return term.Usagef(cmd, "--timeout and --no-wait exclude each other")
		}
		w.Wait = w.Wait && !w.noWait
		return nil
	}
}

var errTimeout = errors.New("timed out")

// Await follows an operation to its end and returns it. An operation that does not end well is an error, and so is one
// that takes longer than the timeout.
func Await(a *term.App, cmd *cobra.Command, s *term.Session, op *berthv1.Operation, timeout time.Duration) (*berthv1.Operation, error) {
	last, err := AwaitEnd(a, cmd, s, op, timeout)
	if err != nil {
		return nil, err
	}
	switch last.GetResult() {
	case berthv1.OperationResult_OPERATION_RESULT_DONE:
		return last, nil
	case berthv1.OperationResult_OPERATION_RESULT_PARKED:
		return nil, OperationError(last, rpc.Conflict,
			fmt.Sprintf("'berth operation show %s' has what the nodes show, 'berth operation resolve %[1]s' decides", last.GetId()),
			"%s is parked, an operator has to decide: %s", OperationPhrase(last), last.GetMessage())
	case berthv1.OperationResult_OPERATION_RESULT_FAILED:
		if !last.GetCancelled() {
			break
		}
		return nil, OperationError(last, rpc.Conflict,
			fmt.Sprintf("see 'berth operation show %s' for each step", last.GetId()), "%s was cancelled%s", OperationPhrase(last),
			because(last.GetMessage()))
	}
	return nil, OperationError(last, rpc.Unavailable,
		fmt.Sprintf("see 'berth operation show %s' for each step", last.GetId()),
		"%s failed: %s", OperationPhrase(last), cmp.Or(last.GetMessage(), "no reason is recorded"))
}

// because puts a reason behind what it explains, unless there is none, or it says no more than that.
func because(reason string) string {
	if reason == "" || reason == "cancelled" {
		return ""
	}
	return ": " + reason
}

// Through prints what came of a request that has begun an operation on a VM. If that is wanted it waits for the operation, which is
// one of the answer's, and says in the words of done what it has done.
func Through(
	a *term.App, cmd *cobra.Command, s *term.Session, answer proto.Message, op **berthv1.Operation, wait WaitFlags,
	done func(*berthv1.Operation) string,
) error {
	said := fmt.Sprintf("vm/%s: %s (operation %s)", (*op).GetVm(), Beginning(*op), (*op).GetId())
	if wait.Wait {
		last, err := Await(a, cmd, s, *op, wait.Timeout)
		if err != nil {
			return err
		}
		*op, said = last, done(last)
		if note := last.GetMessage(); note != "" { // of a stop: that it was not there any more, and may run elsewhere
			said += "; " + note
		}
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: []string{"vm/" + (*op).GetVm()}, Text: func(p *term.Page, _ bool) { p.Line("%s", said) },
	})
}

// AwaitEnd follows an operation to its end, however it ends. The error says that it goes on, if it does.
func AwaitEnd(a *term.App, cmd *cobra.Command, s *term.Session, op *berthv1.Operation, timeout time.Duration) (*berthv1.Operation, error) {
	last, err := followShown(cmd.Context(), a, cmd, s, op, timeout)
	if err != nil {
		return nil, unended(err, last, timeout, false)
	}
	return last, nil
}

// AwaitEach follows operations to their ends, one after the other, however they end. All of them have the same time. Some
// may be nil. Seen gets the last that is known of each that was followed, by its place. The error says that those which
// have not ended go on.
func AwaitEach(
	a *term.App, cmd *cobra.Command, s *term.Session, operations []*berthv1.Operation, timeout time.Duration, seen func(
		int, *berthv1.Operation,
	),
) error {
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
	defer cancel()
	for i, op := range operations {
		if op == nil {
			continue
		}
		last, err := followShown(ctx, a, cmd, s, op, timeout)
		seen(i, last)
		if err != nil {
			others := slices.ContainsFunc(operations[i+1:], func(op *berthv1.Operation) bool { return op != nil })
			return unended(err, last, timeout, others)
		}
	}
	return nil
}

// followShown follows an operation with its progress shown.
func followShown(
	ctx context.Context, a *term.App, cmd *cobra.Command, s *term.Session, op *berthv1.Operation, timeout time.Duration,
) (*berthv1.Operation, error) {
	progress := newReporter(a, cmd.ErrOrStderr(), op)
	last, err := follow(ctx, s, op, timeout, progress)
	progress.end(err == nil && last.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE)
	return last, err
}

// unended says why an operation was not followed to its end. Others tells that more would have been followed after it.
func unended(err error, last *berthv1.Operation, timeout time.Duration, others bool) error {
	watch := fmt.Sprintf("watch it with 'berth operation watch %s', cancel it with 'berth operation cancel %[1]s'", last.GetId())
	alone, on := "it goes on without this command", "goes on"
	if others {
		watch = "see them with 'berth operation list --running', and cancel them with 'berth operation cancel ID'"
		alone, on = alone+", and so do those after it", "and those after it go on"
	}
	switch {
	case errors.Is(err, errTimeout):
		return OperationError(last, rpc.Timeout, watch, "%s still runs after %s; %s", OperationPhrase(last), term.Span(timeout), alone)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted; %s %s, %s: %w", OperationPhrase(last), on, watch, err)
	default:
		return err
	}
}

// OperationPhrase names an operation in a sentence.
func OperationPhrase(op *berthv1.Operation) string {
	noun := op.GetKind()
	if noun == "migrate" {
		noun = "migration"
	}
	return fmt.Sprintf("the %s of vm/%s (operation %s)", noun, op.GetVm(), op.GetId())
}

// OperationError is an error about an operation, with the next step.
func OperationError(op *berthv1.Operation, code, next, format string, a ...any) error {
	return rpc.Errorf(connect.CodeUnknown, &berthv1.ErrorDetail{
		Code: code, Subject: "vm/" + op.GetVm(), NextStep: next, OperationId: op.GetId(), DecisionId: op.GetDecisionId(),
	}, format, a...)
}

// Ended tells whether an operation has ended, well or not.
func Ended(op *berthv1.Operation) bool {
	switch op.GetResult() {
	case berthv1.OperationResult_OPERATION_RESULT_UNSPECIFIED, berthv1.OperationResult_OPERATION_RESULT_RUNNING:
		return false
	}
	return true
}

// follow watches an operation until it has ended. It always returns the last that is known of the operation.
func follow(
	ctx context.Context, s *term.Session, op *berthv1.Operation, timeout time.Duration, progress reporter,
) (*berthv1.Operation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	progress.update(&berthv1.WatchOperationResponse{Operation: op})
	question := &berthv1.WatchOperationRequest{Id: op.GetId()}
	err := term.Watch(ctx, s, term.Client.WatchOperation, question, term.Watcher[berthv1.WatchOperationResponse]{
		Over: func() bool { return Ended(op) },
		See: func(seen *berthv1.WatchOperationResponse) {
			if seen.GetOperation() != nil {
				op = seen.GetOperation()
			}
			progress.update(seen)
		},
		Lost: func() {
			progress.note("lost sight of the operation; it goes on, looking for it on the other coordinators")
		},
	})
	return op, err
}
