package admin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"berth/integration/lab"
	"berth/integration/writer"
)

// history is what a seed has come to.
type history struct {
	name  string
	ha    bool
	done  []done
	runs  []lab.Run     // of the guest, oldest first
	twice []string      // what the observer says of two processes that executed it at the same time
	lines []writer.Line // what it has said
	kept  []string      // what Berth said was done, and was not
	look  look          // at the guest and at what Berth shows of it, when all was quiet
	quiet time.Time     // when that was
	off   bool          // it had no process then
	stuck string        // why it could not be stopped and started in the end; empty: it could
	held  string        // what libvirt said that let it be neither, see heldByLibvirt; empty: it does
}

// done is a step that was done.
type done struct {
	step
	begun, ended time.Time
	code         int
	said         string
}

// breach is a rule that was broken, and how.
type breach struct{ rule, how string }

func (b breach) String() string { return b.rule + ": " + b.how }

// judge says which rules a history breaks.
func judge(h *history) []breach {
	var found []breach
	add := func(rule, format string, args ...any) {
		found = append(found, breach{rule, fmt.Sprintf(format, args...)})
	}
	numbers(h.lines, h.wentBack(), add)
	for _, overlap := range h.twice {
		add("twice", "%s", overlap)
	}
	for _, one := range h.seen() {
		if !h.explained(one) {
			add("unwanted", "it %s at %s on %s, and nobody has done anything that leads there", one.effect, clock(one.at), one.where)
		}
	}
	for _, text := range h.kept {
		add("unkept", "%s", text)
	}
	if file, size := h.resized(); h.look.size > 0 && h.look.disks["vda"] == file && h.look.size != size {
		add("resized", "its disk %s was made %d bytes large, and it has %d", file, size, h.look.size)
	}
	for _, text := range h.look.unexplained() {
		add("unexplained", "%s", text)
	}
	if h.stuck != "" {
		add("stuck", "%s", h.stuck)
	}
	return found
}

// resized is the file of the guest's disk that somebody has resized last, and how large he has made it. No file: nobody has, or what was
// done to the disk since then or meanwhile may have given it another size.
func (h *history) resized() (file string, size int64) {
	var last *done
	for i := range h.done {
		one := &h.done[i]
		if !one.verb.resizes && !one.verb.shifts {
			continue
		}
		beside := last != nil && !one.begun.After(last.ended)
		if last = one; beside || one.verb.shifts || one.code != 0 {
			file = ""
			continue
		}
		said := strings.Fields(one.said)
		mebibytes, err := strconv.ParseInt(strings.TrimSuffix(one.with, "M"), 10, 64)
		if file, size = said[len(said)-1], mebibytes<<20; err != nil {
			file = ""
		}
	}
	return file, size
}

// wentBack tells whether somebody has resumed with virsh what an interrupted move left on its source, after the guest had run elsewhere.
// Its memory and its disk are not of one time then, and nobody who keeps hosts can help that.
func (h *history) wentBack() bool {
	for i := 2; i < len(h.runs); i++ {
		left, between, now := h.runs[i-2], h.runs[i-1], h.runs[i]
		if now.PID == left.PID && now.Host == left.Host && between.Incoming && between.Host != now.Host &&
			slices.ContainsFunc(h.done, func(d done) bool { return d.verb.by == virsh && d.code == 0 && d.mayHave(resumes, now.From, now.From) }) {
			return true
		}
	}
	return false
}

