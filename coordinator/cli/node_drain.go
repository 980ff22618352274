package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

func (a *app) nodeDrainCommand() *cobra.Command {
	var (
		bandwidth                  string
		dryRun, yes, cancel, abort bool
		wait                       planWaiting
	)
	request := &berthv1.DrainNodeRequest{}
	cmd := &cobra.Command{
		Use: "drain NODE", Short: "Empty a node: put it into maintenance and move its VMs away, live", Args: arguments(1, "NODE"),
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
			if err := errors.Join(wait.check(cmd), checkParallel(cmd, request.GetParallel())); err != nil {
				return usage(cmd, err)
			}
			var err error
			if request.BandwidthBps, err = bandwidthFlag(cmd, bandwidth); err != nil {
				return err
			}
			if !yes && !dryRun && !cancel && !isTerminal(cmd.InOrStdin()) {
				return Usagef(cmd, "this moves VMs and there is no terminal to ask on: look with --dry-run, and repeat it with --yes")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			request.Node = args[0]
			switch {
			case cancel:
				return a.planCancel(cmd, s, "node/"+args[0], abort)
			case dryRun:
				return a.drainDryRun(cmd, s, request)
			}
			return a.drain(cmd, s, request, wait, yes)
		},
		ValidArgsFunction: first(a.nodeNames()),
	}
	flags := cmd.Flags()
	flags.BoolVar(&dryRun, "dry-run", false, "show what would move and what would stay, change nothing")
	flags.Int32Var(&request.Parallel, "parallel", 0, "`NUMBER` of moves at once (default as the cluster says)")
	flags.StringVar(&bandwidth, "bandwidth", "", "bytes a second and move at most: a `SIZE`, for instance 100M")
	flags.StringVar(&request.Reason, "reason", "", "`TEXT` that others see")
	flags.BoolVar(&cancel, "cancel", false, "stop the drain that runs: no further move begins")
	flags.BoolVar(&abort, "abort", false, "with --cancel: stop moves that copy too")
	confirmFlag(cmd, &yes)
	wait.flags(cmd)
	for _, flag := range []string{"parallel", "bandwidth", "reason"} {
		complete(cmd, flag, cobra.NoFileCompletions)
	}
	return cmd
}

// checkDrain refuses flags that say nothing together.
func checkDrain(cmd *cobra.Command, cancel, abort, dryRun bool) error {
	given := changed(cmd, []string{"dry-run", "parallel", "bandwidth", "reason", "wait", "no-wait", "timeout", "yes"})
	switch {
	case abort && !cancel:
		return Usagef(cmd, "--abort is for --cancel")
	case cancel && len(given) > 0:
		return Usagef(cmd, "--cancel and %s exclude each other", given[0])
	case dryRun && len(changed(cmd, []string{"wait", "no-wait", "timeout"})) > 0:
		return Usagef(cmd, "--dry-run moves nothing and has nothing to wait for")
	}
	return nil
}

// bandwidthFlag reads --bandwidth: bytes a second, 0 when the flag is not there.
func bandwidthFlag(cmd *cobra.Command, text string) (int64, error) {
	if !cmd.Flags().Changed("bandwidth") {
		return 0, nil
	}
	limit, err := units.ParseBytes(strings.TrimSuffix(text, "/s"))
	if err != nil {
		return 0, Usagef(cmd, "--bandwidth: %w", err)
	}
	if limit < units.MiB {
		return 0, Usagef(cmd, "--bandwidth %s: want at least %v a second", text, units.MiB)
	}
	return int64(limit), nil
}

// tryDrain asks what a drain would come to.
func tryDrain(cmd *cobra.Command, s *session, request *berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
	return ask(cmd.Context(), s, repeatable, client.DrainNode, &berthv1.DrainNodeRequest{
		Node: request.GetNode(), DryRun: true, Parallel: request.GetParallel(), BandwidthBps: request.GetBandwidthBps(),
	})
}

func (a *app) drainDryRun(cmd *cobra.Command, s *session, request *berthv1.DrainNodeRequest) error {
	answer, err := tryDrain(cmd, s, request)
	if err != nil {
		return err
	}
	plan := answer.GetPlan()
	if err := a.print(cmd, result{
		message: answer, names: prefixed("vm/", plan.GetMoves(), (*berthv1.Move).GetVm),
		text: func(p *page, _ bool) {
			p.line("dry run: nothing was changed")
			preflight(p, plan)
		},
	}); err != nil {
		return err
	}
	if staying := tallyOf(plan).staying; len(staying) > 0 {
		return failf(rpc.Conflict, "do what the reasons name, or stop these VMs yourself", "%s would stay on %s", count(len(staying), "VM"), plan.GetNode())
	}
	return nil
}

