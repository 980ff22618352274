package lab

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/shared/units"
)

func TestOverlapsAreRunsOfOneGuestInTwoProcesses(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	run := func(guest string, pid, from, to int) Run {
		r := Run{Guest: guest, PID: pid, From: at(from)}
		if to > 0 {
			r.To = at(to)
		}
		return r
	}
	for _, c := range []struct {
		name string
		runs []Run
		want []time.Duration
	}{
		{"one after the other", []Run{run("a", 1, 10, 20), run("a", 2, 20, 30)}, nil},
		{"two guests", []Run{run("a", 1, 10, 20), run("b", 2, 10, 20)}, nil},
		{"paused and resumed", []Run{run("a", 1, 10, 20), run("a", 1, 15, 30)}, nil},
		{"one second", []Run{run("a", 1, 10, 20), run("a", 2, 19, 30)}, []time.Duration{time.Second}},
		{"inside", []Run{run("a", 1, 10, 20), run("a", 2, 12, 15)}, []time.Duration{3 * time.Second}},
		{"both still running", []Run{run("a", 1, 10, 0), run("a", 2, 30, 0)}, []time.Duration{10 * time.Second}},
		{"longest first", []Run{run("a", 1, 10, 20), run("a", 2, 19, 25), run("a", 3, 22, 30)}, []time.Duration{3 * time.Second, time.Second}},
	} {
		var got []time.Duration
		for _, overlap := range overlaps(c.runs, at(40)) {
			got = append(got, overlap.Length)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// What a test plants is told apart, and hides nothing else.
func TestPlantedOverlapsAreNoFaults(t *testing.T) {
	var o Observer
	for _, name := range []string{"planted", "other"} {
		for pid := 1; pid <= 2; pid++ {
			o.runs = append(o.runs, &Run{Guest: name, Name: name, PID: pid, From: time.Unix(10, 0), To: time.Unix(20, 0)})
		}
	}
	o.Plant("planted")
	faults, planted := o.Overlaps(), o.Planted()
	if len(faults) != 1 || faults[0].First.Name != "other" || len(planted) != 1 || planted[0].First.Name != "planted" {
		t.Errorf("faults %v, planted %v", faults, planted)
	}
}

func TestATickTellsARestartAndDamage(t *testing.T) {
	first, ok := parseTick("[    3.5] noise tick 7 uptime 12.50 boot 1a2b3c4d memory ok hears yes\r\n")
	if want := (Tick{7, 12500 * time.Millisecond, "1a2b3c4d", true, true}); !ok || first != want {
		t.Fatalf("got %+v, %v, want %+v", first, ok, want)
	}
	if _, ok := parseTick("tick 7 upt"); ok {
		t.Error("half a line was taken for a tick")
	}
	for line, want := range map[string]string{
		"tick 9 uptime 14.60 boot 1a2b3c4d memory ok hears yes":      "",
		"tick 9 uptime 14.60 boot ffffffff memory ok hears yes":      "booted again",
		"tick 3 uptime 14.60 boot 1a2b3c4d memory ok hears yes":      "back in time",
		"tick 9 uptime 2.00 boot 1a2b3c4d memory ok hears yes":       "back in time",
		"tick 9 uptime 14.60 boot 1a2b3c4d memory damaged hears yes": "damaged",
	} {
		later, _ := parseTick(line)
		err := later.After(first)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, want %q", line, err, want)
		}
	}
}

func TestLoadAveragesFollowTheCPUsInUse(t *testing.T) {
	var average [3]float64
	for range 60 {
		average = decay(average, 2, time.Second)
	}
	// After one time constant the distance to the goal has shrunk to 1/e.
	if got := average[0]; got < 1.26 || got > 1.27 {
		t.Errorf("one-minute load after a minute of two busy CPUs is %v, want 2(1-1/e)", got)
	}
	if !(average[0] > average[1] && average[1] > average[2]) {
		t.Errorf("longer averages must follow slower: %v", average)
	}
	if got := decay(average, -1, time.Second)[0]; got > average[0] || got < 0 {
		t.Errorf("processes that have ended make the load %v", got)
	}
}

func TestShapedFilesKeepTheirLength(t *testing.T) {
	small, large := meminfo("", units.GiB, 0), meminfo("", 4*units.TiB, 3*units.TiB)
	if len(small) != len(large) || !strings.HasPrefix(large, "MemTotal:        4294967296 kB\nMemFree:         3221225472 kB\n") {
		t.Errorf("meminfo:\n%s%s", small, large)
	}
	a, b := loadavg([3]float64{}, 0), loadavg([3]float64{1, 2, 3}, 1000)
	if len(a) != len(b) || !strings.HasPrefix(b, "1001.00 1002.00 1003.00 1/") {
		t.Errorf("loadavg: %q %q", a, b)
	}
}

func TestStatFieldsAreCountedBehindTheName(t *testing.T) {
	line := []byte("4711 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 140 150 16 17 18 19 20 21 220 230 240 25")
	for number, want := range map[int]int64{14: 140, 15: 150, 22: 220, 24: 240, 99: 0} {
		if got := statField(line, number); got != want {
			t.Errorf("field %d is %d, want %d", number, got, want)
		}
	}
}