// numbers follows what the guest has said of its disk, until it goes on from an earlier moment if somebody has sent it back to one.
func numbers(lines []writer.Line, wentBack bool, add func(rule, format string, args ...any)) {
	var boot, written uint32
	over := map[uint32]bool{} // boots that another one has followed
	for _, line := range lines {
		if over[line.Boot] {
			add("twice", "boot %08x says %q %d, and boot %08x has begun since: two write to one disk", line.Boot, line.Word, line.Number, boot)
			continue
		}
		switch line.Word {
		case writer.Boots:
			if line.Number < written {
				add("lost", "boot %08x finds %d, and %d was written", line.Boot, line.Number, written)
			}
			if line.Other > 0 {
				add("lost", "boot %08x finds %d, and %d of the numbers before it are not there", line.Boot, line.Number, line.Other)
			}
			if boot != 0 && line.Boot != boot {
				over[boot] = true
			}
			boot, written = line.Boot, line.Number
		case writer.Lost:
			add("lost", "boot %08x has written up to %d, and reads %d where it has written another number", line.Boot, line.Number, line.Other)
		case writer.Wrote:
			if line.Boot != boot {
				add("twice", "a boot %08x writes that has never begun, beside %08x", line.Boot, boot)
			} else if line.Number <= written && wentBack {
				return
			} else if line.Number != written+1 {
				add("lost", "boot %08x writes %d after %d", line.Boot, line.Number, written)
			}
			written = max(written, line.Number)
		}
	}
}

// event is something that became of a guest.
type event struct {
	effect effect
	at     time.Time
	where  string
	since  time.Time // of a beginning or a move: when the process before was gone. It may have stood still for a while before it was let run
	until  time.Time // of an end: when the next process began. It may have stood still for a while before its process was gone
}

// seen are the events of a guest but for its first beginning and its last end, which are the suite's own. If it was off when all was
// quiet, its end was not.
func (h *history) seen() []event {
	var events []event
	for i, run := range h.runs {
		if i+1 == len(h.runs) {
			if h.off && !run.To.IsZero() {
				events = append(events, event{effect: ends, at: run.To, where: run.Host, until: h.quiet})
			}
			break
		}
		next := h.runs[i+1]
		switch {
		case next.PID == run.PID && next.Host == run.Host:
			events = append(events, event{effect: pauses, at: run.To, where: run.Host}, event{effect: resumes, at: next.From, where: next.Host})
		case next.Incoming && next.Host != run.Host:
			events = append(events, event{effect: moves, at: next.From, where: next.Host, since: run.To})
		default:
			events = append(events, event{effect: ends, at: run.To, where: run.Host, until: next.From},
				event{effect: begins, at: next.From, where: next.Host, since: run.To})
		}
	}
	return events
}

// late is how long after the end of a step its effect may show: a guest that is asked to shut down takes a moment, the clock of a
// process's start has hundredths of a second, and a busy machine tells late of what was earlier.
const late = 3 * time.Second

// explained tells whether somebody has done something that leads to an event.
func (h *history) explained(e event) bool {
	if h.did(e.effect, e.at, e.at) {
		return true
	}
	switch e.effect {
	case ends:
		return h.did(pauses, e.at, e.at) && h.did(ends, e.at, e.until)
	case moves:
		return h.did(resumes, e.at, e.at) && h.did(moves, e.since, e.at)
	case begins:
		return h.did(resumes, e.at, e.at) && h.did(begins, e.since, e.at) || h.ha && !h.stopped(e.at)
	default:
		return false
	}
}

// did tells whether something was done between two times that may have an effect.
func (h *history) did(e effect, from, to time.Time) bool {
	return slices.ContainsFunc(h.done, func(d done) bool { return d.mayHave(e, from, to) })
}

// mayHave tells whether it may have an effect that shows between two times.
func (d *done) mayHave(e effect, from, to time.Time) bool {
	return d.verb.may&e != 0 && !to.Before(d.begun.Add(-late)) && !from.After(d.ended.Add(late))
}

// stopped tells whether Berth was asked to stop the guest, and not to start it since.
func (h *history) stopped(at time.Time) bool {
	last := ""
	for _, d := range h.done {
		if d.begun.Before(at) && (strings.HasPrefix(d.verb.name, "berth stop") || d.verb.name == "berth start") {
			last = d.verb.name
		}
	}
	return strings.HasPrefix(last, "berth stop")
}

func clock(at time.Time) string { return at.Format("15:04:05.000") }
