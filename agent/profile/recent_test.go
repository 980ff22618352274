package profile

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"
)

// lines are minutes as a test compares them.
func lines(known []Hour) string {
	var parts []string
	for _, one := range known {
		text := one.Began.Format("15:04")
		for _, figure := range one.Figures {
			if figure == nil {
				text += " ?"
			} else {
				text += fmt.Sprintf(" %g", *figure)
			}
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

// A minute is the average of its samples. One that runs still, one without a sample and one of more than an hour ago are not told.
func TestMinutesAreAverages(t *testing.T) {
	k := New()
	at := monday.Add(50 * time.Minute)
	sample := func(after time.Duration, cpu float64) {
		r := Reading{CPU: new(cpu), Memory: new(float64(1 << 30))}
		k.Add(at.Add(after), Reading{}, map[string]Reading{"u1": r})
	}
	sample(0, 9)
	sample(15*time.Second, 1)
	sample(30*time.Second, 2)
	sample(3*time.Minute, 4)
	sample(15*time.Minute, 8) // in the next hour
	sample(15*time.Minute+20*time.Second, -1)
	for after, want := range map[time.Duration]string{
		time.Minute:                     "00:50 4 1.073741824e+09 ?",
		15*time.Minute + time.Second:    "00:50 4 1.073741824e+09 ?; 00:53 4 1.073741824e+09 ?",
		16 * time.Minute:                "00:50 4 1.073741824e+09 ?; 00:53 4 1.073741824e+09 ?; 01:05 8 1.073741824e+09 ?",
		61 * time.Minute:                "00:53 4 1.073741824e+09 ?; 01:05 8 1.073741824e+09 ?",
		3 * time.Hour:                   "",
		-time.Hour:                      "",
		60*time.Minute + 59*time.Second: "00:50 4 1.073741824e+09 ?; 00:53 4 1.073741824e+09 ?; 01:05 8 1.073741824e+09 ?",
	} {
		if got := lines(k.Minutes("u1", at.Add(after))); got != want {
			t.Errorf("after %s %s is known, want %s", after, got, want)
		}
	}
	if got := lines(k.Minutes("", at.Add(16*time.Minute))) + lines(k.Minutes("u2", at)); got != "" {
		t.Errorf("%s is known of what was not measured", got)
	}
	sample(-2*time.Hour, 5) // somebody has set the clock back
	if got := lines(k.Minutes("u1", at.Add(-2*time.Hour+time.Minute))); got != "22:50 5 1.073741824e+09 ?" {
		t.Errorf("after the clock was set back %s is known", got)
	}
}

// Minutes take little memory, are of no guest that is gone, and are in no file.
func TestMinutesAreBounded(t *testing.T) {
	if size := unsafe.Sizeof(recent{}); size > 1200 {
		t.Errorf("the minutes of one guest take %d bytes", size)
	}
	k := New()
	busy := reading(0.5, 8<<30, 0.01)
	for range 2 * mostInMinute {
		k.Add(monday, busy, nil)
	}
	measure(k, monday, 60, busy, map[string]Reading{"u1": busy})
	if got := k.Minutes("", monday.Add(time.Minute)); len(got) != 1 || *got[0].Figures[CPU] != 0.5 {
		t.Errorf("of a minute with many samples %s is known", lines(got))
	}
	measure(k, monday.Add(time.Hour), 60, busy, nil)
	k.Add(monday.Add(2*time.Hour), busy, nil)
	if k.guests["u1"].recent != nil || k.node.recent == nil {
		t.Error("minutes of a guest that is gone are kept")
	}
	data, err := k.Copy("n1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Decode(data, "n1")
	if err != nil || len(again.Minutes("", monday.Add(2*time.Hour))) != 0 || len(again.Week("", monday.Add(2*time.Hour))) == 0 {
		t.Errorf("after a restart minutes are known: %v", err)
	}
}