// drain shows what is ahead, asks, and carries it out.
func (a *app) drain(cmd *cobra.Command, s *session, request *berthv1.DrainNodeRequest, wait planWaiting, yes bool) error {
	ahead, err := tryDrain(cmd, s, request)
	if err != nil {
		return err
	}
	if !a.quiet || !yes {
		preflight(&page{out: cmd.ErrOrStderr(), headless: a.noHeaders}, ahead.GetPlan())
	}
	if !yes {
		if err := askFirst(cmd, drainQuestion(ahead.GetPlan())); err != nil {
			return err
		}
	}
	request.RequestId = requestID()
	// Not with the command's own context: an interrupt while the answer is on its way must not leave a drain unseen.
	answer, err := ask(context.WithoutCancel(cmd.Context()), s, repeatable, client.DrainNode, request)
	if err != nil {
		return err
	}
	if !wait.wait {
		return a.carryOut(cmd, s, answer, &answer.Plan, wait)
	}
	plan, failure := a.awaitPlan(cmd, s, answer.GetPlan(), wait.timeout)
	answer.Plan = plan
	if failure == nil {
		failure = drainError(plan)
	}
	if err := a.print(cmd, result{
		message: answer, names: planName(plan), text: func(p *page, _ bool) { drainSummary(p, plan) },
	}); err != nil {
		return err
	}
	return failure
}

func drainQuestion(plan *berthv1.Plan) string {
	t := tallyOf(plan)
	question := fmt.Sprintf("Put %s into maintenance and move %s away?", planSubject(plan), count(t.wanted, "VM"))
	if t.wanted == 0 {
		question = fmt.Sprintf("Put %s into maintenance?", planSubject(plan))
	}
	if len(t.staying) > 0 {
		question += fmt.Sprintf(" %d will stay.", len(t.staying))
	}
	return question
}

// preflight shows what a drain would come to: each VM with where it would go or why it cannot, and what is left afterwards.
func preflight(p *page, plan *berthv1.Plan) {
	t := tallyOf(plan)
	switch {
	case len(plan.GetMoves()) == 0:
		p.line("%s runs no VM", planSubject(plan))
	case len(t.staying) > 0:
		p.line("%s: %s to move (%v), %d cannot", planSubject(plan), count(t.wanted, "VM"), units.Bytes(t.size), len(t.staying))
	default:
		p.line("%s: %s to move (%v)", planSubject(plan), count(t.wanted, "VM"), units.Bytes(t.size))
	}
	rows := make([][]string, 0, len(plan.GetMoves()))
	for _, move := range plan.GetMoves() {
		to := or(move.GetTarget(), none)
		if move.GetState() == cluster.MoveStays {
			to = "stays"
		}
		rows = append(rows, []string{move.GetVm(), size(move.GetMemoryBytes()), to, moveWhy(move)})
	}
	p.indented("  ", []string{"VM", "SIZE", "GOES-TO", "WHY"}, rows)
	fields := [][2]string{{"at once", planLimits(plan)}}
	if plan.HeadroomBytes != nil {
		fields = append(fields, [2]string{"room left", known(plan.HeadroomBytes) + " to promise on the other nodes afterwards"})
	}
	if plan.LargestVmBytes != nil {
		fields = append(fields, [2]string{"largest VM", known(plan.LargestVmBytes) + " that one of them still takes then"})
	}
	if plan.EstimateSeconds != nil {
		fields = append(fields, [2]string{"estimate", "about " + span(seconds(plan.GetEstimateSeconds())) + " for the copies"})
	}
	for _, warning := range plan.GetWarnings() {
		fields = append(fields, [2]string{"warning", warning})
	}
	p.fields("  ", fields...)
}

// drainSummary is the last word about a drain that was followed.
func drainSummary(p *page, plan *berthv1.Plan) {
	t := tallyOf(plan)
	if len(t.staying)+len(t.moving) > 0 || !planEnded(plan) {
		planSummary(p, plan)
		return
	}
	if t.wanted == 0 {
		p.line("%s is in maintenance, and runs no VM that Berth could move", planSubject(plan))
		return
	}
	text := fmt.Sprintf("%s is empty: %s moved", planSubject(plan), count(t.moved, "VM"))
	if took := planTook(plan); took != none {
		text += " in " + took
	}
	if t.gone > 0 {
		text += fmt.Sprintf(", %d stopped or moved by others", t.gone)
	}
	p.line("%s (plan %s)", text, plan.GetId())
}

