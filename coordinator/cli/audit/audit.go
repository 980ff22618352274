package audit

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cli/follow"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// Command is the command audit.
func Command(a *term.App) *cobra.Command {
	var limit int32
	list := &term.Lister[*berthv1.HistoryEntry]{
		What: "entry", Empty: "nobody has changed anything yet", Limit: &limit,
		Ask: func(ctx context.Context, s *term.Session, filter *berthv1.Filter, limit int32) (
			term.Filtered, []*berthv1.HistoryEntry, error,
		) {
			answer, err := term.AskAll(ctx, s, term.Client.ListHistory, &berthv1.ListHistoryRequest{
				Filter: filter, Called: true,
				Of: []berthv1.HistoryKind{berthv1.HistoryKind_HISTORY_KIND_EVENT, berthv1.HistoryKind_HISTORY_KIND_OPERATION},
			}, limit)
			return answer, answer.GetEntries(), err
		},
		Name:  func(entry *berthv1.HistoryEntry) string { return told(entry).subject },
		State: func(entry *berthv1.HistoryEntry) string { return told(entry).message },
		Table: func(p *term.Page, entries []*berthv1.HistoryEntry, wide bool) { table(a, p, entries, wide) },
	}
	cmd := list.Command(a, &cobra.Command{
		Use: "audit", Short: "Tell who did what, newest first",
		Long: `Tell what people and programs have changed, newest first, and what became of it: events that name who has called for
them, and operations that have ended. What coordinators did by themselves is left out; 'berth events' has it. Each
coordinator keeps 90 days of that, and any of them answers, with a leader or without.`,
		Example: `  berth audit
  berth audit --by alice --since 7d
  berth audit --vm web1 --limit 500 -o json`,
	})
	list.VMFlags(cmd, a, "about, from or to", "VMs of ")
	list.PastFlags(cmd, a, "only those of `KIND`, for instance vm.started, or start of operations", "vm", "node", "coordinator", "plan")
	list.Flag(cmd,
		term.ByText("by", func(entry *berthv1.HistoryEntry) string { return told(entry).caller }),
		term.ByText("subject", func(entry *berthv1.HistoryEntry) string { return told(entry).subject }),
		term.ByMost("age", func(entry *berthv1.HistoryEntry) int64 { return -told(entry).at.AsTime().UnixNano() }),
	)
	return cmd
}

// TellVM tells all that the history has of a VM, oldest first.
func TellVM(a *term.App, cmd *cobra.Command, vm string) error {
	answer, err := term.AskAllOnce(a, cmd, term.Client.ListHistory,
		&berthv1.ListHistoryRequest{Filter: &berthv1.Filter{Vms: []string{vm}}}, term.Everything)
	if err != nil {
		return err
	}
	slices.Reverse(answer.GetEntries())
	a.NoteIfEmpty(cmd, len(answer.GetEntries()), "nothing is known of a VM "+vm)
	return a.Print(cmd, term.Result{
		Message: answer,
		Names:   []string{"vm/" + vm},
		Text:    func(p *term.Page, wide bool) { table(a, p, answer.GetEntries(), wide) },
	})
}

// line is what people read of an entry.
type line struct {
	at                                               *timestamppb.Timestamp
	caller, kind, subject, operation, decision, node string
	message                                          string
}

func told(entry *berthv1.HistoryEntry) line {
	switch {
	case entry.GetEvent() != nil:
		e := entry.GetEvent()
		return line{
			at: e.GetAt(), caller: e.GetCaller(), kind: e.GetKind(), subject: e.GetSubject(), operation: e.GetOperationId(),
			decision: e.GetDecisionId(), message: e.GetMessage(),
		}
	case entry.GetDecision() != nil:
		d := entry.GetDecision()
		return line{
			at: d.GetMadeAt(), caller: d.GetCaller(), kind: "decision." + d.GetPurpose(), subject: "vm/" + d.GetVm(), decision: d.GetId(),
			operation: d.GetOperationId(), node: d.GetWinner(), message: d.GetReason(),
		}
	}
	op := entry.GetOperation()
	said := follow.OperationState(op)
	if op.GetMessage() != "" {
		said += ": " + op.GetMessage()
	}
	return line{
		at: op.GetEndedAt(), caller: op.GetCaller(), kind: "operation." + op.GetKind(), subject: "vm/" + op.GetVm(), operation: op.GetId(),
		decision: op.GetDecisionId(), node: cmp.Or(op.GetTarget(), op.GetSource()), message: said,
	}
}

func table(a *term.App, p *term.Page, entries []*berthv1.HistoryEntry, wide bool) {
	headings := []string{"AT", "CALLER", "KIND", "SUBJECT", "NODE"}
	if wide {
		headings = append(headings, "INDEX", "OPERATION", "DECISION")
	}
	rows := make([][]string, 0, len(entries))
	for _, entry := range entries {
		l := told(entry)
		row := []string{a.At(l.at), cmp.Or(l.caller, term.None), l.kind, l.subject, cmp.Or(l.node, term.None)}
		if wide {
			row = append(row, strconv.FormatUint(entry.GetIndex(), 10), cmp.Or(l.operation, term.None), cmp.Or(l.decision, term.None))
		}
		rows = append(rows, append(row, l.message))
	}
	p.Table(append(headings, "MESSAGE"), rows)
}
