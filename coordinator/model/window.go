package model

import (
	"fmt"
	"strings"
	"time"
)

// Window is a time of the week, in UTC: some days, from one time of day to another. One that ends before it begins goes on
// past midnight. The zero Window is always open.
type Window struct {
	days     [7]bool // by time.Weekday: on which it begins
	from, to time.Duration
	set      bool
}

var weekdays = [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}

const windowForm = `"22:00-06:00", "Sat,Sun 00:00-24:00" or "Mon-Fri 20:00-06:00", in UTC`

// ParseWindow reads "[DAYS ]HH:MM-HH:MM": days are names of three letters with commas, or one range of them. Empty means
// always. The error is an *InvalidError.
func ParseWindow(text string) (Window, error) {
	if text == "" {
		return Window{}, nil
	}
	bad := &InvalidError{Field: SettingBalanceWindow, Value: fmt.Sprintf("%q", text), Want: windowForm}
	w := Window{set: true}
	days, times, both := strings.Cut(text, " ")
	if !both {
		times = days
		w.days = [7]bool{true, true, true, true, true, true, true}
	} else if !w.readDays(days) {
		return Window{}, bad
	}
	from, to, isRange := strings.Cut(times, "-")
	var okFrom, okTo bool
	w.from, okFrom = timeOfDay(from)
	w.to, okTo = timeOfDay(to)
	if !isRange || !okFrom || !okTo || w.from == w.to || w.from == 24*time.Hour {
		return Window{}, bad
	}
	return w, nil
}

func (w *Window) readDays(text string) bool {
	if first, last, isRange := strings.Cut(text, "-"); isRange {
		from, to := weekday(first), weekday(last)
		if from < 0 || to < 0 {
			return false
		}
		for day := from; ; day = (day + 1) % 7 {
			w.days[day] = true
			if day == to {
				return true
			}
		}
	}
	for name := range strings.SplitSeq(text, ",") {
		day := weekday(name)
		if day < 0 || w.days[day] {
			return false
		}
		w.days[day] = true
	}
	return true
}

func weekday(name string) int {
	for day, known := range weekdays {
		if strings.EqualFold(name, known) {
			return day
		}
	}
	return -1
}

// timeOfDay reads HH:MM; 24:00 is the end of the day.
func timeOfDay(text string) (time.Duration, bool) {
	if len(text) != len("00:00") || text[2] != ':' {
		return 0, false
	}
	hour, okHour := twoDigits(text[:2])
	minute, okMinute := twoDigits(text[3:])
	at := time.Duration(hour)*time.Hour + time.Duration(minute)*time.Minute
	return at, okHour && okMinute && minute < 60 && at <= 24*time.Hour
}

func twoDigits(text string) (int, bool) {
	tens, ones := int(text[0])-'0', int(text[1])-'0'
	return 10*tens + ones, tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9
}

// String is the window as ParseWindow reads it, in one form for each: days from Monday on, as a range if they are three or
// more in a row, and left out if they are all.
func (w Window) String() string {
	if !w.set {
		return ""
	}
	clock := func(at time.Duration) string { return fmt.Sprintf("%02d:%02d", at/time.Hour, at%time.Hour/time.Minute) }
	times := clock(w.from) + "-" + clock(w.to)
	if days := w.dayText(); days != "" {
		return days + " " + times
	}
	return times
}

func (w Window) dayText() string {
	var names []string
	first, inRow := time.Monday, 0 // the longest run that is all there is, if there is one
	for i := range 7 {
		day := (time.Monday + time.Weekday(i)) % 7
		if !w.days[day] {
			continue
		}
		names = append(names, weekdays[day])
		if !w.days[(day+6)%7] {
			first = day
		}
	}
	for inRow < 7 && w.days[(int(first)+inRow)%7] {
		inRow++
	}
	switch {
	case len(names) == 7:
		return ""
	case inRow == len(names) && inRow > 2:
		return weekdays[first] + "-" + weekdays[(int(first)+inRow-1)%7]
	default:
		return strings.Join(names, ",")
	}
}

// Open tells whether the moment is in the window.
func (w Window) Open(at time.Time) bool {
	if !w.set {
		return true
	}
	at = at.UTC()
	today := at.Weekday()
	clock := time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute + time.Duration(at.Second())*time.Second
	if w.from < w.to {
		return w.days[today] && clock >= w.from && clock < w.to
	}
	yesterday := (today + 6) % 7
	return w.days[today] && clock >= w.from || w.days[yesterday] && clock < w.to
}
