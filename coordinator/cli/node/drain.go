package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func drainCommand(a *term.App) *cobra.Command {
	var (
		bandwidth                  string
		dryRun, yes, cancel, abort bool
		wait                       follow.PlanWaitFlags
	)
	request := &berthv1.DrainNodeRequest{}
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Empty a node: put it into maintenance and move its VMs away, live", Args: term.Arguments(1, "NODE"),
		Long: `Empty a node: put it into maintenance, so that it gets no further VM, and move its VMs away, live. No VM is ever
stopped: one that cannot move runs on and is listed with the reason.

First it is shown where each VM would go, which cannot move and why, what room is left on the other nodes afterwards,
and how long the copies take; --dry-run ends there. The targets are decided anew when the turn of each VM comes.

An interrupt (Ctrl-C) stops the drain cleanly: no further move begins, and those that copy are let end; a second one
leaves them to themselves. --cancel does the same from elsewhere, --abort stops those that copy too. The node stays in
maintenance until 'berth node undrain'. Repeating a drain goes on where it was stopped.

The exit code is 0 when the node is empty, with --dry-run when it would be, and 1 when some VM stays.`,
		Example: `  berth node drain node1 --dry-run
  berth node drain node1 --reason "new memory on Tuesday"
  berth node drain node1 --yes --parallel 4 --bandwidth 100M
  berth node drain node1 --cancel`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkDrain(cmd, cancel, abort, dryRun); err != nil {
				return err
			}
			if err := errors.Join(wait.Check(cmd), follow.CheckParallel(cmd, request.GetParallel())); err != nil {
				return term.Usage(cmd, err)
			}
			var err error
			if request.BandwidthBps, err = term.BandwidthFlag(cmd, bandwidth); err != nil {
				return err
			}
			if !yes && !dryRun && !cancel && !term.IsTerminal(cmd.InOrStdin()) {
				return term.Usagef(cmd, "this moves VMs and there is no terminal to ask on: look with --dry-run, and repeat it with --yes")
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			request.Node = args[0]
			switch {
			case cancel:
				return follow.CancelPlan(a, cmd, s, "node/"+args[0], abort)
			case dryRun:
				return drainDryRun(a, cmd, s, request)
			}
			return drain(a, cmd, s, request, wait, yes)
		},
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}
	flags := cmd.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "show what would move and what would stay, change nothing")
	flags.Int32Var(&request.Parallel, "parallel", 0, "`NUMBER` of moves at once (default as the cluster says)")
	flags.StringVar(&bandwidth, "bandwidth", "", "bytes a second and move at most: a `SIZE`, for instance 100M")
	flags.StringVar(&request.Reason, "reason", "", "`TEXT` that others see")
	flags.BoolVar(&cancel, "cancel", false, "stop the drain that runs: no further move begins")
	flags.BoolVar(&abort, "abort", false, "with --cancel: stop moves that copy too")
	term.ConfirmFlag(cmd, &yes)
	wait.Flags(cmd)
	for _, flag := range []string{"parallel", "bandwidth", "reason"} {
		term.Complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

// checkDrain refuses flags that say nothing together.
func checkDrain(cmd *cobra.Command, cancel, abort, dryRun bool) error {
	given := term.ChangedFlags(cmd, []string{"dry-run", "parallel", "bandwidth", "reason", "wait", "no-wait", "timeout", "yes"})
	switch {
	case abort && !cancel:
		return term.Usagef(cmd, "--abort is for --cancel")
	case cancel && len(given) > 0:
		return term.Usagef(cmd, "--cancel and %s exclude each other", given[0])
	case dryRun && len(term.ChangedFlags(cmd, []string{"wait", "no-wait", "timeout"})) > 0:
		return term.Usagef(cmd, "--dry-run moves nothing and has nothing to wait for")
	}
	return nil
}

// tryDrain asks what a drain would come to.
func tryDrain(cmd *cobra.Command, s *term.Session, request *berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
	return term.Ask(cmd.Context(), s, term.Client.DrainNode, &berthv1.DrainNodeRequest{
		Node: request.GetNode(), DryRun: true, Parallel: request.GetParallel(), BandwidthBps: request.GetBandwidthBps(),
	})
}

func drainDryRun(a *term.App, cmd *cobra.Command, s *term.Session, request *berthv1.DrainNodeRequest) error {
	answer, err := tryDrain(cmd, s, request)
	if err != nil {
		return err
	}
	plan := answer.GetPlan()
	if err := a.Print(cmd, term.Result{
		Message: answer, Names: term.Prefixed("vm/", plan.GetMoves(), (*berthv1.Move).GetVm),
		Text: func(p *term.Page, _ bool) {
			p.Line("dry run: nothing was changed")
			preflight(p, plan)
		},
	}); err != nil {
		return err
	}
	if staying := follow.TallyOf(plan).Staying; len(staying) > 0 {
		return term.Failf(
			rpc.Conflict, "do what the reasons name, or stop these VMs yourself", "%s would stay on %s", term.Count(len(staying), "VM"),
			plan.GetNode(),
		)
	}
	return nil
}

// drain shows what is ahead, asks, and carries it out.
func drain(a *term.App, cmd *cobra.Command, s *term.Session, request *berthv1.DrainNodeRequest, wait follow.PlanWaitFlags, yes bool) error {
	ahead, err := tryDrain(cmd, s, request)
	if err != nil {
		return err
	}
	if !a.Quiet || !yes {
		preflight(&term.Page{Out: cmd.ErrOrStderr(), Headless: a.NoHeaders}, ahead.GetPlan())
	}
	if !yes {
		if err := term.AskFirst(cmd, drainQuestion(ahead.GetPlan())); err != nil {
			return err
		}
	}
	request.RequestId = term.RequestID()
	// Not with the command's own context: an interrupt while the answer is on its way must not leave a drain unseen.
	answer, err := term.Ask(context.WithoutCancel(cmd.Context()), s, term.Client.DrainNode, request)
	if err != nil {
		return err
	}
	if !wait.Wait {
		return follow.CarryOut(a, cmd, s, answer, &answer.Plan, wait)
	}
	plan, failure := follow.AwaitPlan(a, cmd, s, answer.GetPlan(), wait.Timeout)
	answer.Plan = plan
	if failure == nil {
		failure = drainError(plan)
	}
	if err := a.Print(cmd, term.Result{
		Message: answer, Names: follow.PlanNames(plan), Text: func(p *term.Page, _ bool) { drainSummary(p, plan) },
	}); err != nil {
		return err
	}
	return failure
}

func drainQuestion(plan *berthv1.Plan) string {
	t := follow.TallyOf(plan)
	question := fmt.Sprintf("Put %s into maintenance and move %s away?", follow.PlanSubject(plan), term.Count(t.Wanted, "VM"))
	if t.Wanted == 0 {
		question = fmt.Sprintf("Put %s into maintenance?", follow.PlanSubject(plan))
	}
	if len(t.Staying) > 0 {
		question += fmt.Sprintf(" %d will stay.", len(t.Staying))
	}
	return question
}

// preflight shows what a drain would come to: each VM with where it would go or why it cannot, and what is left afterwards.
func preflight(p *term.Page, plan *berthv1.Plan) {
	t := follow.TallyOf(plan)
	switch {
	case len(plan.GetMoves()) == 0:
		p.Line("%s runs no VM", follow.PlanSubject(plan))
	case len(t.Staying) > 0:
		p.Line("%s: %s to move (%v), %d cannot", follow.PlanSubject(plan), term.Count(t.Wanted, "VM"), units.Bytes(t.Size), len(t.Staying))
	default:
		p.Line("%s: %s to move (%v)", follow.PlanSubject(plan), term.Count(t.Wanted, "VM"), units.Bytes(t.Size))
	}
	rows := make([][]string, 0, len(plan.GetMoves()))
	for _, move := range plan.GetMoves() {
		to := cmp.Or(move.GetTarget(), term.None)
		if move.GetState() == model.MoveStays {
			to = "stays"
		}
		rows = append(rows, []string{move.GetVm(), term.Size(move.GetMemoryBytes()), to, follow.MoveWhy(move)})
	}
	p.Indented("  ", []string{"VM", "SIZE", "GOES-TO", "WHY"}, rows)
	fields := [][2]string{{"at once", follow.PlanLimits(plan)}}
	if plan.HeadroomBytes != nil {
		fields = append(fields, [2]string{"room left", term.Known(plan.HeadroomBytes) + " to promise on the other nodes afterwards"})
	}
	if plan.LargestVmBytes != nil {
		fields = append(fields, [2]string{"largest VM", term.Known(plan.LargestVmBytes) + " that one of them still takes then"})
	}
	if plan.EstimateSeconds != nil {
		fields = append(fields, [2]string{"estimate", "about " + term.Span(term.Seconds(plan.GetEstimateSeconds())) + " for the copies"})
	}
	for _, warning := range plan.GetWarnings() {
		fields = append(fields, [2]string{"warning", warning})
	}
	p.Fields("  ", fields...)
}

// drainSummary is the last word about a drain that was followed.
func drainSummary(p *term.Page, plan *berthv1.Plan) {
	t := follow.TallyOf(plan)
	if len(t.Staying)+len(t.Moving) > 0 || !follow.PlanEnded(plan) {
		follow.PlanSummary(p, plan)
		return
	}
	if t.Wanted == 0 {
		p.Line("%s is in maintenance, and runs no VM that Berth could move", follow.PlanSubject(plan))
		return
	}
	text := fmt.Sprintf("%s is empty: %s moved", follow.PlanSubject(plan), term.Count(t.Moved, "VM"))
	if took := follow.PlanTook(plan); took != term.None {
		text += " in " + took
	}
	if t.Gone > 0 {
		text += fmt.Sprintf(", %d stopped or moved by others", t.Gone)
	}
	p.Line("%s (plan %s)", text, plan.GetId())
}

// drainError judges a drain by what is left on the node.
func drainError(plan *berthv1.Plan) error {
	staying := follow.TallyOf(plan).Staying
	if len(staying) == 0 {
		return follow.PlanError(plan)
	}
	text := fmt.Sprintf("%s still on %s, which stays in maintenance", term.Count(len(staying), "VM"), plan.GetNode())
	if plan.GetState() == string(model.PlanCancelled) {
		text = "the drain was cancelled: " + text
	}
	return term.Failf(
		rpc.Conflict, fmt.Sprintf("'berth node drain %[1]s' tries again, 'berth node undrain %[1]s' takes it back", plan.GetNode()), "%s",
		text,
	)
}

func undrainCommand(a *term.App) *cobra.Command {
	var (
		back, dryRun bool
		wait         follow.PlanWaitFlags
	)
	cmd := &cobra.Command{
		Use: "undrain NODE", Short: "Take a node out of maintenance and, if wanted, bring its former VMs back", Args: term.Arguments(1, "NODE"),
		Long: `Take a node out of maintenance, so that it gets VMs again. A drain that still runs is cancelled.

With --return the VMs that its last drain moved away come back where they still belong: where the node is the best one
for them now, or no worse than where they are. The others stay where they are, with the reason.`,
		Example: `  berth node undrain node1
  berth node undrain node1 --return --dry-run
  berth node undrain node1 --return`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if waits := term.ChangedFlags(cmd, []string{"wait", "no-wait", "timeout"}); !back && len(waits) > 0 {
				return term.Usagef(cmd, "%s is for --return", waits[0])
			}
			if dryRun && !back {
				return term.Usagef(cmd, "--dry-run is for --return")
			}
			if err := wait.Check(cmd); err != nil {
				return err
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(context.WithoutCancel(cmd.Context()), s, term.Client.UndrainNode,
				&berthv1.UndrainNodeRequest{Node: args[0], ReturnVms: back, DryRun: dryRun, RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return undrained(a, cmd, s, answer, wait, args[0], dryRun)
		},
		ValidArgsFunction: term.CompleteFirst(a.NodeNames()),
	}
	cmd.Flags().BoolVar(&back, "return", false, "bring its former VMs back where they still belong")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with --return: show what would come back, change nothing")
	wait.Flags(cmd)
	return cmd
}

func undrained(
	a *term.App, cmd *cobra.Command, s *term.Session, answer *berthv1.UndrainNodeResponse, wait follow.PlanWaitFlags, node string, dryRun bool,
) error {
	plan := answer.GetPlan()
	switch {
	case dryRun:
		return a.Print(cmd, term.Result{
			Message: answer, Names: term.Prefixed("vm/", plan.GetMoves(), (*berthv1.Move).GetVm),
			Text: func(p *term.Page, _ bool) {
				p.Line("dry run: nothing was changed")
				returning(p, node, plan)
			},
		})
	case plan == nil || follow.TallyOf(plan).Wanted == 0:
		return a.Print(cmd, term.Result{
			Message: answer, Names: []string{"node/" + node},
			Text: func(p *term.Page, _ bool) {
				p.Line("node/%s is out of maintenance and gets VMs again", node)
				if plan != nil {
					returning(p, node, plan)
				}
			},
		})
	}
	if !a.Quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "node/%s is out of maintenance and gets VMs again\n", term.Clean(node))
		returning(&term.Page{Out: cmd.ErrOrStderr(), Headless: a.NoHeaders}, node, plan)
	}
	return follow.CarryOut(a, cmd, s, answer, &answer.Plan, wait)
}

// returning shows which VMs come back to a node, and which do not and why.
func returning(p *term.Page, node string, plan *berthv1.Plan) {
	t := follow.TallyOf(plan)
	p.Line("node/%s: %s to bring back (%v), %d better off elsewhere", node, term.Count(t.Wanted, "VM"), units.Bytes(t.Size), len(t.Staying))
	rows := make([][]string, 0, len(plan.GetMoves()))
	for _, move := range plan.GetMoves() {
		to := node
		if move.GetState() == model.MoveStays {
			to = "stays"
		}
		rows = append(
			rows, []string{move.GetVm(), term.Size(move.GetMemoryBytes()), cmp.Or(move.GetSource(), term.None), to, follow.MoveWhy(move)},
		)
	}
	p.Indented("  ", []string{"VM", "SIZE", "RUNS-ON", "GOES-TO", "WHY"}, rows)
}
