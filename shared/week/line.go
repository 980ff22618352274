package week

import (
	"math"
	"slices"
	"time"
)

// Line is one figure over time, a value for each step.
type Line struct {
	Begin   time.Time // of the first step
	Step    time.Duration
	Figures []*float64 // nil where it is not known
	Shade   []int      // as in a Picture
	Known   int
	Most    float64
	At      time.Time // of the largest; the first of several
}

// LineOf puts the figure of each thing at the step in which it began: so many steps, of which the last one has ended at a time. Of several
// of one step the last one counts.
func LineOf[T any](all []T, began func(T) time.Time, figure func(T) *float64, until time.Time, step time.Duration, steps int) *Line {
	begin := until.UTC().Truncate(step).Add(-time.Duration(steps) * step)
	l := &Line{Begin: begin, Step: step, Figures: make([]*float64, steps), Shade: slices.Repeat([]int{Unknown}, steps), At: begin}
	for _, one := range all {
		since := began(one).Sub(begin)
		if is := figure(one); is != nil && since >= 0 && since < time.Duration(steps)*step {
			l.Figures[since/step] = is
		}
	}
	for at, figure := range l.Figures {
		if figure == nil {
			continue
		}
		l.Known++
		if *figure > l.Most {
			l.Most, l.At = *figure, begin.Add(time.Duration(at)*step)
		}
	}
	for at, figure := range l.Figures {
		switch {
		case figure == nil:
		case *figure > 0:
			l.Shade[at] = min(max(int(math.Ceil(*figure/l.Most*Shades-rounding)), 1), Shades)
		default:
			l.Shade[at] = 0
		}
	}
	return l
}
