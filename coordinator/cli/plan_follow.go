package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// planWaiting are the flags of a command that begins a plan. A plan has as long as it needs, unless somebody says otherwise.
type planWaiting struct {
	noWait  bool
	wait    bool
	timeout time.Duration
}

func (w *planWaiting) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&w.wait, "wait", true, "wait until all is moved that can be")
	flags.BoolVar(&w.noWait, "no-wait", false, "return as soon as the plan is recorded; it then goes on by itself")
	w.timeoutFlag(cmd)
}

func (w *planWaiting) timeoutFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.timeout, "timeout", 0, "`DURATION` to wait, for instance 90m; the plan goes on after that (default no limit)")
	complete(cmd, "timeout", cobra.NoFileCompletions)
}

func (w *planWaiting) check(cmd *cobra.Command) error {
	timed := cmd.Flags().Changed("timeout")
	switch {
	case timed && w.timeout <= 0:
		return Usagef(cmd, "--timeout %s: want more than nothing; without it there is no limit", w.timeout)
	case w.noWait && cmd.Flags().Changed("wait") && w.wait:
		return Usagef(cmd, "--wait and --no-wait exclude each other")
	case w.noWait && timed:
		return Usagef(cmd, "--timeout and --no-wait exclude each other")
	}
	w.wait = w.wait && !w.noWait
	return nil
}

// nextInterrupt is a context that ends with the next interrupt from now on.
func nextInterrupt(ctx context.Context) (context.Context, context.CancelFunc) {
	return signal.NotifyContext(ctx, os.Interrupt)
}

// interruption is what is said after an interrupt that was dealt with.
type interruption struct{ said error }

func (i *interruption) Error() string        { return message(i.said) }
func (i *interruption) Unwrap() error        { return i.said }
func (i *interruption) Is(target error) bool { return target == context.Canceled }

// stopped says what an interrupt left behind.
func stopped(plan *berthv1.Plan) error {
	text := fmt.Sprintf("interrupted; plan %s is stopped", plan.GetId())
	next := fmt.Sprintf("see 'berth plan show %s' for each VM", plan.GetId())
	if plan.GetKind() == string(cluster.PlanDrain) {
		text = fmt.Sprintf("interrupted; %s is not empty and stays in maintenance", plan.GetNode())
		next = fmt.Sprintf("'berth node drain %[1]s' goes on, 'berth node undrain %[1]s' takes it back", plan.GetNode())
	}
	return &interruption{said: failf(rpc.Conflict, next, "%s", text)}
}

// awaitPlan follows a plan to its end and returns the last that is known of it. An interrupt lets no further move begin, and
// the watch goes on until those that copy have ended; one more leaves them to themselves. The error is nil only when the
// plan has ended by itself.
func (a *app) awaitPlan(cmd *cobra.Command, s *session, plan *berthv1.Plan, timeout time.Duration) (*berthv1.Plan, error) {
	progress := a.planReporter(cmd.ErrOrStderr())
	defer progress.end()
	plan, err := followPlan(cmd.Context(), s, plan, timeout, progress)
	if err == nil || cmd.Context().Err() == nil {
		return plan, planLeft(plan, err, timeout)
	}
	ctx, stop := a.nextInterrupt(context.WithoutCancel(cmd.Context()))
	defer stop()
	progress.note("stopping: no further move begins; interrupt once more to leave without waiting for those that copy")
	if plan, err = stopPlan(ctx, s, plan); err != nil {
		return plan, err
	}
	if copying := tallyOf(plan).moving; len(copying) > 0 {
		progress.note("still copying: " + strings.Join(prefixed("vm/", copying, (*berthv1.Move).GetVm), ", "))
	}
	plan, err = followPlan(ctx, s, plan, timeout, progress)
	switch {
	case err != nil && ctx.Err() == nil:
		return plan, planLeft(plan, err, timeout)
	case plan.GetState() == string(cluster.PlanDone): // it was through before the interrupt came to it
		return plan, nil
	}
	return plan, stopped(plan)
}

// stopPlan lets no further move of a plan begin. One that has ended meanwhile is as good.
func stopPlan(ctx context.Context, s *session, plan *berthv1.Plan) (*berthv1.Plan, error) {
	answer, err := ask(ctx, s, repeatable, client.CancelPlan, &berthv1.CancelPlanRequest{Id: plan.GetId(), RequestId: requestID()})
	if err == nil {
		return answer.GetPlan(), nil
	}
	now, getErr := ask(ctx, s, repeatable, client.GetPlan, &berthv1.GetPlanRequest{Id: plan.GetId()})
	if getErr == nil && planEnded(now.GetPlan()) {
		return now.GetPlan(), nil
	}
	return plan, &interruption{said: failf(rpc.Detail(err).GetCode(), fmt.Sprintf("'berth plan cancel %s' stops it", plan.GetId()),
		"interrupted, and the plan goes on, for it could not be asked to stop: %s", message(err))}
}

// planLeft is the error of a watch that ended before the plan.
func planLeft(plan *berthv1.Plan, err error, timeout time.Duration) error {
	if errors.Is(err, errTimeout) {
		return failf(rpc.Timeout, fmt.Sprintf("watch it with 'berth plan watch %[1]s', stop it with 'berth plan cancel %[1]s'", plan.GetId()),
			"plan %s still runs after %s; it goes on without this command", plan.GetId(), span(timeout))
	}
	return err
}

// followPlan watches a plan until it has ended. It always returns the last that is known of it.
func followPlan(
	ctx context.Context, s *session, plan *berthv1.Plan, timeout time.Duration, progress planReporter,
) (*berthv1.Plan, error) {
	cancel := context.CancelFunc(func() {})
	if timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	defer cancel()
	progress.update(plan)
	err := watch(ctx, s, client.WatchPlan, &berthv1.WatchPlanRequest{Id: plan.GetId()}, watcher[berthv1.WatchPlanResponse]{
		over: func() bool { return planEnded(plan) },
		see: func(seen *berthv1.WatchPlanResponse) {
			if seen.GetPlan() != nil {
				plan = seen.GetPlan()
				progress.update(plan)
			}
		},
		lost: func() { progress.note("lost sight of the plan; it goes on, looking for it on the other coordinators") },
	})
	return plan, err
}

// planError judges a plan that was followed to its end: everything that was to move has to have moved. What was to stay from
// the beginning is no error.
func planError(plan *berthv1.Plan) error {
	next := fmt.Sprintf("see 'berth plan show %s' for each VM", plan.GetId())
	missed := 0
	for _, move := range plan.GetMoves() {
		if move.GetState() == cluster.MoveFailed || move.GetState() == cluster.MoveLeft {
			missed++
		}
	}
	switch state := cluster.PlanState(plan.GetState()); {
	case state == cluster.PlanCancelled:
		return failf(rpc.Conflict, next, "plan %s was cancelled", plan.GetId())
	case state == cluster.PlanDiscarded:
		return failf(rpc.Conflict, next, "plan %s was discarded", plan.GetId())
	case missed > 0:
		return failf(rpc.Conflict, next, "%s did not move", count(missed, "VM"))
	case state == cluster.PlanFailed:
		return failf(rpc.Conflict, next, "plan %s failed: %s", plan.GetId(), or(plan.GetMessage(), "no reason is recorded"))
	}
	return nil
}
