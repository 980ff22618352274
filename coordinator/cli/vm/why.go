package vm

import (
	"github.com/spf13/cobra"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func whyCommand(a *term.App) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Tell why a VM is where it is", Args: term.Arguments(1, "NAME"),
		Long: `Tell why a VM is where it is, and since when: the decision that placed it last, in words and figures; that somebody
has moved it beside Berth; or, where a start was refused, the decision that refused it. --full adds every figure of
every node. Decisions are kept for 90 days, the newest 2000 of them.`,
		Example: `  berth vm why web1
  berth vm why web1 --full`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.WhyVM, &berthv1.WhyVMRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   decisionNames(answer.GetDecision().GetId()),
				Text: func(p *term.Page, wide bool) {
					sentences(p, answer.GetAnswer())
					if answer.GetDecision() == nil {
						return
					}
					if full {
						p.Blank()
						explanation.Write(a, p, answer.GetDecision(), explanation.Detail{Wide: wide, Full: full})
						return
					}
					explanation.Nodes(p, answer.GetDecision().GetNodes(), explanation.Detail{Wide: wide})
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().BoolVar(&full, "full", false, "every term of every score, and what every constraint said of every node")
	return cmd
}

// decisionNames are the names of a decision, if there is one.
func decisionNames(id string) []string {
	if id == "" {
		return nil
	}
	return []string{"decision/" + id}
}

func sentences(p *term.Page, lines []string) {
	for _, line := range lines {
		p.Line("%s", line)
	}
}

func whyNotCommand(a *term.App) *cobra.Command {
	var (
		node, decision string
		full           bool
	)
	cmd := &cobra.Command{
		Use: "why-not NAME --node NODE", Short: "Tell why a VM is not on a certain node", Args: term.Arguments(1, "NAME"),
		Long: `Tell why a VM is not on a certain node: what refuses the node now, or how far it is behind the one that would be chosen,
and what would make it this one. If the decision that placed the VM found otherwise, that is said too, with its age.
--decision asks what an earlier decision has found; 'berth decision list --vm NAME' has them. --full adds every figure
of the node.`,
		Example: `  berth vm why-not web1 --node node3
  berth vm why-not web1 --node node3 --decision 3nqk7 --full`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if node == "" {
				return term.Usagef(cmd, "--node is missing: which node it is about")
			}
			answer, err := term.AskOnce(a, cmd, term.Client.WhyNot,
				&berthv1.WhyNotRequest{Vm: args[0], Node: node, DecisionId: decision})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   decisionNames(answer.GetDecisionId()),
				Text:    func(p *term.Page, wide bool) { whyNotText(a, p, answer, explanation.Detail{Wide: wide, Full: full}) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().StringVar(&node, "node", "", "the `NODE` that it is about")
	cmd.Flags().StringVar(&decision, "decision", "", "`ID` of an earlier decision, instead of what is so now")
	cmd.Flags().BoolVar(&full, "full", false, "every figure that the decision had of the node")
	term.Complete(cmd, "node", a.NodeNames())
	term.Complete(cmd, "decision", a.DecisionIDs())
	return cmd
}

func whyNotText(a *term.App, p *term.Page, answer *berthv1.WhyNotResponse, show explanation.Detail) {
	sentences(p, answer.GetAnswer())
	for _, change := range answer.GetChanges() {
		p.Line("  what would do: %s", change)
	}
	if id := answer.GetDecisionId(); id != "" {
		p.Line("decision %s, of %s (%s ago)", id, a.At(answer.GetAt()), a.Since(answer.GetAt()))
	} else {
		p.Line("as of %s", a.At(answer.GetAt()))
	}
	if node := answer.GetNode(); show.Full && node != nil {
		p.Blank()
		explanation.Scores(p, []*berthv1.DecisionNode{node}, show)
		p.Blank()
		explanation.Verdicts(p, []*berthv1.DecisionNode{node})
	}
}
