package model

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The week of these tests begins on Sunday, 2026-11-22.
func weekAt(day time.Weekday, clock string) time.Time {
	at, err := time.Parse("15:04:05", clock)
	if err != nil {
		panic(err)
	}
	return time.Date(2026, time.November, 22+int(day), at.Hour(), at.Minute(), at.Second(), 999_999_999, time.UTC)
}

func TestWindow(t *testing.T) {
	for text, c := range map[string]struct{ open, closed []time.Time }{
		"": {open: []time.Time{weekAt(time.Sunday, "00:00:00"), weekAt(time.Wednesday, "12:00:00")}},
		"09:00-17:30": {
			open:   []time.Time{weekAt(time.Sunday, "09:00:00"), weekAt(time.Friday, "17:29:59")},
			closed: []time.Time{weekAt(time.Sunday, "08:59:59"), weekAt(time.Friday, "17:30:00")},
		},
		"22:00-06:00": {
			open:   []time.Time{weekAt(time.Monday, "22:00:00"), weekAt(time.Monday, "00:00:00"), weekAt(time.Sunday, "05:59:59")},
			closed: []time.Time{weekAt(time.Monday, "06:00:00"), weekAt(time.Monday, "21:59:59")},
		},
		"Sat,Sun 00:00-24:00": {
			open:   []time.Time{weekAt(time.Saturday, "00:00:00"), weekAt(time.Sunday, "23:59:59")},
			closed: []time.Time{weekAt(time.Friday, "23:59:59"), weekAt(time.Monday, "00:00:00")},
		},
		// It goes on past midnight into a day on which it does not begin.
		"Mon-Fri 20:00-06:00": {
			open:   []time.Time{weekAt(time.Friday, "20:00:00"), weekAt(time.Saturday, "05:59:59"), weekAt(time.Tuesday, "03:00:00")},
			closed: []time.Time{weekAt(time.Saturday, "06:00:00"), weekAt(time.Saturday, "20:00:00"), weekAt(time.Monday, "05:59:59")},
		},
		"Fri-Mon 12:00-13:00": {
			open:   []time.Time{weekAt(time.Sunday, "12:30:00"), weekAt(time.Friday, "12:00:00"), weekAt(time.Monday, "12:00:00")},
			closed: []time.Time{weekAt(time.Tuesday, "12:30:00"), weekAt(time.Thursday, "12:30:00")},
		},
		"sun 23:00-01:00": {
			open:   []time.Time{weekAt(time.Monday, "00:59:59"), weekAt(time.Sunday, "23:00:00")},
			closed: []time.Time{weekAt(time.Sunday, "00:30:00"), weekAt(time.Monday, "01:00:00")},
		},
	} {
		t.Run(text, func(t *testing.T) {
			w, err := ParseWindow(text)
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range c.open {
				if !w.Open(at) || !w.Open(at.In(time.FixedZone("", -9*3600))) {
					t.Errorf("closed on %s", at.Format("Mon 15:04:05"))
				}
			}
			for _, at := range c.closed {
				if w.Open(at) {
					t.Errorf("open on %s", at.Format("Mon 15:04:05"))
				}
			}
		})
	}
}

func TestParseWindowRefuses(t *testing.T) {
	for _, text := range []string{
		" ", "22:00", "22:00-", "-06:00", "22-06", "22:00-06:00-08:00", "24:00-06:00", "06:00-06:00", "06:60-07:00", "06:00-24:01", "+6:00-07:00",
		"6:00-07:00", " 6:00-07:00", "06:00 - 07:00", "Mon  06:00-07:00", "Mon,Mon 06:00-07:00", "Monday 06:00-07:00", "Mon- 06:00-07:00",
		"Mon-Fri,Sun 06:00-07:00", ", 06:00-07:00", "06:00-07:00 Mon", "06:0a-07:00", "06.00-07.00",
	} {
		if w, err := ParseWindow(text); err == nil {
			t.Errorf("%q is read as %q", text, w)
		} else if !strings.Contains(err.Error(), "balance_window") || !strings.Contains(err.Error(), `"22:00-06:00"`) {
			t.Errorf("%q: the error does not say what is wanted: %v", text, err)
		}
	}
}

func TestWindowsHaveOneText(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "mon-sun 01:00-02:00": "01:00-02:00", "Sun,Mon,Tue 01:00-02:00": "Sun-Tue 01:00-02:00",
		"Sun,Sat 01:00-02:00":     "Sat,Sun 01:00-02:00",
		"Fri,Wed,Mon 01:00-24:00": "Mon,Wed,Fri 01:00-24:00", "TUE-THU 20:00-06:00": "Tue-Thu 20:00-06:00",
		"Wed-Wed 01:00-02:00":         "Wed 01:00-02:00",
		"Mon,Tue,Thu,Fri 01:00-02:00": "Mon,Tue,Thu,Fri 01:00-02:00",
	} {
		if w, err := ParseWindow(text); err != nil || w.String() != want {
			t.Errorf("%q is %q (%v), want %q", text, w, err, want)
		}
	}
}

// A window is open when one of its days' spans has the moment, whatever the day before and midnight do.
func TestWindowIsOpenWhileOneOfItsSpansLasts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var names []string
		days := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID).Draw(t, "days")
		for _, day := range days {
			names = append(names, weekdays[day])
		}
		from := rapid.IntRange(0, 24*60-1).Draw(t, "from")
		to := rapid.IntRange(0, 24*60).Filter(func(to int) bool { return to != from }).Draw(t, "to")
		text := fmt.Sprintf("%s %02d:%02d-%02d:%02d", strings.Join(names, ","), from/60, from%60, to/60, to%60)
		w, err := ParseWindow(text)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseWindow(w.String()); err != nil || again != w {
			t.Fatalf("%q is written as %q, which is another one (%v)", text, w, err)
		}
		at := weekAt(0, "00:00:00").Truncate(24 * time.Hour).Add(time.Duration(rapid.Int64Range(0, int64(7*24*time.Hour)-1).Draw(t, "at")))
		length := time.Duration(to-from) * time.Minute
		if length < 0 {
			length += 24 * time.Hour
		}
		want := false
		for _, day := range days {
			for week := -7; week <= 0; week += 7 { // Saturday's span reaches into the next week
				begin := time.Date(2026, time.November, 22+week+day, from/60, from%60, 0, 0, time.UTC)
				want = want || !at.Before(begin) && at.Before(begin.Add(length))
			}
		}
		if w.Open(at) != want {
			t.Fatalf("%s on %s is %v, want %v", text, at.Format("Mon 15:04:05.999999999"), w.Open(at), want)
		}
	})
}
