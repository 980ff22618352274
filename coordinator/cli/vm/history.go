package vm

import (
	"cmp"

	"github.com/spf13/cobra"

	"berth/coordinator/cli/audit"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

func historyCommand(a *term.App) *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "history NAME", Short: "Tell where a VM was, since when, and why it moved", Args: term.Arguments(1, "NAME"),
		Long: `Tell where a VM was, newest first: since when, until when, what brought it there, and why to that node. CAME BY is
start, restart (its node had failed), migrate, drain, return, repair, balance, adopt, or out-of-band (somebody else
moved it, as with virsh). Operations are kept until 5000 newer ones have ended, decisions for 90 days. A line at the
end says if older moves are no longer kept. With --all every event, decision and operation of the VM is told instead,
oldest first, from the history that each coordinator keeps: 90 days of it, also of a VM that is gone.`,
		Example: `  berth vm history web1
  berth vm history web1 --all
  berth vm history web1 -o wide`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				return audit.TellVM(a, cmd, args[0])
			}
			answer, err := term.AskOnce(a, cmd, term.Client.VMHistory, &berthv1.VMHistoryRequest{Vm: args[0]})
			if err != nil {
				return err
			}
			if !answer.GetTrimmed() {
				a.NoteIfEmpty(cmd, len(answer.GetStays()), "it was nowhere yet: 'berth vm start "+answer.GetVm()+"' starts it")
			}
			return a.Print(cmd, term.Result{
				Message: answer,
				Names:   []string{"vm/" + answer.GetVm()},
				Text:    func(p *term.Page, wide bool) { historyTable(a, p, answer, wide) },
			})
		},
		ValidArgsFunction: term.CompleteFirst(a.VMNames()),
	}
	cmd.Flags().BoolVar(&all, "all", false, "every event, decision and operation of the VM, oldest first")
	return cmd
}

func historyTable(a *term.App, p *term.Page, answer *berthv1.VMHistoryResponse, wide bool) {
	headings := []string{"NODE", "SINCE", "UNTIL", "CAME BY", "FROM"}
	if wide {
		headings = append(headings, "CALLER", "OPERATION", "DECISION", "PLAN")
	}
	headings = append(headings, "REASON")
	rows := make([][]string, 0, len(answer.GetStays()))
	for i, stay := range answer.GetStays() {
		until := a.At(stay.GetUntil())
		if i > 0 && stay.GetUntil() == nil {
			until = "not known"
		}
		row := []string{
			stay.GetNode(), a.At(stay.GetSince()), until, cmp.Or(stay.GetCameBy(), term.None), cmp.Or(stay.GetFrom(), term.None),
		}
		if wide {
			row = append(row, cmp.Or(stay.GetCaller(), term.None), cmp.Or(stay.GetOperationId(), term.None),
				cmp.Or(stay.GetDecisionId(), term.None), cmp.Or(stay.GetPlanId(), term.None))
		}
		reason := cmp.Or(stay.GetReason(), term.None)
		if stay.GetCameBy() == "" {
			reason = "what brought it here is no longer kept"
		}
		rows = append(rows, append(row, reason))
	}
	if len(rows) > 0 {
		p.Table(headings, rows)
	}
	if answer.GetTrimmed() {
		p.Line("older moves are no longer kept")
	}
}
