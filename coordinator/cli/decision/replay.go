package decision

import (
	"strings"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func replayCommand(a *term.App) *cobra.Command {
	return &cobra.Command{
		Use: "replay ID", Short: "Make a decision again from the figures that were kept with it", Args: term.Arguments(1, "ID"),
		Long: `Make a decision again from the figures, the keys, the policy and the seed that were kept with it, with the rules of
the coordinator that runs now, and compare. Nothing is changed. When it comes out otherwise each difference is shown
and the exit code is 1: the rules have changed since, or this is a defect worth a report, with 'berth decision show ID
-o json'.

ID may be shortened as long as it is unique; 'last' is the newest one.`,
		Example: `  berth decision replay last
  berth decision replay 3nqk7`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.ReplayDecision, &berthv1.ReplayDecisionRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return replayed(a, cmd, answer)
		},
		ValidArgsFunction: term.CompleteFirst(a.DecisionIDs()),
	}
}

func replayed(a *term.App, cmd *cobra.Command, answer *berthv1.ReplayDecisionResponse) error {
	again := answer.GetDecision()
	err := a.Print(cmd, term.Result{
		Message: answer, Names: []string{"decision/" + again.GetId()},
		Text: func(p *term.Page, _ bool) {
			if answer.GetEqual() {
				p.Line("decision %s comes out the same: %s", again.GetId(), strings.TrimSpace(explanation.Outcome(again)))
				return
			}
			p.Line("decision %s comes out otherwise", again.GetId())
			for _, difference := range answer.GetDifferences() {
				p.Line("  %s", difference)
			}
		},
	})
	if err != nil || answer.GetEqual() {
		return err
	}
	return term.Failf(rpc.Conflict, "the coordinator's release may have other rules than the one that decided; 'berth decision show "+
		again.GetId()+" --full' has what was kept", "decision %s differs when it is made again", again.GetId())
}
