package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
)

// maxPlanMoves bounds what can be asked of one plan.
const maxPlanMoves = 1000

func (a *app) planCommand() *cobra.Command {
	return noun("plan COMMAND", "See, carry out and stop plans: lists of VMs that had better move", `
A plan is a list of moves and why they are made. A drain makes one, a repair of a group's broken rules, and the
balancing of a cluster. Where a cluster's balancing or enforcement is manual, plans wait to be applied or discarded;
where it is automatic they are carried out at once, and stay here to be read.`,
		a.planListCommand(), a.planShowCommand(), a.planNewCommand(), a.planApplyCommand(), a.planDiscardCommand(),
		a.planCancelCommand(), a.planWatchCommand())
}

func (a *app) planListCommand() *cobra.Command {
	var (
		of    string
		live  bool
		limit int32
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List plans, newest first", Args: arguments(0),
		Long: `List plans, newest first. MOVES is how many VMs a plan moves, of one that runs how many are through.`,
		Example: `  berth plan list
  berth plan list --live --cluster prod`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, limit); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListPlans,
				&berthv1.ListPlansRequest{Cluster: of, LiveOnly: live}, limit)
			if err != nil {
				return err
			}
			a.nothing(cmd, len(answer.GetPlans()), "no plans")
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("plan/", answer.GetPlans(), (*berthv1.Plan).GetId),
				text:    func(p *page, wide bool) { a.planTable(p, answer.GetPlans(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only those of this `CLUSTER`")
	cmd.Flags().BoolVar(&live, "live", false, "only those that wait or run")
	cmd.Flags().Int32Var(&limit, "limit", defaultLimit, "how many at most")
	complete(cmd, "cluster", a.resourceNames(cluster.KindCluster))
	complete(cmd, "limit", cobra.NoFileCompletions)
	return cmd
}

func (a *app) planShowCommand() *cobra.Command {
	return &cobra.Command{
		Use: "show [ID]", Short: "Show a plan with each of its moves, or all that wait to be applied", Args: arguments(0, "ID"),
		Long: `Show a plan: why it was made, what it does to the figure that its cluster is judged by (before, predicted, and some
minutes after its end observed), and each move with its reason and how far it is. Without an ID all plans are shown
that wait to be applied or discarded.

ID may be shortened as long as it is unique; 'last' is the newest one, node/NAME the last drain of a node.`,
		Example: `  berth plan show
  berth plan show last
  berth plan show node/node1 -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			if len(args) == 0 {
				return a.planShowWaiting(cmd, s)
			}
			answer, err := ask(cmd.Context(), s, repeatable, client.GetPlan, &berthv1.GetPlanRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return a.printPlan(cmd, answer, answer.GetPlan())
		},
		ValidArgsFunction: first(a.planIDs()),
	}
}

func (a *app) printPlan(cmd *cobra.Command, answer proto.Message, plan *berthv1.Plan) error {
	return a.print(cmd, result{
		message: answer, names: planName(plan), text: func(p *page, wide bool) { a.planText(p, plan, wide) },
	})
}

// planName is what -o name prints of one plan. One that was only tried out has no ID.
func planName(plan *berthv1.Plan) []string {
	if plan.GetId() == "" {
		return nil
	}
	return []string{"plan/" + plan.GetId()}
}

func (a *app) planShowWaiting(cmd *cobra.Command, s *session) error {
	answer, err := askAll(cmd.Context(), s, client.ListPlans, &berthv1.ListPlansRequest{LiveOnly: true}, maxLimit)
	if err != nil {
		return err
	}
	answer.Plans = slices.DeleteFunc(answer.GetPlans(), func(plan *berthv1.Plan) bool { return plan.GetState() != string(cluster.PlanProposed) })
	a.nothing(cmd, len(answer.GetPlans()), "no plan waits; 'berth plan list' has all, 'berth plan new' looks for moves now")
	return a.print(cmd, result{
		message: answer,
		names:   prefixed("plan/", answer.GetPlans(), (*berthv1.Plan).GetId),
		text: func(p *page, wide bool) {
			for i, plan := range answer.GetPlans() {
				if i > 0 {
					p.blank()
				}
				a.planText(p, plan, wide)
			}
		},
	})
}

func (a *app) planNewCommand() *cobra.Command {
	var (
		of     string
		most   int32
		dryRun bool
	)
	cmd := &cobra.Command{
		Use: "new", Short: "Look now for the moves that would even a cluster out", Args: arguments(0),
		Long: `Look now for the moves that would even a cluster out, with the balancer of its policy, and keep them as a plan that
waits to be applied or discarded. It works whatever the cluster's balancing is set to. When the cluster is even, or
nothing may move, that is said and no plan is made.`,
		Example: `  berth plan new
  berth plan new --cluster prod --most 10
  berth plan new --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("most") && (most < 1 || most > maxPlanMoves) {
				return Usagef(cmd, "--most %d: want 1 to %d", most, maxPlanMoves)
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.ProposePlan,
				&berthv1.ProposePlanRequest{Cluster: of, Most: most, DryRun: dryRun, RequestId: requestID()})
			if err != nil {
				return err
			}
			if plan := answer.GetPlan(); len(plan.GetMoves()) == 0 {
				return a.print(cmd, result{message: answer, text: func(p *page, _ bool) {
					p.line("nothing to move: %s", or(plan.GetReason(), "the cluster is even"))
				}})
			}
			return a.printPlan(cmd, answer, answer.GetPlan())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "even out this `CLUSTER` (default \""+cluster.DefaultCluster+"\")")
	cmd.Flags().Int32Var(&most, "most", 0, "`NUMBER` of moves at most (default 50)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the moves, keep nothing")
	complete(cmd, "cluster", a.resourceNames(cluster.KindCluster))
	complete(cmd, "most", cobra.NoFileCompletions)
	return cmd
}

func (a *app) planApplyCommand() *cobra.Command {
	var (
		parallel int32
		wait     planWaiting
	)
	cmd := &cobra.Command{
		Use: "apply ID", Short: "Carry out a plan that waits", Args: arguments(1, "ID"),
		Long: `Carry out a plan that waits. The target of each move is decided anew when its turn comes, so that nothing moves to where
it does not fit any more. An interrupt (Ctrl-C) stops the plan: no further move begins, and those that copy are let end;
a second one leaves them to themselves. The exit code is 1 when a VM could not be moved; it then runs on where it was.`,
		Example: `  berth plan apply last
  berth plan apply 3nqk7d2m0p1ab --parallel 4
  berth plan apply last --no-wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkParallel(cmd, parallel); err != nil {
				return err
			}
			if err := wait.check(cmd); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(context.WithoutCancel(cmd.Context()), s, repeatable, client.ApplyPlan,
				&berthv1.ApplyPlanRequest{Id: args[0], Parallel: parallel, RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.carryOut(cmd, s, answer, &answer.Plan, wait)
		},
		ValidArgsFunction: first(a.planIDs()),
	}
	cmd.Flags().Int32Var(&parallel, "parallel", 0, "`NUMBER` of moves at once (default as the cluster says)")
	complete(cmd, "parallel", cobra.NoFileCompletions)
	wait.flags(cmd)
	return cmd
}

func checkParallel(cmd *cobra.Command, parallel int32) error {
	if cmd.Flags().Changed("parallel") && (parallel < 1 || parallel > cluster.MaxParallelMoves) {
		return Usagef(cmd, "--parallel %d: want 1 to %d", parallel, cluster.MaxParallelMoves)
	}
	return nil
}

// carryOut follows a plan that has begun, if that is wanted, and prints what came of it. The plan is that of the answer.
func (a *app) carryOut(cmd *cobra.Command, s *session, answer proto.Message, plan **berthv1.Plan, wait planWaiting) error {
	if !wait.wait {
		return a.print(cmd, result{
			message: answer, names: planName(*plan),
			text: func(p *page, _ bool) {
				p.line("%s (%s; plan %s); 'berth plan watch %[3]s' follows it", planBeginning(*plan), count(tallyOf(*plan).wanted, "VM"), (*plan).GetId())
			},
		})
	}
	var failure error
	if *plan, failure = a.awaitPlan(cmd, s, *plan, wait.timeout); failure == nil {
		failure = planError(*plan)
	}
	if err := a.print(cmd, result{
		message: answer, names: planName(*plan), text: func(p *page, _ bool) { planSummary(p, *plan) },
	}); err != nil {
		return err
	}
	return failure
}

func (a *app) planDiscardCommand() *cobra.Command {
	return &cobra.Command{
		Use: "discard ID", Short: "Drop a plan that waits", Args: arguments(1, "ID"),
		Long: `Drop a plan that waits. Where balancing is manual, the next pass proposes the moves again if they still would help.`,
		Example: `  berth plan discard last
  berth plan discard 3nqk7d2m0p1ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.DiscardPlan,
				&berthv1.DiscardPlanRequest{Id: args[0], RequestId: requestID()})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer, names: planName(answer.GetPlan()),
				text: func(p *page, _ bool) { p.line("plan %s discarded; nothing was moved", answer.GetPlan().GetId()) },
			})
		},
		ValidArgsFunction: first(a.planIDs()),
	}
}

