package follow

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// PlanReporter shows the progress of a plan to the person who waits for it.
type PlanReporter interface {
	Update(*berthv1.Plan)
	note(string)
	End()
}

// NewPlanReporter draws bars on a terminal, writes plain lines to anything else, and writes nothing under --quiet.
func NewPlanReporter(a *term.App, w io.Writer) PlanReporter {
	switch {
	case a.Quiet:
		return silentPlan{}
	case term.IsTerminal(w) && a.Env("TERM") != "dumb":
		return newPlanBars(w)
	default:
		return &planLines{out: w, now: a.Now, turns: turns{}}
	}
}

type silentPlan struct{}

func (silentPlan) Update(*berthv1.Plan) {}

func (silentPlan) note(string) {}

func (silentPlan) End() {}

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
	if !known && move.GetState() == model.MoveStays {
		return "" // that was known before, and is said at the end
	}
	switch move.GetState() {
	case moveMoving:
		return fmt.Sprintf("migrating from %s to %s", move.GetSource(), move.GetTarget())
	case model.MoveMoved:
		return "running on " + move.GetTarget()
	case moveWaiting:
		if known && move.GetMessage() != "" { // an attempt has failed
			return "waits for another attempt: " + move.GetMessage()
		}
		return ""
	case model.MoveStays:
		return "stays: " + MoveWhy(move)
	case model.MoveFailed:
		return "stays, it could not be moved: " + MoveWhy(move)
	case model.MoveGone:
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

func (l *planLines) Update(plan *berthv1.Plan) {
	now, t := l.now(), TallyOf(plan)
	if l.last.IsZero() && t.Wanted > 0 {
		fmt.Fprintf(
			l.out, "%s (%s, %v; plan %s)\n",
			term.Clean(planBeginning(plan)), term.Count(t.Wanted, "VM"), units.Bytes(t.Size), term.Clean(plan.GetId()),
		)
		l.last = now
	}
	for _, move := range plan.GetMoves() {
		if news := l.turns.news(move); news != "" {
			fmt.Fprintf(l.out, "vm/%s: %s\n", term.Clean(move.GetVm()), term.Clean(news))
			l.last = now
		}
	}
	if len(t.Moving) > 0 && now.Sub(l.last) >= sumEvery {
		fmt.Fprintf(l.out, "%s: %s\n", term.Clean(PlanSubject(plan)), planProgress(t))
		l.last = now
	}
}

func (l *planLines) note(text string) { fmt.Fprintf(l.out, "note: %s\n", text) }

func (l *planLines) End() {}

// planBars are for a terminal: one for the whole, and one for each move that runs.
type planBars struct {
	progress *mpb.Progress
	whole    *saidBar
	moves    map[string]*saidBar // by VM
	turns    turns
}

// saidBar is a bar with changing words next to it.
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
		mpb.PrependDecorators(decor.Name(term.Clean(name), decor.WCSyncSpaceR), decor.NewPercentage("%d ", decor.WC{W: 5})),
		mpb.BarFillerTrim(),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return " " + *made.said.Load() })),
	)...)
	return made
}

func (b *planBars) Update(plan *berthv1.Plan) {
	t := TallyOf(plan)
	if b.whole == nil {
		b.whole = b.add(PlanSubject(plan), "")
	}
	b.whole.say(planProgress(t))
	switch {
	case PlanEnded(plan) && len(t.Staying) == 0:
		b.whole.bar.SetCurrent(whole)
	case t.Size > 0:
		b.whole.bar.SetCurrent(min(int64(whole*float64(t.copied)/float64(t.Size)), whole-1))
	}
	for _, move := range plan.GetMoves() {
		switch news := b.turns.news(move); {
		case move.GetState() == moveMoving:
			b.moving(move)
		case news != "" && move.GetState() != model.MoveMoved:
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
	_, _ = b.progress.Write([]byte(lineStart + "note: " + term.Clean(text) + "\n")) // fails only after the end
}

func (b *planBars) End() {
	for vm := range b.moves {
		b.drop(vm)
	}
	if b.whole != nil {
		b.whole.bar.Abort(false)
	}
	b.progress.Wait()
}
