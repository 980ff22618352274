package follow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// PlanWaitFlags are the flags of a command that begins a plan. A plan has as long as it needs, unless somebody says otherwise.
type PlanWaitFlags struct {
	noWait  bool
	Wait    bool
	Timeout time.Duration
}

// Flags adds all of the flags.
func (w *PlanWaitFlags) Flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&w.Wait, "wait", true, "wait until all is moved that can be")
	flags.BoolVar(&w.noWait, "no-wait", false, "return as soon as the plan is recorded; it then goes on by itself")
	w.TimeoutFlag(cmd)
}

// TimeoutFlag adds --timeout alone, for a command that always waits.
func (w *PlanWaitFlags) TimeoutFlag(cmd *cobra.Command) {
	cmd.Flags().DurationVar(&w.Timeout, "timeout", 0, "`DURATION` to wait, for instance 90m; the plan goes on after that (default no limit)")
	term.Complete(cmd, "timeout", cobra.NoFileCompletions)
}

// Check refuses flags that contradict each other.
func (w *PlanWaitFlags) Check(cmd *cobra.Command) error {
	timed := cmd.Flags().Changed("timeout")
	switch {
	case timed && w.Timeout <= 0:
		return term.Usagef(cmd, "--timeout %s: want more than nothing; without it there is no limit", w.Timeout)
	case w.noWait && cmd.Flags().Changed("wait") && w.Wait:
		return term.Usagef(cmd, "--wait and --no-wait exclude each other")
	case w.noWait && timed:
		return term.Usagef(cmd, "--timeout and --no-wait exclude each other")
	}
	w.Wait = w.Wait && !w.noWait
	return nil
}

// interruption is what is said after an interrupt that was dealt with.
type interruption struct{ said error }

func (i *interruption) Error() string { return term.Message(i.said) }

func (i *interruption) Unwrap() error { return i.said }

func (i *interruption) Is(target error) bool { return target == context.Canceled }

// stopped says what an interrupt left behind.
func stopped(plan *berthv1.Plan) error {
	text := fmt.Sprintf("interrupted; plan %s is stopped", plan.GetId())
	next := fmt.Sprintf("see 'berth plan show %s' for each VM", plan.GetId())
	if plan.GetKind() == string(model.PlanDrain) {
		text = fmt.Sprintf("interrupted; %s is not empty and stays in maintenance", plan.GetNode())
		next = fmt.Sprintf("'berth node drain %[1]s' goes on, 'berth node undrain %[1]s' takes it back", plan.GetNode())
	}
	return &interruption{said: term.Failf(rpc.Conflict, next, "%s", text)}
}

// AwaitPlan follows a plan to its end and returns the last that is known of it. An interrupt lets no further move begin, and
// the watch goes on until those that copy have ended; one more leaves them to themselves. The error is nil only when the
// plan has ended by itself.
func AwaitPlan(a *term.App, cmd *cobra.Command, s *term.Session, plan *berthv1.Plan, timeout time.Duration) (*berthv1.Plan, error) {
	progress := NewPlanReporter(a, cmd.ErrOrStderr())
	defer progress.End()
	plan, err := Plan(cmd.Context(), s, plan, timeout, progress)
	if err == nil || cmd.Context().Err() == nil {
		return plan, PlanLeft(plan, err, timeout)
	}
	ctx, stop := a.NextInterrupt(context.WithoutCancel(cmd.Context()))
	defer stop()
	progress.note("stopping: no further move begins; interrupt once more to leave without waiting for those that copy")
	if plan, err = stopPlan(ctx, s, plan); err != nil {
		return plan, err
	}
	if copying := TallyOf(plan).Moving; len(copying) > 0 {
		progress.note("still copying: " + strings.Join(term.Prefixed("vm/", copying, (*berthv1.Move).GetVm), ", "))
	}
	plan, err = Plan(ctx, s, plan, timeout, progress)
	switch {
	case err != nil && ctx.Err() == nil:
		return plan, PlanLeft(plan, err, timeout)
	case plan.GetState() == string(model.PlanDone): // it was through before the interrupt came to it
		return plan, nil
	}
	return plan, stopped(plan)
}

