package resource

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"berth/coordinator/cli/term"
	"berth/shared/units"
)

// counted shows how far a file has come. What is written to it is counted.
type counted interface {
	io.Writer
	end(well bool)
}

// copying is a bar where somebody watches, and a line every two seconds elsewhere.
func copying(a *term.App, w io.Writer, subject, verb string, size int64) counted {
	switch {
	case a.Quiet:
		return uncounted{io.Discard}
	case term.IsTerminal(w) && a.Env("TERM") != "dumb":
		return newCopyBar(w, subject, verb, size)
	default:
		return &copyLines{out: w, subject: subject, verb: verb, size: size, now: a.Now, last: a.Now()}
	}
}

type uncounted struct{ io.Writer }

func (uncounted) end(bool) {}

type copyLines struct {
	out           io.Writer
	subject, verb string
	size, done    int64
	now           func() time.Time
	last          time.Time
}

func (l *copyLines) Write(data []byte) (int, error) {
	l.done += int64(len(data))
	if now := l.now(); now.Sub(l.last) >= term.LineEvery {
		l.last = now
		fmt.Fprintf(l.out, "%s: %v of %v %s\n", term.Clean(l.subject), units.Bytes(l.done), units.Bytes(l.size), l.verb)
	}
	return len(data), nil
}

func (l *copyLines) end(bool) {}

// copyBar is for a terminal. What is sent has not arrived everywhere yet: the bar stays until the answer is there.
type copyBar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	size     int64
	done     int64
}

func newCopyBar(w io.Writer, subject, verb string, size int64) *copyBar {
	b := &copyBar{progress: mpb.New(mpb.WithOutput(w), mpb.WithWidth(32), mpb.WithRefreshRate(100*time.Millisecond)), size: size}
	b.bar = b.progress.New(max(size, 1)+1, mpb.BarStyle(),
		mpb.PrependDecorators(decor.Name(term.Clean(subject)+" "), decor.NewPercentage("%d ", decor.WC{W: 5})),
		mpb.BarFillerTrim(),
		mpb.AppendDecorators(decor.Any(func(s decor.Statistics) string {
			if s.Current >= size && verb == "sent" && !s.Completed {
				return " all sent; the nodes are taking it in"
			}
			return fmt.Sprintf(" %v of %v %s", units.Bytes(min(s.Current, size)), units.Bytes(size), verb)
		})),
	)
	return b
}

func (b *copyBar) Write(data []byte) (int, error) {
	b.done += int64(len(data))
	b.bar.SetCurrent(min(b.done, b.size))
	return len(data), nil
}

func (b *copyBar) end(well bool) {
	if well {
		b.bar.SetCurrent(max(b.size, 1) + 1)
	} else {
		b.bar.Abort(false)
	}
	b.progress.Wait()
}