func (a *app) planCancelCommand() *cobra.Command {
	var abort bool
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Stop a plan that runs: no further move begins", Args: arguments(1, "ID"),
		Long: `Stop a plan that runs: no further move begins. Moves that copy are let end; --abort stops them too, and their VMs run on
where they are. ID may be node/NAME, for the drain of a node.`,
		Example: `  berth plan cancel last
  berth plan cancel node/node1 --abort`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			return a.planCancel(cmd, s, args[0], abort)
		},
		ValidArgsFunction: first(a.planIDs()),
	}
	cmd.Flags().BoolVar(&abort, "abort", false, "stop moves that copy too")
	return cmd
}

func (a *app) planCancel(cmd *cobra.Command, s *session, id string, abort bool) error {
	answer, err := ask(cmd.Context(), s, repeatable, client.CancelPlan,
		&berthv1.CancelPlanRequest{Id: id, Abort: abort, RequestId: requestID()})
	if err != nil {
		return err
	}
	plan := answer.GetPlan()
	t := tallyOf(plan)
	return a.print(cmd, result{
		message: answer, names: planName(plan),
		text: func(p *page, _ bool) {
			copying := "no move copies any more"
			switch {
			case len(t.moving) > 0 && abort:
				copying = fmt.Sprintf("%s asked to stop", count(len(t.moving), "move that copies is"))
			case len(t.moving) > 0:
				copying = fmt.Sprintf("%d that copy are let end", len(t.moving))
			}
			p.line("plan %s: no further move begins after %d of %s; %s", plan.GetId(), t.moved+t.gone, count(t.wanted, "VM"), copying)
			if plan.GetKind() == string(cluster.PlanDrain) {
				p.line("%s stays in maintenance; 'berth node undrain %s' takes it back", planSubject(plan), plan.GetNode())
			}
		},
	})
}

