package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

const defaultTimeout = 5 * time.Minute

// waiting are the flags of a command that begins an operation.
type waiting struct {
	noWait  bool
	wait    bool
	timeout time.Duration
}

func (w *waiting) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&w.wait, "wait", true, "wait until the operation has ended")
	flags.BoolVar(&w.noWait, "no-wait", false, "return as soon as the operation is recorded; it then goes on by itself")
	flags.DurationVar(&w.timeout, "timeout", defaultTimeout, "`DURATION` to wait, for instance 90s; the operation goes on after that")
	complete(cmd, "timeout", cobra.NoFileCompletions)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case w.timeout <= 0:
			return Usagef(cmd, "--timeout %s: want more than nothing; --no-wait does not wait at all", w.timeout)
		case w.noWait && cmd.Flags().Changed("wait") && w.wait:
			return Usagef(cmd, "--wait and --no-wait exclude each other")
		case w.noWait && cmd.Flags().Changed("timeout"):
			return Usagef(cmd, "--timeout and --no-wait exclude each other")
		}
		w.wait = w.wait && !w.noWait
		return nil
	}
}

var errTimeout = errors.New("timed out")

// await follows an operation to its end and returns it. An operation that does not end well is an error, and so is one
// that takes longer than the timeout.
func (a *app) await(cmd *cobra.Command, s *session, op *berthv1.Operation, timeout time.Duration) (*berthv1.Operation, error) {
	last, err := a.awaitEnd(cmd, s, op, timeout)
	if err != nil {
		return nil, err
	}
	switch last.GetResult() {
	case berthv1.OperationResult_OPERATION_RESULT_DONE:
		return last, nil
	case berthv1.OperationResult_OPERATION_RESULT_PARKED:
		return nil, operationError(last, rpc.Conflict,
			fmt.Sprintf("'berth operation show %s' has what the nodes show, 'berth operation resolve %[1]s' decides", last.GetId()),
			"%s is parked, an operator has to decide: %s", operationPhrase(last), last.GetMessage())
	default:
		return nil, operationError(last, rpc.Unavailable,
			fmt.Sprintf("see 'berth operation show %s' for each step", last.GetId()),
			"%s failed: %s", operationPhrase(last), or(last.GetMessage(), "no reason is recorded"))
	}
}

// awaitEnd follows an operation to its end, however it ends. The error says that it goes on, if it does.
func (a *app) awaitEnd(cmd *cobra.Command, s *session, op *berthv1.Operation, timeout time.Duration) (*berthv1.Operation, error) {
	last, err := a.followShown(cmd.Context(), cmd, s, op, timeout)
	if err != nil {
		return nil, unended(err, last, timeout, false)
	}
	return last, nil
}

// awaitEach follows operations to their ends, one after the other, however they end. All of them have the same time. Some
// may be nil. Seen gets the last that is known of each that was followed, by its place. The error says that those which have not ended go on.
func (a *app) awaitEach(
	cmd *cobra.Command, s *session, operations []*berthv1.Operation, timeout time.Duration, seen func(int, *berthv1.Operation),
) error {
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errTimeout)
	defer cancel()
	for i, op := range operations {
		if op == nil {
			continue
		}
		last, err := a.followShown(ctx, cmd, s, op, timeout)
		seen(i, last)
		if err != nil {
			others := slices.ContainsFunc(operations[i+1:], func(op *berthv1.Operation) bool { return op != nil })
			return unended(err, last, timeout, others)
		}
	}
	return nil
}

// followShown follows an operation with its progress shown.
func (a *app) followShown(
	ctx context.Context, cmd *cobra.Command, s *session, op *berthv1.Operation, timeout time.Duration,
) (*berthv1.Operation, error) {
	progress := a.progress(cmd.ErrOrStderr(), op)
	last, err := follow(ctx, s, op, timeout, progress)
	progress.end(err == nil && last.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE)
	return last, err
}

