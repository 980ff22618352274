package event

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
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
	)
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened, and follow what happens", Args: term.Arguments(0),
		Long: `Show what happened, oldest first, and with --follow what happens from then on. -o json prints one event a line. When a
coordinator goes away the events are followed on another one.`,
		Example: `  berth events
  berth events --follow --backlog 0
  berth events --follow -o json | jq --unbuffered .message`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if backlog < 0 || backlog > maxBacklog {
				return term.Usagef(cmd, "--backlog %d: want 0 to %d", backlog, maxBacklog)
			}
			s, err := a.Connect()
			if err != nil {
				return err
			}
			defer s.Close()
			f := &follower{app: a, session: s, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), backlog: backlog}
			if followOn {
				return f.follow(cmd.Context())
			}
			return f.once(cmd.Context(), false)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	cmd.Flags().BoolVarP(&followOn, "follow", "f", false, "go on with what happens, until it is interrupted")
	cmd.Flags().Int32Var(&backlog, "backlog", defaultBacklog, "how many past events to show first")
	term.Complete(cmd, "backlog", cobra.NoFileCompletions)
	return cmd
}

// follower prints events, and none of them twice.
type follower struct {
	app     *term.App
	session *term.Session
	out     io.Writer
	notes   io.Writer
	backlog int32

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

// once prints what one stream has.
func (f *follower) once(ctx context.Context, follow bool) error {
	return f.session.Call(ctx, func(ctx context.Context, c term.Client) error {
		f.mark = f.last
		stream, err := c.WatchEvents(ctx, connect.NewRequest(&berthv1.WatchEventsRequest{Follow: follow, Backlog: f.backlog}))
		if err != nil {
			return err
		}
		defer stream.Close()
		for stream.Receive() {
			if event := stream.Msg().GetEvent(); event != nil && f.isNew(event) {
				if err := f.print(event); err != nil {
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
		if !term.Pause(ctx, term.RoundPause) {
			return nil
		}
	}
}

// isNew tells whether an event has not been printed, and remembers it.
func (f *follower) isNew(event *berthv1.Event) bool {
	key := eventKey{
		index: event.GetIndex(), at: event.GetAt().AsTime().UnixNano(),
		kind: event.GetKind(), subject: event.GetSubject(), message: event.GetMessage(),
	}
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
	var event json.RawMessage = compact
	line, err := json.Marshal(event) // without the blanks that protojson strews in
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	_, err = fmt.Fprintf(f.out, "%s\n", line)
	return err
}