func (a *app) planWatchCommand() *cobra.Command {
	var wait planWaiting
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow a plan to its end", Args: arguments(1, "ID"),
		Long: `Follow a plan to its end. The exit code is 0 when everything has moved that was to. Ending the watch does nothing to the
plan.`,
		Example: `  berth plan watch last
  berth plan watch node/node1 --timeout 30m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wait.check(cmd); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetPlan, &berthv1.GetPlanRequest{Id: args[0]})
			if err != nil {
				return err
			}
			progress := a.planReporter(cmd.ErrOrStderr())
			plan, err := followPlan(cmd.Context(), s, answer.GetPlan(), wait.timeout, progress)
			progress.end()
			if err != nil {
				return planLeft(plan, err, wait.timeout)
			}
			answer.Plan = plan
			if err := a.print(cmd, result{
				message: answer, names: planName(plan), text: func(p *page, _ bool) { planSummary(p, plan) },
			}); err != nil {
				return err
			}
			return planError(plan)
		},
		ValidArgsFunction: first(a.planIDs()),
	}
	wait.timeoutFlag(cmd)
	return cmd
}

func (a *app) planIDs() cobra.CompletionFunc {
	return a.lookup(func(ctx context.Context, s *session) (ids []string, err error) {
		answer, err := askAll(ctx, s, client.ListPlans, &berthv1.ListPlansRequest{}, defaultLimit)
		ids = append(ids, lastDecision)
		for _, plan := range answer.GetPlans() {
			ids = append(ids, cobra.CompletionWithDesc(plan.GetId(), plan.GetState()+" "+plan.GetKind()+" of "+planSubject(plan)))
		}
		return ids, err
	})
}
