// Package week has the hours of a week as both programs count them, and how figures of all of them are shown in a small picture.
package week

import (
	"fmt"
	"math"
	"time"
)

// Hours of a week, and of a day of it.
const (
	Hours = 168
	Day   = 24
)

// Days are what people call the days, in order. A week begins on Monday, in UTC.
var Days = [Hours / Day]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}

// sinceMonday are the hours from a Monday to the first hour of Unix time, which was on a Thursday.
const sinceMonday = 3 * Day

// Of is the number of the week in which a time is, and that of its hour there, from 0 on. In weeks before 1970 there is no hour.
func Of(t time.Time) (number int64, hour int) {
	hours := t.Unix()/int64(time.Hour/time.Second) + sinceMonday
	if t.Unix() < 0 {
		return -1, 0
	}
	return hours / Hours, int(hours % Hours)
}

// Began is when an hour of a week began.
func Began(number int64, hour int) time.Time {
	return time.Unix((number*Hours+int64(hour)-sinceMonday)*int64(time.Hour/time.Second), 0).UTC()
}

// Name is what people call an hour: Tue 14:00.
func Name(hour int) string { return fmt.Sprintf("%s %02d:00", Days[hour/Day%len(Days)], hour%Day) }

// Figures are one for each hour; nil where it is not known.
type Figures [Hours]*float64

// Shades are how many steps a picture has between nothing and the most.
const Shades = 8

// Picture is how large each figure is beside the largest.
type Picture struct {
	Shade [Hours]int // 0: nothing was used, 1 to Shades: the part of the most, rounded up; Unknown
	Known int        // how many figures are known
	Most  float64
	At    int // hour of the largest figure; the first of several
}

// Shown is a picture with what it was drawn of.
type Shown struct {
	Picture
	Figures Figures
	Began   [Hours]time.Time // when each hour was; zero: its figure is not known
}

// Show puts the figure of each thing at the hour of the week in which it began, and draws them. Of several of one hour the last one counts.
func Show[T any](all []T, began func(T) time.Time, figure func(T) *float64) *Shown {
	var s Shown
	for _, one := range all {
		if is, at := figure(one), began(one); is != nil {
			_, hour := Of(at)
			s.Figures[hour], s.Began[hour] = is, at.UTC()
		}
	}
	s.Picture = Draw(&s.Figures)
	return &s
}

// When is what people call the hour of the largest figure, and its date: Tue 14:00 (2026-11-24).
func (s *Shown) When() string {
	return fmt.Sprintf("%s (%s)", Name(s.At), s.Began[s.At].Format(time.DateOnly))
}

// Unknown is the shade of an hour that is not known.
const Unknown = -1

// rounding is what a quotient may be too large by.
const rounding = 1e-9

// Draw makes the picture of figures.
func Draw(figures *Figures) Picture {
	var p Picture
	for hour, figure := range figures {
		if figure == nil {
			continue
		}
		p.Known++
		if *figure > p.Most {
			p.Most, p.At = *figure, hour
		}
	}
	for hour, figure := range figures {
		switch {
		case figure == nil:
			p.Shade[hour] = Unknown
		case *figure > 0:
			p.Shade[hour] = min(max(int(math.Ceil(*figure/p.Most*Shades-rounding)), 1), Shades)
		}
	}
	return p
}