// unended says why an operation was not followed to its end. Others tells that more would have been followed after it.
func unended(err error, last *berthv1.Operation, timeout time.Duration, others bool) error {
	watch, alone, on := fmt.Sprintf("watch it with 'berth operation watch %s'", last.GetId()), "it goes on without this command", "goes on"
	if others {
		watch, alone, on = "watch them with 'berth operation list --running'", alone+", and so do those after it", "and those after it go on"
	}
	switch {
	case errors.Is(err, errTimeout):
		return operationError(last, rpc.Timeout, watch, "%s still runs after %s; %s", operationPhrase(last), span(timeout), alone)
	case errors.Is(err, context.Canceled):
		return fmt.Errorf("interrupted; %s %s, %s: %w", operationPhrase(last), on, watch, err)
	default:
		return err
	}
}

// operationPhrase names an operation in a sentence.
func operationPhrase(op *berthv1.Operation) string {
	noun := op.GetKind()
	if noun == "migrate" {
		noun = "migration"
	}
	return fmt.Sprintf("the %s of vm/%s (operation %s)", noun, op.GetVm(), op.GetId())
}

func operationError(op *berthv1.Operation, code, next, format string, a ...any) error {
	return rpc.Errorf(connect.CodeUnknown, &berthv1.ErrorDetail{
		Code: code, Subject: "vm/" + op.GetVm(), NextStep: next, OperationId: op.GetId(), DecisionId: op.GetDecisionId(),
	}, format, a...)
}

func ended(op *berthv1.Operation) bool {
	switch op.GetResult() {
	case berthv1.OperationResult_OPERATION_RESULT_UNSPECIFIED, berthv1.OperationResult_OPERATION_RESULT_RUNNING:
		return false
	}
	return true
}

// follow watches an operation until it has ended. It always returns the last that is known of the operation.
func follow(
	ctx context.Context, s *session, op *berthv1.Operation, timeout time.Duration, progress reporter,
) (*berthv1.Operation, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	progress.update(&berthv1.WatchOperationResponse{Operation: op})
	err := watch(ctx, s, client.WatchOperation, &berthv1.WatchOperationRequest{Id: op.GetId()}, watcher[berthv1.WatchOperationResponse]{
		over: func() bool { return ended(op) },
		see: func(seen *berthv1.WatchOperationResponse) {
			if seen.GetOperation() != nil {
				op = seen.GetOperation()
			}
			progress.update(seen)
		},
		lost: func() {
			progress.note("lost sight of the operation; it goes on, looking for it on the other coordinators")
		},
	})
	return op, err
}

// watcher is who looks at a stream.
type watcher[A any] struct {
	over func() bool // nothing more will come
	see  func(*A)
	lost func() // told once, when the stream broke and is looked for elsewhere
}

// watch reads a stream until it is over. When the stream breaks, because its coordinator died or lost the lead, it is
// opened again on any coordinator until the context ends, whose cause is then returned.
func watch[Q, A any](
	ctx context.Context, s *session,
	open func(client, context.Context, *connect.Request[Q]) (*connect.ServerStreamForClient[A], error), question *Q, w watcher[A],
) error {
	for told := false; !w.over(); {
		err := s.call(ctx, repeatable, func(ctx context.Context, c client) error {
			stream, err := open(c, ctx, connect.NewRequest(question))
			if err != nil {
				return err
			}
			defer stream.Close()
			for stream.Receive() {
				w.see(stream.Msg())
			}
			if w.over() {
				return nil // whatever ended the stream
			}
			return stream.Err()
		})
		switch {
		case w.over():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && answered(err) && !cutShort(err):
			return err
		}
		if deadline, limited := ctx.Deadline(); !told && (!limited || time.Until(deadline) > roundPause) { // else there is no time
			told = true
			w.lost()
		}
		if !pause(ctx, jittered(roundPause)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// cutShort tells a stream that its server ended, by our own deadline or because it stops, from a refusal.
func cutShort(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled
}
