package follow

import (
	"cmp"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// reporter shows how an operation gets on.
type reporter interface {
	update(*berthv1.WatchOperationResponse)
	note(string)
	end(well bool)
}

// newReporter is a bar for a migration that somebody watches, and plain lines for the rest.
func newReporter(a *term.App, w io.Writer, op *berthv1.Operation) reporter {
	switch {
	case a.Quiet:
		return silent{}
	case op.GetKind() == "migrate" && term.IsTerminal(w) && a.Env("TERM") != "dumb":
		return newBar(w, op)
	default:
		return &lines{out: w, now: a.Now}
	}
}

type silent struct{}

func (silent) update(*berthv1.WatchOperationResponse) {}

func (silent) note(string) {}

func (silent) end(bool) {}

// lines are one at the start and one each two seconds of a migration. The last word is the command's result.
type lines struct {
	out  io.Writer
	now  func() time.Time
	last time.Time

	queued bool // it was, when it was last seen
}

func (l *lines) update(seen *berthv1.WatchOperationResponse) {
	now := l.now()
	op, stats := seen.GetOperation(), seen.GetProgress()
	switch {
	case l.last.IsZero():
		fmt.Fprintf(l.out, "vm/%s: %s (operation %s)\n", term.Clean(op.GetVm()), term.Clean(Beginning(op)), term.Clean(op.GetId()))
		l.queued = isQueued(op)
	case l.queued && !isQueued(op) && !Ended(op):
		fmt.Fprintf(l.out, "vm/%s: %s\n", term.Clean(op.GetVm()), term.Clean(Beginning(op)))
		l.queued = false
	case stats.GetDataTotalBytes() == 0 || now.Sub(l.last) < term.LineEvery:
		return
	default:
		fmt.Fprintf(l.out, "vm/%s: %s\n", term.Clean(op.GetVm()), transfer(stats))
	}
	l.last = now
}

func (l *lines) note(text string) { fmt.Fprintf(l.out, "note: %s\n", text) }

func (l *lines) end(bool) {}

// isQueued tells whether an operation waits for its turn.
func isQueued(op *berthv1.Operation) bool { return op.GetPhase() == "queued" }

// Beginning says what an operation sets out to do.
func Beginning(op *berthv1.Operation) string {
	return cmp.Or(op.GetDoing(), op.GetKind())
}

// transfer is the state of a running migration in words. Disks that are copied are told apart from the memory.
func transfer(stats *berthv1.MigrationStats) string {
	sent, left := stats.GetDataProcessedBytes(), stats.GetDataRemainingBytes()
	speed := fmt.Sprintf("%v/s, %s", units.Bytes(stats.GetMemoryBps()), term.Span(term.Seconds(stats.GetElapsedSeconds())))
	if stats.GetDiskTotalBytes() == 0 {
		return fmt.Sprintf("%v sent, %v left, %s", units.Bytes(sent), units.Bytes(left), speed)
	}
	return fmt.Sprintf("disks %v of %v, memory %v sent, %v left, %s",
		units.Bytes(stats.GetDiskProcessedBytes()), units.Bytes(stats.GetDiskTotalBytes()),
		units.Bytes(max(sent-stats.GetDiskProcessedBytes(), 0)), units.Bytes(max(left-stats.GetDiskRemainingBytes(), 0)), speed)
}

// whole is the length of a bar. A migration's own figures will not do: what is to be sent grows while the guest runs.
const whole = 1000

// bar is for a terminal.
type bar struct {
	progress *mpb.Progress
	bar      *mpb.Bar
	said     atomic.Pointer[string] // next to the bar
}

func newBar(w io.Writer, op *berthv1.Operation) *bar {
	b := &bar{progress: mpb.New(mpb.WithOutput(w), mpb.WithWidth(32), mpb.WithRefreshRate(100*time.Millisecond))}
	b.say("preparing")
	b.bar = b.progress.New(whole, mpb.BarStyle(),
		mpb.PrependDecorators(
			decor.Name(fmt.Sprintf("%s %s -> %s ", term.Clean(op.GetVm()), term.Clean(op.GetSource()), term.Clean(op.GetTarget()))),
			decor.NewPercentage("%d ", decor.WC{W: 5}),
		),
		mpb.BarFillerTrim(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *b.said.Load() })),
	)
	return b
}

func (b *bar) say(text string) { b.said.Store(&text) }

func (b *bar) update(seen *berthv1.WatchOperationResponse) {
	stats := seen.GetProgress()
	switch {
	case seen.GetOperation().GetMigration() != nil:
		b.say(MigrationPhrase(seen.GetOperation().GetMigration()))
	case stats.GetDataTotalBytes() > 0:
		b.say(transfer(stats))
		b.bar.SetCurrent(share(stats))
	}
}

// share is how much of what has to be sent is sent, short of whole: that is for the end.
func share(stats *berthv1.MigrationStats) int64 {
	left := float64(stats.GetDataRemainingBytes()) / float64(stats.GetDataTotalBytes())
	return min(max(int64(whole*(1-left)), 0), whole-1)
}

// lineStart goes to the beginning of a terminal's line, and empties the line. A terminal that shows an interrupt as ^C has moved on.
const lineStart = "\r\x1b[K"

func (b *bar) note(text string) {
	_, _ = b.progress.Write([]byte(lineStart + "note: " + text + "\n")) // fails only after the end
}

func (b *bar) end(well bool) {
	if well {
		b.bar.SetCurrent(whole)
	} else {
		b.bar.Abort(false)
	}
	b.progress.Wait()
}
