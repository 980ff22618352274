package cli

import (
	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
)

func (a *app) vmWhyCommand() *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use: "why NAME", Short: "Tell why a VM is where it is", Args: arguments(1, "NAME"),
		Long: `Tell why a VM is where it is: the decision that placed it last, in words and figures; or,
where a start was refused, the decision that refused it. --full adds every figure of every node. Decisions are kept for
90 days, the newest 2000 of them.`,
		Example: `  berth vm why web1
  berth vm why web1 --full`,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.WhyVM, &berthv1.WhyVMRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   []string{"decision/" + answer.GetDecision().GetId()},
				text: func(p *page, wide bool) {
					sentences(p, answer.GetAnswer())
					if full {
						p.blank()
						a.explanation(p, answer.GetDecision(), detail{wide: wide, full: full})
						return
					}
					nodesText(p, answer.GetDecision().GetNodes(), detail{wide: wide})
				},
			})
		},
		ValidArgsFunction: first(a.vmNames()),
	}
	cmd.Flags().BoolVar(&full, "full", false, "every term of every score, and what every constraint said of every node")
	return cmd
}

func sentences(p *page, lines []string) {
	for _, line := range lines {
		p.line("%s", line)
	}
}

func (a *app) vmWhyNotCommand() *cobra.Command {
	var (
		node, decision string
		full           bool
	)
	cmd := &cobra.Command{
		Use: "why-not NAME --node NODE", Short: "Tell why a VM was not placed on a certain node", Args: arguments(1, "NAME"),
		Long: `Tell why a VM was not placed on a certain node: what refused the node, or how far it was behind the one that was
chosen; and what would have made it this one. Without --decision it is about the decision that placed the VM last;
'berth decision list --vm NAME' has the others. --full adds every figure that the decision had of the node.`,
		Example: `  berth vm why-not web1 --node node3
  berth vm why-not web1 --node node3 --decision 3nqk7 --full`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if node == "" {
				return Usagef(cmd, "--node is missing: which node it is about")
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.WhyNot,
				&berthv1.WhyNotRequest{Vm: args[0], Node: node, DecisionId: decision})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   []string{"decision/" + answer.GetDecisionId()},
				text:    func(p *page, wide bool) { whyNotText(p, answer, detail{wide: wide, full: full}) },
			})
		},
		ValidArgsFunction: first(a.vmNames()),
	}
	cmd.Flags().StringVar(&node, "node", "", "the `NODE` that it is about")
	cmd.Flags().StringVar(&decision, "decision", "", "`ID` of the decision, instead of the VM's last one")
	cmd.Flags().BoolVar(&full, "full", false, "every figure that the decision had of the node")
	complete(cmd, "node", a.nodeNames())
	complete(cmd, "decision", a.decisionIDs())
	return cmd
}

func whyNotText(p *page, answer *berthv1.WhyNotResponse, show detail) {
	sentences(p, answer.GetAnswer())
	for _, change := range answer.GetChanges() {
		p.line("  what would do: %s", change)
	}
	p.line("decision %s", answer.GetDecisionId())
	if node := answer.GetNode(); show.full && node != nil {
		p.blank()
		scores(p, []*berthv1.DecisionNode{node}, show)
		p.blank()
		verdicts(p, []*berthv1.DecisionNode{node})
	}
}