// stopPlan lets no further move of a plan begin. One that has ended meanwhile is as good.
func stopPlan(ctx context.Context, s *term.Session, plan *berthv1.Plan) (*berthv1.Plan, error) {
	answer, err := term.Ask(ctx, s, term.Client.CancelPlan, &berthv1.CancelPlanRequest{Id: plan.GetId(), RequestId: term.RequestID()})
	if err == nil {
		return answer.GetPlan(), nil
	}
	now, getErr := term.Ask(ctx, s, term.Client.GetPlan, &berthv1.GetPlanRequest{Id: plan.GetId()})
	if getErr == nil && PlanEnded(now.GetPlan()) {
		return now.GetPlan(), nil
	}
	return plan, &interruption{said: term.Failf(rpc.Detail(err).GetCode(), fmt.Sprintf("'berth plan cancel %s' stops it", plan.GetId()),
		"interrupted, and the plan goes on, for it could not be asked to stop: %s", term.Message(err))}
}

// PlanLeft is the error of a watch that ended before the plan.
func PlanLeft(plan *berthv1.Plan, err error, timeout time.Duration) error {
	if errors.Is(err, errTimeout) {
		return term.Failf(rpc.Timeout, fmt.Sprintf(
			"watch it with 'berth plan watch %[1]s', stop it with 'berth plan cancel %[1]s'", plan.GetId(),
		),
			"plan %s still runs after %s; it goes on without this command", plan.GetId(), term.Span(timeout))
	}
	return err
}

// Plan watches a plan until it has ended. It returns the newest state that it saw, with an error too.
func Plan(
	ctx context.Context, s *term.Session, plan *berthv1.Plan, timeout time.Duration, progress PlanReporter,
) (*berthv1.Plan, error) {
	cancel := context.CancelFunc(func() {})
	if timeout > 0 {
		ctx, cancel = context.WithTimeoutCause(ctx, timeout, errTimeout)
	}
	defer cancel()
	progress.Update(plan)
	err := term.Watch(ctx, s, term.Client.WatchPlan, &berthv1.WatchPlanRequest{Id: plan.GetId()}, term.Watcher[berthv1.WatchPlanResponse]{
		Over: func() bool { return PlanEnded(plan) },
		See: func(seen *berthv1.WatchPlanResponse) {
			if seen.GetPlan() != nil {
				plan = seen.GetPlan()
				progress.Update(plan)
			}
		},
		Lost: func() { progress.note("lost sight of the plan; it goes on, looking for it on the other coordinators") },
	})
	return plan, err
}

// PlanError judges a plan that was followed to its end: everything that was to move has to have moved. What was to stay from
// the beginning is no error.
func PlanError(plan *berthv1.Plan) error {
	next := fmt.Sprintf("see 'berth plan show %s' for each VM", plan.GetId())
	missed := 0
	for _, move := range plan.GetMoves() {
		if move.GetState() == model.MoveFailed || move.GetState() == model.MoveLeft {
			missed++
		}
	}
	switch state := model.PlanState(plan.GetState()); {
	case state == model.PlanCancelled:
		return term.Failf(rpc.Conflict, next, "plan %s was cancelled", plan.GetId())
	case state == model.PlanDiscarded:
		return term.Failf(rpc.Conflict, next, "plan %s was discarded", plan.GetId())
	case missed > 0:
		return term.Failf(rpc.Conflict, next, "%s did not move", term.Count(missed, "VM"))
	case state == model.PlanFailed:
		return term.Failf(rpc.Conflict, next, "plan %s failed: %s", plan.GetId(), cmp.Or(plan.GetMessage(), "no reason is recorded"))
	}
	return nil
}
