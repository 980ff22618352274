package cli

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// planReporter shows how a plan gets on.
type planReporter interface {
	update(*berthv1.Plan)
	note(string)
	end()
}

// planReporter is bars where somebody watches, and plain lines elsewhere.
func (a *app) planReporter(w io.Writer) planReporter {
	switch {
	case a.quiet:
		return silentPlan{}
	case isTerminal(w) && a.env("TERM") != "dumb":
		return newPlanBars(w)
	default:
		return &planLines{out: w, now: a.now, turns: turns{}}
	}
}

type silentPlan struct{}

func (silentPlan) update(*berthv1.Plan) {}
func (silentPlan) note(string)          {}
func (silentPlan) end()                 {}

// turns remembers by VM what was last told of its move.
type turns map[string]turn

type turn struct {
	state    string
	attempts int32
}

// news is what has happened to a move since it was last asked for, in words; empty when there is nothing to tell.
func (t turns) news(move *berthv1.Move) string {
	before, known := t[move.GetVm()]
	now := turn{state: move.GetState(), attempts: move.GetAttempts()}
	if known && before == now {
		return ""
	}
	t[move.GetVm()] = now
	if !known && move.GetState() == cluster.MoveStays {
		return "" // that was known before, and is said at the end
	}
	switch move.GetState() {
	case moveMoving:
		return fmt.Sprintf("migrating from %s to %s", move.GetSource(), move.GetTarget())
	case cluster.MoveMoved:
		return "running on " + move.GetTarget()
	case moveWaiting:
		if known && move.GetMessage() != "" { // an attempt has failed
			return "waits for another attempt: " + move.GetMessage()
		}
		return ""
	case cluster.MoveStays:
		return "stays: " + moveWhy(move)
	case cluster.MoveFailed:
		return "stays, it could not be moved: " + moveWhy(move)
	case cluster.MoveGone:
		return "was stopped or moved by somebody else"
	}
	return ""
}

// sumEvery is how often lines sum a plan up while its moves copy.
const sumEvery = 10 * time.Second

// planLines are for a log: a line at the start, one whenever a move begins or ends, and a sum while nothing else is told.
type planLines struct {
	out   io.Writer
	now   func() time.Time
	last  time.Time
	turns turns
}

func (l *planLines) update(plan *berthv1.Plan) {
	now, t := l.now(), tallyOf(plan)
	if l.last.IsZero() && t.wanted > 0 {
		fmt.Fprintf(l.out, "%s (%s, %v; plan %s)\n", clean(planBeginning(plan)), count(t.wanted, "VM"), units.Bytes(t.size), clean(plan.GetId()))
		l.last = now
	}
	for _, move := range plan.GetMoves() {
		if news := l.turns.news(move); news != "" {
			fmt.Fprintf(l.out, "vm/%s: %s\n", clean(move.GetVm()), clean(news))
			l.last = now
		}
	}
	if len(t.moving) > 0 && now.Sub(l.last) >= sumEvery {
		fmt.Fprintf(l.out, "%s: %s\n", clean(planSubject(plan)), planProgress(t))
		l.last = now
	}
}

func (l *planLines) note(text string) { fmt.Fprintf(l.out, "note: %s\n", text) }

func (l *planLines) end() {}

// planBars are for a terminal: one for the whole, and one for each move that runs.
type planBars struct {
	progress *mpb.Progress
	whole    *saidBar
	moves    map[string]*saidBar // by VM
	turns    turns
}

// saidBar is a bar with changing words beside it.
type saidBar struct {
	bar  *mpb.Bar
	said atomic.Pointer[string]
}

func (b *saidBar) say(text string) { b.said.Store(&text) }

func newPlanBars(w io.Writer) *planBars {
	return &planBars{
		progress: mpb.New(mpb.WithOutput(w), mpb.WithWidth(32), mpb.WithRefreshRate(100*time.Millisecond)),
		moves:    map[string]*saidBar{}, turns: turns{},
	}
}

func (b *planBars) add(name, said string, options ...mpb.BarOption) *saidBar {
	made := &saidBar{}
	made.say(said)
	made.bar = b.progress.New(whole, mpb.BarStyle(), append(options,
		mpb.PrependDecorators(decor.Name(clean(name), decor.WCSyncSpaceR), decor.NewPercentage("%d ", decor.WC{W: 5})),
		mpb.BarFillerTrim(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *made.said.Load() })),
	)...)
	return made
}

func (b *planBars) update(plan *berthv1.Plan) {
	t := tallyOf(plan)
	if b.whole == nil {
		b.whole = b.add(planSubject(plan), "")
	}
	b.whole.say(planProgress(t))
	switch {
	case planEnded(plan) && len(t.staying) == 0:
		b.whole.bar.SetCurrent(whole)
	case t.size > 0:
		b.whole.bar.SetCurrent(min(int64(whole*float64(t.copied)/float64(t.size)), whole-1))
	}
	for _, move := range plan.GetMoves() {
		switch news := b.turns.news(move); {
		case move.GetState() == moveMoving:
			b.moving(move)
		case news != "" && move.GetState() != cluster.MoveMoved:
			b.note("vm/" + move.GetVm() + " " + news)
			b.drop(move.GetVm())
		default:
			b.drop(move.GetVm())
		}
	}
}

func (b *planBars) moving(move *berthv1.Move) {
	bar := b.moves[move.GetVm()]
	if bar == nil {
		bar = b.add(fmt.Sprintf("  %s -> %s", move.GetVm(), move.GetTarget()), "preparing", mpb.BarRemoveOnComplete())
		b.moves[move.GetVm()] = bar
	}
	if move.GetCopiedBytes()+move.GetRemainingBytes() > 0 {
		bar.say(fmt.Sprintf("%v copied, %v left", units.Bytes(move.GetCopiedBytes()), units.Bytes(move.GetRemainingBytes())))
		bar.bar.SetCurrent(min(int64(whole*copiedShare(move)), whole-1))
	}
}

// drop takes the bar of a move away that does not run any more.
func (b *planBars) drop(vm string) {
	if bar := b.moves[vm]; bar != nil {
		bar.bar.Abort(true)
		delete(b.moves, vm)
	}
}

func (b *planBars) note(text string) {
	_, _ = b.progress.Write([]byte("note: " + clean(text) + "\n")) // fails only after the end
}

func (b *planBars) end() {
	for vm := range b.moves {
		b.drop(vm)
	}
	if b.whole != nil {
		b.whole.bar.Abort(false)
	}
	b.progress.Wait()
}