// drainError judges a drain by what is left on the node.
func drainError(plan *berthv1.Plan) error {
	staying := tallyOf(plan).staying
	if len(staying) == 0 {
		return planError(plan)
	}
	text := fmt.Sprintf("%s still on %s, which stays in maintenance", count(len(staying), "VM"), plan.GetNode())
	if plan.GetState() == string(cluster.PlanCancelled) {
		text = "the drain was cancelled: " + text
	}
	return failf(rpc.Conflict, fmt.Sprintf("'berth node drain %[1]s' tries again, 'berth node undrain %[1]s' takes it back", plan.GetNode()), "%s", text)
}

func (a *app) nodeUndrainCommand() *cobra.Command {
	var (
		back, dryRun bool
		wait         planWaiting
	)
	cmd := &cobra.Command{
		Use: "undrain NODE", Short: "Take a node out of maintenance and, if wanted, bring its former VMs back", Args: arguments(1, "NODE"),
		Long: `Take a node out of maintenance, so that it gets VMs again. A drain that still runs is cancelled.

With --return the VMs that its last drain moved away come back where they still belong: where the node is the best one
for them now, or no worse than where they are. The others stay where they are, with the reason.`,
		Example: `  berth node undrain node1
  berth node undrain node1 --return --dry-run
  berth node undrain node1 --return`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if waits := changed(cmd, []string{"wait", "no-wait", "timeout"}); !back && len(waits) > 0 {
				return Usagef(cmd, "%s is for --return", waits[0])
			}
			if dryRun && !back {
				return Usagef(cmd, "--dry-run is for --return")
			}
			if err := wait.check(cmd); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(context.WithoutCancel(cmd.Context()), s, repeatable, client.UndrainNode,
				&berthv1.UndrainNodeRequest{Node: args[0], ReturnVms: back, DryRun: dryRun, RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.undrained(cmd, s, answer, wait, args[0], dryRun)
		},
		ValidArgsFunction: first(a.nodeNames()),
	}
	cmd.Flags().BoolVar(&back, "return", false, "bring its former VMs back where they still belong")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "with --return: show what would come back, change nothing")
	wait.flags(cmd)
	return cmd
}

func (a *app) undrained(
	cmd *cobra.Command, s *session, answer *berthv1.UndrainNodeResponse, wait planWaiting, node string, dryRun bool,
) error {
	plan := answer.GetPlan()
	switch {
	case dryRun:
		return a.print(cmd, result{
			message: answer, names: prefixed("vm/", plan.GetMoves(), (*berthv1.Move).GetVm),
			text: func(p *page, _ bool) {
				p.line("dry run: nothing was changed")
				returning(p, node, plan)
			},
		})
	case plan == nil || tallyOf(plan).wanted == 0:
		return a.print(cmd, result{
			message: answer, names: []string{"node/" + node},
			text: func(p *page, _ bool) {
				p.line("node/%s is out of maintenance and gets VMs again", node)
				if plan != nil {
					returning(p, node, plan)
				}
			},
		})
	}
	if !a.quiet {
		fmt.Fprintf(cmd.ErrOrStderr(), "node/%s is out of maintenance and gets VMs again\n", clean(node))
		returning(&page{out: cmd.ErrOrStderr(), headless: a.noHeaders}, node, plan)
	}
	return a.carryOut(cmd, s, answer, &answer.Plan, wait)
}

// returning shows which VMs come back to a node, and which do not and why.
func returning(p *page, node string, plan *berthv1.Plan) {
	t := tallyOf(plan)
	p.line("node/%s: %s to bring back (%v), %d better off elsewhere", node, count(t.wanted, "VM"), units.Bytes(t.size), len(t.staying))
	rows := make([][]string, 0, len(plan.GetMoves()))
	for _, move := range plan.GetMoves() {
		to := node
		if move.GetState() == cluster.MoveStays {
			to = "stays"
		}
		rows = append(rows, []string{move.GetVm(), size(move.GetMemoryBytes()), or(move.GetSource(), none), to, moveWhy(move)})
	}
	p.indented("  ", []string{"VM", "SIZE", "RUNS-ON", "GOES-TO", "WHY"}, rows)
}
