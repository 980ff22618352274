package decision

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/explanation"
	"berth/coordinator/cli/term"
	"berth/coordinator/placement"
	berthv1 "berth/shared/gen/berth/v1"
)

// Command is the noun decision.
func Command(a *term.App) *cobra.Command {
	return term.Noun("decision COMMAND", "See why VMs were placed where they are", `
Every placement leaves a decision: what was asked, every node with what refused it or what its score is made of, which
node won by how much, and what would have changed it.`,
		listCommand(a), showCommand(a), replayCommand(a))
}

func listCommand(a *term.App) *cobra.Command {
	var limit int32
	list := &term.Lister[*berthv1.Decision]{
		What: "decision", Empty: "no decisions", Limit: &limit,
		Ask: func(ctx context.Context, s *term.Session, filter *berthv1.Filter, limit int32) (term.Filtered, []*berthv1.Decision, error) {
			answer, err := term.AskAll(ctx, s, term.Client.ListDecisions, &berthv1.ListDecisionsRequest{Filter: filter}, limit)
			return answer, answer.GetDecisions(), err
		},
		Name:  func(d *berthv1.Decision) string { return "decision/" + d.GetId() },
		State: (*berthv1.Decision).GetReason,
		Table: func(p *term.Page, decisions []*berthv1.Decision, wide bool) { table(a, p, decisions, wide) },
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "list", Short: "List decisions, newest first",
		Example: `  berth decision list --vm web1
  berth decision list --limit 5 -o json
  berth decision list --state refused --customer acme
  berth decision list --kind drain,balance --since 2026-01-31T15:04:05Z --until 1h`,
	})
	list.VMFlags(cmd, a, "that chose", "VMs of ")
	list.StateFlags(cmd, a, "VMs", "placed", "stay", "refused")
	list.PastFlags(cmd, a, "only those made for `KIND`, for instance start, drain", placement.PurposeNames()...)
	list.Flag(cmd,
		term.ByText("name", (*berthv1.Decision).GetVm),
		term.ByText("node", (*berthv1.Decision).GetWinner),
		term.ByText("state", func(d *berthv1.Decision) string { return term.Enum(d.GetOutcome(), "DECISION_OUTCOME_") }),
		term.ByMost("age", func(d *berthv1.Decision) int64 { return -d.GetMadeAt().AsTime().UnixNano() }),
	)
	return cmd
}

func table(a *term.App, p *term.Page, decisions []*berthv1.Decision, wide bool) {
	headings := []string{"ID", "AGE", "PURPOSE", "VM", "OUTCOME", "NODE", "MARGIN", "WHY"}
	if wide {
		headings = []string{"ID", "MADE", "PURPOSE", "VM", "OUTCOME", "NODE", "MARGIN", "POLICY", "CALLER", "OPERATION", "WHY"}
	}
	rows := make([][]string, 0, len(decisions))
	for _, d := range decisions {
		result := term.Enum(d.GetOutcome(), "DECISION_OUTCOME_")
		if d.GetDryRun() {
			result += ",dry-run"
		}
		row := []string{
			d.GetId(), a.Since(d.GetMadeAt()), d.GetPurpose(), d.GetVm(), result, cmp.Or(d.GetWinner(), term.None),
			cmp.Or(explanation.MarginField(d), term.None),
		}
		if wide {
			row[1] = a.At(d.GetMadeAt())
			row = append(row, d.GetPolicy(), d.GetCaller(), cmp.Or(d.GetOperationId(), term.None))
		}
		rows = append(rows, append(row, d.GetReason()))
	}
	p.Table(headings, rows)
}

func showCommand(a *term.App) *cobra.Command {
	var full, ranks bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Explain a decision: what was asked, what came of it, and why", Args: term.Arguments(1, "ID"),
		Long: `Explain a decision: what was asked, what came of it and why, by how much, and what would have changed it; then each
candidate with the round in which it was good enough and its two scores, and each refused node with the constraint,
what it needed, what was available and how old that figure was.

System keys decide in rounds: the first round with a node above its threshold makes the band of nodes that count as
equal. In the band the customer score decides, and the seed among equals. --full adds every term of every score, what
every constraint said of every node, and the keys that were asked with.

A policy with several weighers combines them instead. --ranks adds what each of them gave each candidate: its rank,
higher is better, and in brackets the weight that it was ranked by. Of a percentage selector the rank is a percentage,
and lower is better.

ID may be shortened as long as it is unique; 'last' is the newest one.`,
		Example: `  berth decision show last
  berth decision show 3nqk7 --full
  berth decision show last --ranks
  berth decision show last --full -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			answer, err := term.AskOnce(a, cmd, term.Client.GetDecision, &berthv1.GetDecisionRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"decision/" + answer.GetDecision().GetId()},
				Text: func(p *term.Page, wide bool) {
					explanation.Write(a, p, answer.GetDecision(), explanation.Detail{Wide: wide, Full: full})
					if ranks {
						explanation.Ranks(p, answer.GetDecision(), full)
					}
				},
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.DecisionIDs()),
	}
	cmd.Flags().BoolVar(&full, "full", false, "every term of every score, and what every constraint said of every node")
	cmd.Flags().BoolVar(&ranks, "ranks", false, "what each weigher gave each candidate")
	return cmd
}
