package plan

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// maxPlanMoves bounds what can be asked of one plan.
const maxPlanMoves = 1000

// Command is the noun plan.
func Command(a *term.App) *cobra.Command {
	return term.Noun("plan COMMAND", "See, carry out and stop plans: lists of VMs that had better move", `
A plan is a list of moves and why they are made. A drain makes one, a repair of a group's broken rules, and the
balancing of a cluster. Where a cluster's balancing or enforcement is manual, plans wait to be applied or discarded;
where it is automatic they are carried out at once, and stay here to be read.`,
		listCommand(a), showCommand(a), newCommand(a), applyCommand(a), discardCommand(a),
		cancelCommand(a), watchCommand(a))
}

func listCommand(a *term.App) *cobra.Command {
	var (
		of    string
		live  bool
		limit int32
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List plans, newest first", Args: term.Arguments(0),
		Long: `List plans, newest first. MOVES is how many VMs a plan moves, of one that runs how many are through.`,
		Example: `  berth plan list
  berth plan list --live --cluster prod`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := term.CheckLimit(cmd, limit); err != nil {
				return err
			}
			answer, err := term.AskAllOnce(a, cmd, term.Client.ListPlans,
				&berthv1.ListPlansRequest{Cluster: of, LiveOnly: live}, limit)
			if err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(answer.GetPlans()), "no plans")
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   term.Prefixed("plan/", answer.GetPlans(), (*berthv1.Plan).GetId),
				Text:    func(p *term.Page, wide bool) { follow.PlanTable(a, p, answer.GetPlans(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "only those of this `CLUSTER`")
	cmd.Flags().BoolVar(&live, "live", false, "only those that wait or run")
	cmd.Flags().Int32Var(&limit, "limit", term.DefaultLimit, "how many at most")
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	term.Complete(cmd, "limit", cobra.NoFileCompletions)
	return cmd
}

func showCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "show [ID]", Short: "Show a plan with each of its moves, or all that wait to be applied", Args: term.Arguments(0, "ID"),
		Long: `Show a plan: why it was made, what it does to the figure that its cluster is judged by (before, predicted, and some
minutes after its end observed), and each move with its reason and how far it is. Without an ID all plans are shown
that wait to be applied or discarded.

ID may be shortened as long as it is unique; 'last' is the newest one, node/NAME the last drain of a node.`,
		Example: `  berth plan show
  berth plan show last
  berth plan show node/node1 -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			if len(args) == 0 {
				return showWaiting(a, cmd, s)
			}
			answer, err := term.Ask(cmd.Context(), s, term.Client.GetPlan, &berthv1.GetPlanRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return printPlan(a, cmd, answer, answer.GetPlan())
		},
		ValidArgsFunction: term.CompleteFirst(iDs(a)),
	}
}

func printPlan(a *term.App, cmd *cobra.Command, answer proto.Message, plan *berthv1.Plan) error {
	return a.Print(cmd, term.Result{
		Message: answer, Names: follow.PlanNames(plan), Text: func(p *term.Page, wide bool) { follow.WritePlan(a, p, plan, wide) },
	})
}

func showWaiting(a *term.App, cmd *cobra.Command, s *term.Session) error {
	answer, err := term.AskAll(cmd.Context(), s, term.Client.ListPlans, &berthv1.ListPlansRequest{LiveOnly: true}, term.MaxLimit)
	if err != nil {
		return err
	}
	answer.Plans = slices.DeleteFunc(answer.GetPlans(), func(plan *berthv1.Plan) bool { return plan.GetState() != string(model.PlanProposed) })
	a.NoteIfEmpty(cmd, len(answer.GetPlans()), "no plan waits; 'berth plan list' has all, 'berth plan new' looks for moves now")
	return a.Print(cmd, term.Result{
		Message: answer,
		Names:   term.Prefixed("plan/", answer.GetPlans(), (*berthv1.Plan).GetId),
		Text: func(p *term.Page, wide bool) {
			for i, plan := range answer.GetPlans() {
				if i > 0 {
					p.Blank()
				}
				follow.WritePlan(a, p, plan, wide)
			}
		},
	})
}

func newCommand(a *term.App) *cobra.Command {
	var (
		of     string
		most   int32
		dryRun bool
	)
	cmd := &cobra.Command{
		Use: "new", Short: "Look now for the moves that would even a cluster out", Args: term.Arguments(0),
		Long: `Look now for the moves that would even a cluster out, with the balancer of its policy, and keep them as a plan that
waits to be applied or discarded. It works whatever the cluster's balancing is set to. When the cluster is even, or
nothing may move, that is said and no plan is made.`,
		Example: `  berth plan new
  berth plan new --cluster prod --most 10
  berth plan new --dry-run`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("most") && (most < 1 || most > maxPlanMoves) {
				return term.Usagef(cmd, "--most %d: want 1 to %d", most, maxPlanMoves)
			}
			answer, err := term.AskOnce(a, cmd, term.Client.ProposePlan,
				&berthv1.ProposePlanRequest{Cluster: of, Most: most, DryRun: dryRun, RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			if plan := answer.GetPlan(); len(plan.GetMoves()) == 0 {
				return a.Print(cmd, term.Result{Message: answer, Text: func(p *term.Page, _ bool) {
					p.Line("nothing to move: %s", cmp.Or(plan.GetReason(), "the cluster is even"))
				}})
			}
			return printPlan(a, cmd, answer, answer.GetPlan())
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().StringVar(&of, "cluster", "", "even out this `CLUSTER` (default \""+model.DefaultCluster+"\")")
	cmd.Flags().Int32Var(&most, "most", 0, "`NUMBER` of moves at most (default 50)")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the moves, keep nothing")
	term.Complete(cmd, "cluster", a.ResourceNames(model.KindCluster))
	term.Complete(cmd, "most", cobra.NoFileCompletions)
	return cmd
}

func applyCommand(a *term.App) *cobra.Command {
	var (
		parallel int32
		wait     follow.PlanWaitFlags
	)
	cmd := &cobra.Command{
		Use: "apply ID", Short: "Carry out a plan that waits", Args: term.Arguments(1, "ID"),
		Long: `Carry out a plan that waits; 'last' is the newest of those. The target of each move is decided anew when its turn comes,
so that nothing moves to where it does not fit any more. An interrupt (Ctrl-C) stops the plan: no further move begins,
and those that copy are let end; a second one leaves them to themselves. The exit code is 1 when a VM could not be
moved; it then runs on where it was.`,
		Example: `  berth plan apply last
  berth plan apply 3nqk7d2m0p1ab --parallel 4
  berth plan apply last --no-wait`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := follow.CheckParallel(cmd, parallel); err != nil {
				return err
			}
			if err := wait.Check(cmd); err != nil {
				return err
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			id, err := newest(cmd.Context(), s, args[0], proposed)
			if err != nil {
				return err
			}
			answer, err := term.Ask(context.WithoutCancel(cmd.Context()), s, term.Client.ApplyPlan,
				&berthv1.ApplyPlanRequest{Id: id, Parallel: parallel, RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return follow.CarryOut(a, cmd, s, answer, &answer.Plan, wait)
		},
		ValidArgsFunction: term.CompleteFirst(iDs(a)),
	}
	cmd.Flags().Int32Var(&parallel, "parallel", 0, "`NUMBER` of moves at once (default as the cluster says)")
	term.Complete(cmd, "parallel", cobra.NoFileCompletions)
	wait.Flags(cmd)
	return cmd
}

func discardCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "discard ID", Short: "Drop a plan that waits", Args: term.Arguments(1, "ID"),
		Long: `Drop a plan that waits; 'last' is the newest of those. Where balancing is manual, the next pass proposes the moves again
if they still would help.`,
		Example: `  berth plan discard last
  berth plan discard 3nqk7d2m0p1ab`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			id, err := newest(cmd.Context(), s, args[0], proposed)
			if err != nil {
				return err
			}
			answer, err := term.Ask(cmd.Context(), s, term.Client.DiscardPlan,
				&berthv1.DiscardPlanRequest{Id: id, RequestId: term.RequestID()})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer, Names: follow.PlanNames(answer.GetPlan()),
				Text: func(p *term.Page, _ bool) { p.Line("plan %s discarded; nothing was moved", answer.GetPlan().GetId()) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(iDs(a)),
	}
}

func cancelCommand(a *term.App) *cobra.Command {
	var abort bool
	cmd := &cobra.Command{
		Use: "cancel ID", Short: "Stop a plan that runs: no further move begins", Args: term.Arguments(1, "ID"),
		Long: `Stop a plan that runs: no further move begins. Moves that copy are let end; --abort stops them too, and their VMs run on
where they are. ID may be node/NAME, for the drain of a node; 'last' is the newest plan that runs.`,
		Example: `  berth plan cancel last
  berth plan cancel node/node1 --abort`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			id, err := newest(cmd.Context(), s, args[0], running)
			if err != nil {
				return err
			}
			return follow.CancelPlan(a, cmd, s, id, abort)
		},
		ValidArgsFunction: term.CompleteFirst(iDs(a)),
	}
	cmd.Flags().BoolVar(&abort, "abort", false, "stop moves that copy too")
	return cmd
}

func watchCommand(a *term.App) *cobra.Command {
	var wait follow.PlanWaitFlags
	cmd := &cobra.Command{
		Use: "watch ID", Short: "Follow a plan to its end", Args: term.Arguments(1, "ID"),
		Long: `Follow a plan to its end. The exit code is 0 when everything has moved that was to. Ending the watch does nothing to the
plan.`,
		Example: `  berth plan watch last
  berth plan watch node/node1 --timeout 30m`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := wait.Check(cmd); err != nil {
				return err
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			answer, err := term.Ask(cmd.Context(), s, term.Client.GetPlan, &berthv1.GetPlanRequest{Id: args[0]})
			if err != nil {
				return err
			}
			progress := follow.NewPlanReporter(a, cmd.ErrOrStderr())
			plan, err := follow.Plan(cmd.Context(), s, answer.GetPlan(), wait.Timeout, progress)
			progress.End()
			if err != nil {
				return follow.PlanLeft(plan, err, wait.Timeout)
			}
			answer.Plan = plan
			if err := a.Print(cmd, term.Result{
				Message: answer, Names: follow.PlanNames(plan), Text: func(p *term.Page, _ bool) { follow.PlanSummary(p, plan) },
			}); err != nil {
				return err
			}
			return follow.PlanError(plan)
		},
		ValidArgsFunction: term.CompleteFirst(iDs(a)),
	}
	wait.TimeoutFlag(cmd)
	return cmd
}

// A plan that can be applied, discarded or cancelled is in one of these states.
const (
	proposed = string(model.PlanProposed)
	running  = string(model.PlanRunning)
)

// newest is the ID of the newest plan in that state where ref is 'last', so that a plan of another kind that was made meanwhile, or has
// ended, is not taken for it. It is found here and not by the coordinator: a call that is repeated must mean the same plan.
func newest(ctx context.Context, s *term.Session, ref, state string) (string, error) {
	if ref != term.LastDecision {
		return ref, nil
	}
	answer, err := term.AskAll(ctx, s, term.Client.ListPlans, &berthv1.ListPlansRequest{LiveOnly: true}, term.Everything)
	if err != nil {
		return "", err
	}
	for _, plan := range answer.GetPlans() {
		if plan.GetState() == state {
			return plan.GetId(), nil
		}
	}
	verb := "waits"
	if state == running {
		verb = "runs"
	}
	return "", term.Failf(rpc.NotFound, "see 'berth plan list'", "no plan %s", verb)
}

func iDs(a *term.App) cobra.CompletionFunc {
	return a.CompleteFrom(func(ctx context.Context, s *term.Session) (ids []string, err error) {
		answer, err := term.AskAll(ctx, s, term.Client.ListPlans, &berthv1.ListPlansRequest{}, term.DefaultLimit)
		ids = append(ids, term.LastDecision)
		for _, plan := range answer.GetPlans() {
			ids = append(ids, cobra.CompletionWithDesc(plan.GetId(), plan.GetState()+" "+plan.GetKind()+" of "+follow.PlanSubject(plan)))
		}
		return ids, err
	})
}
