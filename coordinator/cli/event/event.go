package event

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pause"
	"berth/shared/rpc"
)

const (
	defaultBacklog = 50
	maxBacklog     = 10000
	// followPatience is how long a follower looks for a coordinator again after it lost one.
	followPatience = time.Minute
)

// Command is the command events.
func Command(a *term.App) *cobra.Command {
	var (
		followOn bool
		backlog  int32
		filters  term.Filters
		sorting  term.Sorting[*berthv1.Event]
	)
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened, and follow what happens", Args: term.Arguments(0),
		Long: `Show what happened, oldest first, and with --follow what happens from then on. -o json prints one event a line. When a
coordinator goes away the events are followed on another one. With --since all are shown that are kept, and with other
filters the last that they let through.`,
		Example: `  berth events
  berth events --vm web1 --since 2h
  berth events --kind node --by alice --since 2026-01-31T15:04:05Z --until 1d
  berth events --backlog 500 --sort kind
  berth events --follow --backlog 0
  berth events --follow -o json | jq --unbuffered .message`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if backlog < 0 || backlog > maxBacklog {
				return term.Usagef(cmd, "--backlog %d: want 0 to %d", backlog, maxBacklog)
			}
			if followOn && cmd.Flags().Changed("until") {
				return term.Usagef(cmd, "--follow and --until exclude each other")
			}
			if followOn && cmd.Flags().Changed("sort") {
				return term.Usagef(cmd, "--follow and --sort exclude each other: what happens comes as it happens")
			}
			if err := sorting.Check(cmd); err != nil {
				return err
			}
			all := cmd.Flags().Changed("since") && !cmd.Flags().Changed("backlog")
			if all {
				backlog = maxBacklog
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			f := &follower{
				app: a, session: s, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), backlog: backlog, filters: &filters, all: all,
			}
			if followOn {
				return f.follow(cmd.Context())
			}
			if err := f.list(cmd.Context(), &sorting); err != nil {
				return err
			}
			a.NoteIfEmpty(cmd, len(f.printed), filters.Empty("event", "no events"))
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVarP(&followOn, "follow", "f", false, "go on with what happens, until it is interrupted")
	cmd.Flags().Int32Var(&backlog, "backlog", defaultBacklog, "how many past events to show first")
	term.Complete(cmd, "backlog", cobra.NoFileCompletions)
	sorting.Flag(cmd,
		term.ByText("name", (*berthv1.Event).GetSubject),
		term.ByText("kind", (*berthv1.Event).GetKind),
		term.ByText("caller", (*berthv1.Event).GetCaller),
		term.ByMost("age", func(event *berthv1.Event) int64 { return -event.GetAt().AsTime().UnixNano() }),
	)
	filters.VMFlags(cmd, a, "about, from or to", "VMs of ")
	filters.LabelFlag(cmd, a, "VMs")
	filters.PastFlags(cmd, a, "only those of `KIND`, for instance vm.started, or vm for all about VMs", "vm", "node", "coordinator", "plan")
	return cmd
}

// follower prints events, and none of them twice.
type follower struct {
	app     *term.App
	session *term.Session
	out     io.Writer
	notes   io.Writer
	backlog int32
	filters *term.Filters
	all     bool                       // what is past is wanted whole, and not the last of it
	show    func(*berthv1.Event) error // each event as it comes

	printed map[eventKey]bool
	last    eventKey // the newest one printed
	mark    eventKey // the newest one printed before this stream: what is older has been, or was not asked for
}

// eventKey tells events apart. Those of one change share an index; those that only a leader saw have none.
type eventKey struct {
	index                  uint64
	at                     int64 // nanoseconds
	kind, subject, message string
}

func keyOf(event *berthv1.Event) eventKey {
	return eventKey{
		index: event.GetIndex(), at: event.GetAt().AsTime().UnixNano(),
		kind: event.GetKind(), subject: event.GetSubject(), message: event.GetMessage(),
	}
}

// list prints what is past, in the order that was asked for.
func (f *follower) list(ctx context.Context, sorting *term.Sorting[*berthv1.Event]) error {
	events, err := f.past(ctx)
	sorting.Sort(events)
	for _, event := range events {
		if err := f.print(event); err != nil {
			return err
		}
	}
	return err
}

