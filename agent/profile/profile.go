// Package profile makes weekly profiles of samples: for each of the 168 hours of a week, the 95th percentile of what was used in it. It is
// pure, and its memory is bounded: what is kept of an hour that runs is a histogram, and of one that is over a small number.
//
// An hour of which too little was measured is not known. What is known of an hour stands until the same hour of a later week is known, and
// is dropped after five weeks. Nothing is blended: each figure is of one hour that was, and tells of which.
package profile

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"berth/shared/week"
)

// Figure is what is measured.
type Figure int

// The figures.
const (
	CPU    Figure = iota // of a guest: CPUs, 1 is a whole one; of the node: the busy part of its CPUs, 0 to 1
	Memory               // bytes: of a guest what it really has, of the node what is neither free nor could be at once
	Delay                // the part of the time in which a vCPU waited for a CPU, 0 to 1
	figures
)

// Reading is one sample of one subject; nil is not known.
type Reading [figures]*float64

// Bounds.
const (
	enough      = 45   // minutes of an hour that have a sample; with fewer it is not known
	tooOld      = 5    // weeks after which an hour is not known any more
	mostGone    = 128  // guests that are kept although they have no sample any more
	mostGuests  = 1024 // guests in all: one more has no profile
	mostInBin   = 1<<16 - 1
	percentile  = 95
	hoursForAge = tooOld * week.Hours
)

// Keeper keeps the profiles of a node and its guests. Not safe for concurrent use.
type Keeper struct {
	hour   int64 // that runs, in hours of Unix time
	node   *subject
	guests map[string]*subject // by UUID
}

// New makes a keeper that knows nothing.
func New() *Keeper { return &Keeper{node: &subject{}, guests: map[string]*subject{}} }

// subject is the node or a guest.
type subject struct {
	weeks   [week.Hours]uint16          // in which the hour was measured; 0: it was not
	codes   [week.Hours][figures]uint16 // 0: not known; else one more than the bin
	running *hour                       // nil: there was no sample of it in this hour
	recent  *recent                     // nil: there was none in the last two hours
	last    int64                       // hour of the last sample
}

// hour is what is known of the hour that runs.
type hour struct {
	minutes [figures]uint64 // one bit for each that has a sample
	bins    [figures][bins]uint16
}

// Add takes a sample in. It tells whether another hour has begun with it: what is known has changed, and is worth being saved.
func (k *Keeper) Add(at time.Time, node Reading, guests map[string]Reading) (turned bool) {
	number, _ := week.Of(at)
	if number < 1 {
		return false // a clock that was never set
	}
	if now := at.Unix() / secondsOfHour; now != k.hour {
		turned = k.hour != 0
		k.turn(now)
	}
	minute := at.Unix() / 60
	k.node.add(k.hour, minute, node)
	for id, reading := range guests {
		one := k.guests[id]
		if one == nil {
			if len(k.guests) >= mostGuests {
				continue
			}
			one = &subject{}
			k.guests[id] = one
		}
		one.add(k.hour, minute, reading)
	}
	return turned
}

const secondsOfHour = int64(time.Hour / time.Second)

// turn ends the hour that ran, and begins another. It may be an earlier one: somebody has set the clock.
func (k *Keeper) turn(now int64) {
	k.node.end(k.hour)
	var gone []string
	for id, one := range k.guests {
		one.end(k.hour)
		if one.last != k.hour {
			one.recent = nil
		}
		switch {
		case one.last == k.hour:
		case now-one.last > hoursForAge:
			delete(k.guests, id)
		default:
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, func(a, b string) int {
		return cmp.Or(cmp.Compare(k.guests[b].last, k.guests[a].last), cmp.Compare(a, b))
	})
	for _, id := range gone[min(len(gone), mostGone):] {
		delete(k.guests, id)
	}
	k.hour = now
}

func (s *subject) add(now, minute int64, reading Reading) {
	if s.running == nil {
		s.running = &hour{}
	}
	if s.recent == nil {
		s.recent = &recent{}
	}
	s.recent.add(minute, reading)
	s.last = now
	for f, value := range reading {
		if bin, valid := binOf(Figure(f), value); valid {
			s.running.minutes[f] |= 1 << (minute % 60)
			s.running.bins[f][bin] = min(s.running.bins[f][bin], mostInBin-1) + 1
		}
	}
}

// end keeps what an hour has come to.
func (s *subject) end(number int64) {
	if s.running == nil {
		return
	}
	var codes [figures]uint16
	for f := range codes {
		if bits.OnesCount64(s.running.minutes[f]) >= enough {
			codes[f] = uint16(rank(&s.running.bins[f])) + 1
		}
	}
	s.running = nil
	if codes == [figures]uint16{} {
		return
	}
	in, at := week.Of(time.Unix(number*secondsOfHour, 0))
	s.weeks[at], s.codes[at] = uint16(in), codes
}

// Hour is what is known of an hour of the week, or of a minute.
type Hour struct {
	Began   time.Time
	Figures Reading // 95th percentiles; of a minute averages
}

// Week is what is known of a guest, in the order of the hours of a week; of the node without a guest.
func (k *Keeper) Week(guest string, now time.Time) []Hour {
	one := k.node
	if guest != "" {
		one = k.guests[guest]
	}
	if one == nil {
		return nil
	}
	var known []Hour
	for at, in := range one.weeks {
		began := week.Began(int64(in), at)
		if age := now.Sub(began); in == 0 || age < 0 || age > tooOld*week.Hours*time.Hour {
			continue
		}
		hour := Hour{Began: began}
		for f, code := range one.codes[at] {
			if code > 0 {
				hour.Figures[f] = new(valueOf(Figure(f), int(code)-1))
			}
		}
		known = append(known, hour)
	}
	return known
}
