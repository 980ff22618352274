package follow

import (
	"fmt"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// PlanNames is what -o name prints of one plan. One that was only tried out has no ID.
func PlanNames(plan *berthv1.Plan) []string {
	if plan.GetId() == "" {
		return nil
	}
	return []string{"plan/" + plan.GetId()}
}

// CheckParallel checks the flag --parallel.
func CheckParallel(cmd *cobra.Command, parallel int32) error {
	if cmd.Flags().Changed("parallel") && (parallel < 1 || parallel > model.MaxParallelMoves) {
		return term.Usagef(cmd, "--parallel %d: want 1 to %d", parallel, model.MaxParallelMoves)
	}
	return nil
}

// CarryOut follows a plan that has begun, if that is wanted, and prints what came of it. The plan is that of the answer.
func CarryOut(a *term.App, cmd *cobra.Command, s *term.Session, answer proto.Message, plan **berthv1.Plan, wait PlanWaitFlags) error {
	if !wait.Wait {
		return a.Print(cmd, term.Result{
			Message: answer, Names: PlanNames(*plan),
			Text: func(p *term.Page, _ bool) {
				p.Line(
					"%s (%s; plan %s); 'berth plan watch %[3]s' follows it", planBeginning(*plan), term.Count(TallyOf(*plan).Wanted, "VM"),
					(*plan).GetId(),
				)
			},
		})
	}
	var failure error
	if *plan, failure = AwaitPlan(a, cmd, s, *plan, wait.Timeout); failure == nil {
		failure = PlanError(*plan)
	}
	if err := a.Print(cmd, term.Result{
		Message: answer, Names: PlanNames(*plan), Text: func(p *term.Page, _ bool) { PlanSummary(p, *plan) },
	}); err != nil {
		return err
	}
	return failure
}

// CancelPlan stops a plan and prints how far it was. Abort stops the moves that copy too.
func CancelPlan(a *term.App, cmd *cobra.Command, s *term.Session, id string, abort bool) error {
	answer, err := term.Ask(cmd.Context(), s, term.Client.CancelPlan,
		&berthv1.CancelPlanRequest{Id: id, Abort: abort, RequestId: term.RequestID()})
	if err != nil {
		return err
	}
	plan := answer.GetPlan()
	t := TallyOf(plan)
	back, err := undrained(cmd, s, plan)
	if err != nil {
		return err
	}
	return a.Print(cmd, term.Result{
		Message: answer, Names: PlanNames(plan),
		Text: func(p *term.Page, _ bool) {
			copying := "no move copies any more"
			switch {
			case len(t.Moving) > 0 && abort:
				copying = fmt.Sprintf("%s asked to stop", term.Count(len(t.Moving), "move that copies is"))
			case len(t.Moving) > 0:
				copying = fmt.Sprintf("%d that copy are let end", len(t.Moving))
			}
			p.Line("plan %s: no further move begins after %d of %s; %s", plan.GetId(), t.Moved+t.Gone, term.Count(t.Wanted, "VM"), copying)
			switch {
			case plan.GetKind() != string(model.PlanDrain):
			case back:
				p.Line("%s is not in maintenance: nothing drains it", PlanSubject(plan))
			default:
				p.Line("%s stays in maintenance; 'berth node undrain %s' takes it back", PlanSubject(plan), plan.GetNode())
			}
		},
	})
}

// undrained tells whether the node of a drain is out of maintenance, because somebody has taken it back meanwhile.
func undrained(cmd *cobra.Command, s *term.Session, plan *berthv1.Plan) (bool, error) {
	if plan.GetKind() != string(model.PlanDrain) {
		return false, nil
	}
	answer, err := term.Ask(cmd.Context(), s, term.Client.GetNode, &berthv1.GetNodeRequest{Node: plan.GetNode()})
	if rpc.Detail(err).GetCode() == rpc.NotFound { // it was removed meanwhile
		return true, nil
	}
	return !answer.GetNode().GetMaintenance(), err
}