// past is what happened, oldest first. A stream begins with so many at most: what was before them is in the history.
func (f *follower) past(ctx context.Context) (events []*berthv1.Event, err error) {
	f.show = func(event *berthv1.Event) error {
		events = append(events, event)
		return nil
	}
	if err := f.once(ctx, false); err != nil || !f.all || len(events) < maxBacklog {
		return events, err
	}
	answer, err := term.AskAll(ctx, f.session, term.Client.ListHistory, &berthv1.ListHistoryRequest{
		Of: []berthv1.HistoryKind{berthv1.HistoryKind_HISTORY_KIND_EVENT}, Filter: f.filters.Filter(),
	}, term.Everything)
	if err != nil {
		return events, err
	}
	if err := f.filters.Heeded(answer); err != nil {
		return events, err
	}
	first := events[0].GetIndex()
	var older []*berthv1.Event
	for _, entry := range answer.GetEntries() {
		if event := entry.GetEvent(); event.GetIndex() <= first && !f.printed[keyOf(event)] {
			older = append(older, event)
		}
	}
	slices.Reverse(older)
	return append(older, events...), nil
}

// once shows what one stream has.
func (f *follower) once(ctx context.Context, follow bool) error {
	return f.session.Call(ctx, func(ctx context.Context, c term.Client) error {
		f.mark = f.last
		stream, err := c.WatchEvents(ctx, connect.NewRequest(&berthv1.WatchEventsRequest{
			Follow: follow, Backlog: f.backlog, Filter: f.filters.Filter(),
		}))
		if err != nil {
			return err
		}
		defer stream.Close()
		for first := true; stream.Receive(); first = false {
			if first {
				if err := f.filters.Heeded(stream.Msg()); err != nil {
					return err
				}
			}
			if event := stream.Msg().GetEvent(); event != nil && f.isNew(event) {
				if err := f.show(event); err != nil {
					return err
				}
			}
		}
		return stream.Err()
	})
}

// follow prints for ever. A stream that ends is opened again, with enough past events to close the gap.
func (f *follower) follow(ctx context.Context) error {
	var lost time.Time // zero while all is well
	if f.all {
		events, err := f.past(ctx)
		for _, event := range events {
			if err := f.print(event); err != nil {
				return err
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	f.show = f.print
	for {
		before := f.last
		err := f.once(ctx, true)
		if f.last != before {
			lost = time.Time{}
		}
		switch {
		case ctx.Err() != nil:
			return nil // interrupting is how this ends
		case err != nil && term.Answered(err) && !term.CutShort(err):
			return err
		case lost.IsZero():
			lost = time.Now()
			if !f.app.Quiet {
				fmt.Fprintln(f.notes, "note: lost the coordinator, following on another one")
			}
		case time.Since(lost) > followPatience && err != nil:
			return err
		}
		if len(f.printed) > 0 {
			f.backlog = maxBacklog
		}
		if !pause.For(ctx, term.RoundPause) {
			return nil
		}
	}
}

// isNew tells whether an event has not been printed, and remembers it.
func (f *follower) isNew(event *berthv1.Event) bool {
	key := keyOf(event)
	if f.printed[key] || key.index < f.mark.index && key.index > 0 || key.index == 0 && key.at < f.mark.at {
		return false
	}
	if f.printed == nil || len(f.printed) > 2*maxBacklog {
		f.printed = map[eventKey]bool{} // what is so old is older than the mark
	}
	f.printed[key] = true
	f.last = eventKey{index: max(f.last.index, key.index), at: max(f.last.at, key.at)}
	return true
}

func (f *follower) print(event *berthv1.Event) error {
	if f.app.Format.Structured() {
		compact, err := rpc.MarshalJSON(event)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		return f.structured(compact)
	}
	if f.app.Format == term.AsName {
		_, err := fmt.Fprintln(f.out, term.Clean(event.GetSubject()))
		return err
	}
	line := fmt.Sprintf("%s  %-22s %-20s %s", f.app.At(event.GetAt()), event.GetKind(), event.GetSubject(), event.GetMessage())
	if f.app.Format == term.AsWide {
		line += fmt.Sprintf("  [index %d, caller %s, operation %s, decision %s]", event.GetIndex(),
			cmp.Or(event.GetCaller(), term.None), cmp.Or(event.GetOperationId(), term.None), cmp.Or(event.GetDecisionId(), term.None))
	}
	_, err := fmt.Fprintln(f.out, term.Clean(line))
	return err
}

// structured prints one event a line, or one YAML document.
func (f *follower) structured(compact []byte) error {
	if f.app.Format == term.AsYAML {
		out, err := term.Indent(term.AsYAML, compact)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(f.out, "---\n%s", out)
		return err
	}
	var event json.RawMessage = term.Escaped(compact)
	line, err := json.Marshal(event) // without the blanks that protojson strews in
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	_, err = fmt.Fprintf(f.out, "%s\n", line)
	return err
}
