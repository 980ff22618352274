package term

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/protobuf/proto"

	"berth/shared/pause"
)

const (
	watchEvery    = 2 * time.Second        // how often a list is read that is watched
	leastInterval = 100 * time.Millisecond // less would only be load
	topLines      = 2                      // above a list that is watched on a terminal
)

// listing is what a list has, for all ways in which it is shown.
type listing[T any] struct {
	Message proto.Message
	Things  []T
	Name    func(T) string // NOUN/NAME
	State   func(T) string // what counts as a change of it when the list is watched: no figure that always moves
	Table   func(p *Page, things []T, wide bool)
	Empty   string // what to say where there is nothing
	AsOf    string // says that it is of the past; empty: it is of now
}

// print shows the list once.
func (l *listing[T]) print(a *App, cmd *cobra.Command) error {
	if l.AsOf != "" && a.Format != AsTable && a.Format != AsWide {
		a.Note(cmd, l.AsOf)
	}
	if l.AsOf == "" {
		a.NoteIfEmpty(cmd, len(l.Things), l.Empty)
	}
	return a.Print(cmd, Result{
		Message: l.Message, Names: Prefixed("", l.Things, l.Name),
		Text: func(p *Page, wide bool) {
			if l.AsOf != "" {
				p.Line("%s", l.AsOf)
				p.Blank()
			}
			l.Table(p, l.Things, wide)
		},
	})
}

// Watching are the flags of a list that may be watched.
type Watching struct {
	Frames   bool // the list has figures that always move: without a terminal it is shown once
	on       bool
	interval time.Duration
}

// Flags adds --watch and --interval.
func (w *Watching) Flags(cmd *cobra.Command) {
	doc := "go on until it is interrupted: the list as it is now, or where there is no terminal a row for each change"
	if w.Frames {
		doc = "go on until it is interrupted; where there is no terminal the list is shown once"
	}
	cmd.Flags().BoolVarP(&w.on, "watch", "w", false, doc)
	cmd.Flags().DurationVar(&w.interval, "interval", watchEvery, "`DURATION` between two looks at a list that is watched")
	Complete(cmd, "interval", cobra.NoFileCompletions)
}

// Check refuses what cannot be watched.
func (w *Watching) Check(a *App, cmd *cobra.Command) error {
	switch {
	case !w.on && cmd.Flags().Changed("interval"):
		return Usagef(cmd, "--interval is for --watch")
	case w.on && a.Format.Structured():
		return Usagef(cmd, "--watch prints tables and names, no %s: programs read 'berth events --follow -o json'", a.Format)
	case w.on && w.interval < leastInterval:
		return Usagef(cmd, "--interval %s: want at least %s", w.interval, leastInterval)
	}
	return nil
}

// showList prints a list, once or for as long as it is watched.
func showList[T any](a *App, cmd *cobra.Command, w Watching, read func(context.Context, *Session) (listing[T], error)) error {
	if err := w.Check(a, cmd); err != nil {
		return err
	}
	s, err := a.Connect()
	if err != nil {
		return err
	}
	defer s.Close()
	list, err := read(cmd.Context(), s)
	if err != nil {
		if list.AsOf != "" { // what was known last is shown, and is no success
			err = cmp.Or(list.print(a, cmd), err)
		}
		return err
	}
	paints := IsTerminal(cmd.OutOrStdout()) && a.Env("TERM") != "dumb"
	if !w.on || w.Frames && !paints {
		return list.print(a, cmd)
	}
	show := changedRows[T](a, cmd.OutOrStdout())
	if paints {
		show = repainted[T](a, cmd.OutOrStdout(), w.interval)
	}
	for lost := false; ; {
		if err == nil {
			lost = false
			if err := show(list); err != nil {
				return err
			}
		}
		if !pause.For(cmd.Context(), w.interval) {
			return nil // interrupting is how this ends
		}
		list, err = read(cmd.Context(), s)
		switch {
		case cmd.Context().Err() != nil:
			return nil
		case err != nil && Answered(err) && !CutShort(err):
			return err
		case err != nil && !lost:
			lost = true
			a.Note(cmd, "note: no coordinator answers, looking again: "+Message(err))
		}
	}
}

// repainted draws the list over the one before, from the top of the terminal. What does not fit there is counted.
func repainted[T any](a *App, out io.Writer, interval time.Duration) func(listing[T]) error {
	height := func() int { return 0 }
	if file, ok := out.(*os.File); ok {
		height = func() int {
			_, rows, err := term.GetSize(int(file.Fd()))
			if err != nil {
				return 0
			}
			return rows
		}
	}
	return func(list listing[T]) error {
		var page bytes.Buffer
		switch a.Format {
		case AsName:
			for _, name := range Prefixed("", list.Things, list.Name) {
				fmt.Fprintln(&page, Clean(name))
			}
		default:
			list.Table(&Page{Out: &page, Headless: a.NoHeaders}, list.Things, a.Format == AsWide)
		}
		head := fmt.Sprintf("%s, every %s, ends with Ctrl-C", a.Now().Format("15:04:05"), Span(interval))
		_, err := io.WriteString(out, frame(head, page.String(), height()))
		return err
	}
}

// frame is what makes a terminal show a page and nothing of the one before. A terminal of no known height gets all lines.
func frame(head, page string, height int) string {
	lines := strings.Split(strings.TrimSuffix(page, "\n"), "\n")
	if room := height - topLines - 1; height > 0 && len(lines) > room {
		room = max(room-1, 1)
		lines = append(lines[:room], fmt.Sprintf("... and %d more lines", len(lines)-room))
	}
	var out strings.Builder
	out.WriteString("\x1b[H")
	for _, line := range append([]string{head, ""}, lines...) {
		out.WriteString(line + "\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	return out.String()
}

// changedRows prints the whole list once, and then a row of whatever is new or in another state, and a line of what is gone.
func changedRows[T any](a *App, out io.Writer) func(listing[T]) error {
	var before map[string]string
	return func(list listing[T]) error {
		now := make(map[string]string, len(list.Things))
		var changed []T
		for _, one := range list.Things {
			name, state := list.Name(one), list.State(one)
			if was, known := before[name]; !known || was != state {
				changed = append(changed, one)
			}
			now[name] = state
		}
		var rows bytes.Buffer
		switch {
		case a.Format == AsName:
			for _, one := range changed {
				fmt.Fprintln(&rows, Clean(list.Name(one)))
			}
		case len(changed) > 0:
			list.Table(&Page{Out: &rows, Headless: a.NoHeaders || before != nil}, changed, a.Format == AsWide)
		}
		for name := range before {
			if _, there := now[name]; !there {
				fmt.Fprintln(&rows, Clean(name)+" is gone")
			}
		}
		before = now
		_, err := out.Write(rows.Bytes())
		return err
	}
}
