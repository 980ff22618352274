package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"

	berthv1 "berth/shared/gen/berth/v1"
)

const (
	defaultBacklog = 50
	maxBacklog     = 10000
	// followPatience is how long a follower looks for a coordinator again after it lost one.
	followPatience = time.Minute
)

func (a *app) eventsCommand() *cobra.Command {
	var (
		followOn bool
		backlog  int32
	)
	cmd := &cobra.Command{
		Use: "events", Short: "Show what happened, and follow what happens", Args: arguments(0),
		Long: `Show what happened, oldest first, and with --follow what happens from then on. -o json prints one event a line. When a
coordinator goes away the events are followed on another one.`,
		Example: `  berth events
  berth events --follow --backlog 0
  berth events --follow -o json | jq --unbuffered .message`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if backlog < 0 || backlog > maxBacklog {
				return Usagef(cmd, "--backlog %d: want 0 to %d", backlog, maxBacklog)
			}
			s, err := a.connect()
			if err != nil {
				return err
			}
			defer s.close()
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
	complete(cmd, "backlog", cobra.NoFileCompletions)
	return cmd
}

// follower prints events, and none of them twice.
type follower struct {
	app     *app
	session *session
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
	return f.session.call(ctx, repeatable, func(ctx context.Context, c client) error {
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
		case err != nil && answered(err) && !cutShort(err):
			return err
		case lost.IsZero():
			lost = time.Now()
			if !f.app.quiet {
				fmt.Fprintln(f.notes, "note: lost the coordinator, following on another one")
			}
		case time.Since(lost) > followPatience && err != nil:
			return err
		}
		if len(f.printed) > 0 {
			f.backlog = maxBacklog
		}
		if !pause(ctx, roundPause) {
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
	if f.app.format.structured() {
		compact, err := protojson.Marshal(event)
		if err != nil {
			return fmt.Errorf("encode an event: %w", err)
		}
		return f.structured(compact)
	}
	if f.app.format == asName {
		_, err := fmt.Fprintln(f.out, clean(event.GetSubject()))
		return err
	}
	line := fmt.Sprintf("%s  %-22s %-20s %s", f.app.at(event.GetAt()), event.GetKind(), event.GetSubject(), event.GetMessage())
	if f.app.format == asWide {
		line += fmt.Sprintf("  [index %d, caller %s, operation %s, decision %s]", event.GetIndex(),
			or(event.GetCaller(), none), or(event.GetOperationId(), none), or(event.GetDecisionId(), none))
	}
	_, err := fmt.Fprintln(f.out, clean(line))
	return err
}

// structured prints one event a line, or one YAML document.
func (f *follower) structured(compact []byte) error {
	if f.app.format == asYAML {
		out, err := indent(asYAML, compact)
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
