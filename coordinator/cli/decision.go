package cli

import (
	"github.com/spf13/cobra"

	berthv1 "berth/shared/gen/berth/v1"
)

const lastDecision = "last"

func (a *app) decisionCommand() *cobra.Command {
	return noun("decision COMMAND", "See why VMs were placed where they are", `
Every placement leaves a decision: what was asked, every node with what refused it or what its score is made of, which
node won by how much, and what would have changed it.`,
		a.decisionListCommand(), a.decisionShowCommand(), a.decisionReplayCommand())
}

func (a *app) decisionListCommand() *cobra.Command {
	var (
		limit int32
		vm    string
	)
	cmd := &cobra.Command{
		Use: "list", Short: "List decisions, newest first", Args: arguments(0),
		Example: `  berth decision list --vm web1
  berth decision list --limit 5 -o json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkLimit(cmd, limit); err != nil {
				return err
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := askAll(cmd.Context(), s, client.ListDecisions,
				&berthv1.ListDecisionsRequest{Vm: vm}, limit)
			if err != nil {
				return err
			}
			a.nothing(cmd, len(answer.GetDecisions()), "no decisions")
			return a.print(cmd, result{
				message: answer,
				names:   prefixed("decision/", answer.GetDecisions(), (*berthv1.Decision).GetId),
				text:    func(p *page, wide bool) { a.decisionTable(p, answer.GetDecisions(), wide) },
			})
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().Int32Var(&limit, "limit", defaultLimit, "how many at most")
	cmd.Flags().StringVar(&vm, "vm", "", "only those about the VM `NAME`")
	complete(cmd, "limit", cobra.NoFileCompletions)
	complete(cmd, "vm", a.vmNames())
	return cmd
}

func checkLimit(cmd *cobra.Command, limit int32) error {
	if limit < 1 || limit > maxLimit {
		return Usagef(cmd, "--limit %d: want 1 to %d", limit, maxLimit)
	}
	return nil
}

// prefixed makes the names that -o name prints.
func prefixed[T any](noun string, things []T, name func(T) string) []string {
	names := make([]string, 0, len(things))
	for _, thing := range things {
		names = append(names, noun+name(thing))
	}
	return names
}

func (a *app) decisionTable(p *page, decisions []*berthv1.Decision, wide bool) {
	headings := []string{"ID", "AGE", "PURPOSE", "VM", "OUTCOME", "NODE", "MARGIN", "WHY"}
	if wide {
		headings = []string{"ID", "MADE", "PURPOSE", "VM", "OUTCOME", "NODE", "MARGIN", "POLICY", "CALLER", "OPERATION", "WHY"}
	}
	rows := make([][]string, 0, len(decisions))
	for _, d := range decisions {
		result := enum(d.GetOutcome(), "DECISION_OUTCOME_")
		if d.GetDryRun() {
			result += ",dry-run"
		}
		row := []string{
			d.GetId(), a.since(d.GetMadeAt()), d.GetPurpose(), d.GetVm(), result, or(d.GetWinner(), none),
			or(marginField(d), none),
		}
		if wide {
			row[1] = a.at(d.GetMadeAt())
			row = append(row, d.GetPolicy(), d.GetCaller(), or(d.GetOperationId(), none))
		}
		rows = append(rows, append(row, d.GetReason()))
	}
	p.table(headings, rows)
}

func (a *app) decisionShowCommand() *cobra.Command {
	var full, ranks bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Explain a decision: what was asked, what came of it, and why", Args: arguments(1, "ID"),
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
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
			answer, err := ask(cmd.Context(), s, repeatable, client.GetDecision, &berthv1.GetDecisionRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return a.print(cmd, result{
				message: answer,
				names:   []string{"decision/" + answer.GetDecision().GetId()},
				text: func(p *page, wide bool) {
					a.explanation(p, answer.GetDecision(), detail{wide: wide, full: full})
					if ranks {
						ranksText(p, answer.GetDecision(), full)
					}
				},
			})
		},
		ValidArgsFunction: first(a.decisionIDs()),
	}
	cmd.Flags().BoolVar(&full, "full", false, "every term of every score, and what every constraint said of every node")
	cmd.Flags().BoolVar(&ranks, "ranks", false, "what each weigher gave each candidate")
	return cmd
}
