package profile

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"berth/shared/week"
)

// monday is when a week begins.
var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func reading(cpu, memory, delay float64) Reading { return Reading{new(cpu), new(memory), new(delay)} }

// measure takes a sample each minute, for so many minutes of an hour.
func measure(k *Keeper, hour time.Time, minutes int, node Reading, guests map[string]Reading) {
	for i := range minutes {
		k.Add(hour.Add(time.Duration(i)*time.Minute), node, guests)
	}
}

// A profile says of each figure what the sorted samples say, off by no more than the error that is promised.
func TestPercentilesAreThoseOfTheSortedSamples(t *testing.T) {
	most := [figures]float64{CPU: 512, Memory: 16 << 40, Delay: 1}
	rapid.Check(t, func(t *rapid.T) {
		k, samples := New(), rapid.IntRange(enough, 400).Draw(t, "samples")
		var values [figures][]float64
		for i := range samples {
			var r Reading
			for f := range figures {
				// As many small ones as large ones: figures of guests are spread over many sizes.
				value := units[f] / 2 * math.Pow(most[f]/units[f]*2, rapid.Float64Range(0, 1).Draw(t, "value"))
				r[f], values[f] = new(value), append(values[f], value)
			}
			k.Add(monday.Add(time.Duration(i)*time.Hour/time.Duration(samples)), r, nil)
		}
		k.Add(monday.Add(time.Hour), Reading{}, nil)
		known := k.Week("", monday.Add(2*time.Hour))
		if len(known) != 1 || !known[0].Began.Equal(monday) {
			t.Fatalf("%v is known", known)
		}
		for f := range figures {
			slices.Sort(values[f])
			want := values[f][(len(values[f])*percentile+99)/100-1]
			got := *known[0].Figures[f]
			if got == 0 && want <= units[f] {
				continue
			}
			if math.Abs(got-want) > want*(MaxError+1e-9) {
				t.Errorf("figure %d is %g, want %g within %.1f %%", f, got, want, 100*MaxError)
			}
		}
	})
}

func TestAnHourWithFewSamplesIsNotKnown(t *testing.T) {
	k := New()
	busy := reading(0.5, 8<<30, 0.01)
	measure(k, monday, enough-1, busy, map[string]Reading{"u1": busy})
	for range 500 { // more in the same minutes do not help
		k.Add(monday.Add(10*time.Minute), busy, nil)
	}
	measure(k, monday.Add(time.Hour), enough, Reading{CPU: new(0.5)}, map[string]Reading{"u1": busy})
	if known := k.Week("", monday.Add(time.Hour)); len(known) != 0 {
		t.Errorf("%v is known of an hour of which %d minutes were measured", known, enough-1)
	}
	if known := k.Week("u1", monday.Add(2*time.Hour)); len(known) != 0 {
		t.Errorf("%v is known of an hour that is not over", known)
	}
	if !k.Add(monday.Add(2*time.Hour), busy, nil) {
		t.Error("another hour has begun, and it was not told")
	}
	if k.Add(monday.Add(2*time.Hour+time.Second), busy, nil) {
		t.Error("the same hour has begun twice")
	}
	known := k.Week("", monday.Add(2*time.Hour))
	if len(known) != 1 || known[0].Figures[CPU] == nil || known[0].Figures[Memory] != nil || known[0].Figures[Delay] != nil {
		t.Errorf("%v is known, want the CPU of one hour", known)
	}
	if known := k.Week("u1", monday.Add(2*time.Hour)); len(known) != 1 || known[0].Figures[Delay] == nil {
		t.Errorf("%v is known of the guest", known)
	}
	if known := k.Week("u2", monday); known != nil {
		t.Errorf("%v is known of a guest that was never here", known)
	}
}

// The same hour of a later week takes the place of an earlier one, and what is old is dropped.
func TestALaterWeekReplacesAnEarlierOne(t *testing.T) {
	k := New()
	in := func(weeks int) time.Time { return monday.AddDate(0, 0, 7*weeks) }
	cpu := func(at time.Time) string {
		said := ""
		for _, hour := range k.Week("", at) {
			said += fmt.Sprintf("%s %.1f; ", hour.Began.Format("01-02 15h"), *hour.Figures[CPU])
		}
		return said
	}
	for i, part := range []float64{0.8, 0.2} {
		measure(k, in(i), 60, reading(part, 0, 0), nil)
		measure(k, in(i).Add(time.Hour), 60-30*i, reading(part, 0, 0), nil) // the second one is too short
	}
	k.Add(in(1).Add(2*time.Hour), Reading{}, nil)
	if got, want := cpu(in(2)), "11-30 00h 0.2; 11-23 01h 0.8; "; got != want {
		t.Errorf("known is %s want %s", got, want)
	}
	if got, want := cpu(in(tooOld).Add(2*time.Hour)), "11-30 00h 0.2; "; got != want {
		t.Errorf("after %d weeks known is %s want %s", tooOld, got, want)
	}
	if got := cpu(monday.Add(-time.Hour)); got != "" {
		t.Errorf("known is %s of what is to come", got)
	}
}

// What is not a figure does not count, and neither does a clock that was never set.
func TestNonsenseIsNotMeasured(t *testing.T) {
	k := New()
	measure(k, time.Unix(0, 0), 60, reading(1, 1, 1), nil)
	measure(k, monday, 60, reading(math.NaN(), math.Inf(1), -1), nil)
	k.Add(monday.Add(time.Hour), Reading{}, nil)
	if known := k.Week("", monday.Add(time.Hour)); len(known) != 0 {
		t.Errorf("%v is known", known)
	}
	measure(k, monday.Add(time.Hour), 60, reading(1e300, 1e300, 1e300), nil)
	k.Add(monday.Add(2*time.Hour), Reading{}, nil)
	if known := k.Week("", monday.Add(2*time.Hour)); len(known) != 1 || *known[0].Figures[CPU] < 5000 {
		t.Errorf("%v is known of what is beyond all", known)
	}
}

// However many guests come and go, what is kept is bounded. Those that left last are kept.
func TestMemoryIsBounded(t *testing.T) {
	const guests = 200
	perGuest := unsafe.Sizeof(subject{}) + unsafe.Sizeof(hour{})
	if size := (guests+1)*perGuest + mostGone*unsafe.Sizeof(subject{}); size > 1<<20 {
		t.Errorf("%d guests and those that left take %d bytes", guests, size)
	}
	k := New()
	at := func(hour int) time.Time { return monday.Add(time.Duration(hour) * time.Hour) }
	for i := range 2 * mostGone { // one leaves each hour
		measure(k, at(i), 60, Reading{}, map[string]Reading{fmt.Sprint("u", i): reading(1, 1, 1)})
	}
	// Beside them there are the one of this hour, and the one of the hour before.
	last, before := fmt.Sprint("u", mostGone-2), fmt.Sprint("u", mostGone-3)
	if len(k.guests) != mostGone+2 || k.guests[last] == nil || k.guests[before] != nil {
		t.Errorf("%d guests are kept; %s: %t, %s: %t", len(k.guests), last, k.guests[last] != nil, before, k.guests[before] != nil)
	}
	many := map[string]Reading{}
	for i := range 2 * mostGuests {
		many[fmt.Sprint("v", i)] = reading(1, 1, 1)
	}
	k.Add(at(2*mostGone), Reading{}, many)
	if len(k.guests) > mostGuests {
		t.Errorf("%d guests are kept", len(k.guests))
	}
	k.Add(at(2*mostGone+1), Reading{}, nil)
	k.Add(at(2*mostGone+2), Reading{}, nil)
	if len(k.guests) > mostGone {
		t.Errorf("%d guests are kept that have left", len(k.guests))
	}
	k.Add(at(2*mostGone+3+hoursForAge), Reading{}, nil)
	if len(k.guests) > 0 {
		t.Errorf("%d guests are kept that left long ago", len(k.guests))
	}
}

// A keeper that is read from its file goes on as if nothing had been, in the middle of an hour too.
func TestAFileGoesOn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		whole, halves := New(), New()
		cut := rapid.IntRange(0, 299).Draw(t, "cut")
		for i := range 300 {
			at := monday.Add(time.Duration(i) * time.Minute)
			value := rapid.Float64Range(0, 64).Draw(t, "cpu")
			r := Reading{new(value), new(value * (1 << 30)), nil}
			whole.Add(at, r, map[string]Reading{"u1": r})
			halves.Add(at, r, map[string]Reading{"u1": r})
			if i == cut {
				data, err := halves.Copy("n1").Encode()
				if err == nil {
					halves, err = Decode(data, "n1")
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, id := range []string{"", "u1"} {
			if diff := cmp.Diff(whole.Week(id, monday.Add(300*time.Minute)), halves.Week(id, monday.Add(300*time.Minute))); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestOtherFilesAreNoProfiles(t *testing.T) {
	k := New()
	measure(k, monday, 60, reading(1, 1<<30, 0.5), map[string]Reading{"u1": reading(1, 1<<30, 0.5)})
	good, err := k.Copy("n1").Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(good, "n2"); !errors.Is(err, ErrNoProfiles) {
		t.Errorf("those of another node: %v", err)
	}
	for end := range good {
		if _, err := Decode(good[:end], "n1"); !errors.Is(err, ErrNoProfiles) {
			t.Fatalf("the first %d bytes: %v", end, err)
		}
	}
	for at := 10; at < len(good); at++ { // what is before is not checked by the format, and of no account
		damaged := bytes.Clone(good)
		damaged[at] ^= 0x10
		if _, err := Decode(damaged, "n1"); !errors.Is(err, ErrNoProfiles) {
			t.Fatalf("byte %d is another one: %v", at, err)
		}
	}
	for what, spoil := range map[string]func(*Kept){
		"another format":    func(k *Kept) { k.Format = "2" },
		"too few hours":     func(k *Kept) { k.Node.Weeks = k.Node.Weeks[1:] },
		"too few figures":   func(k *Kept) { k.Node.Codes = k.Node.Codes[1:] },
		"a short figure":    func(k *Kept) { k.Node.Codes[2] = k.Node.Codes[2][1:] },
		"no such figure":    func(k *Kept) { k.Node.Codes[2][5] = bins + 1 },
		"half an hour":      func(k *Kept) { k.Node.Running.Bins = k.Node.Running.Bins[1:] },
		"no such bin":       func(k *Kept) { k.Node.Running.Bins[0][bins] = 1 },
		"a bin below all":   func(k *Kept) { k.Node.Running.Bins[0][-1] = 1 },
		"a guest like that": func(k *Kept) { k.Guests["u1"] = keptSubject{Weeks: make([]uint16, week.Hours)} },
		"too many guests": func(k *Kept) {
			for i := range mostGuests {
				k.Guests[fmt.Sprint(i)] = k.Node
			}
		},
	} {
		kept := k.Copy("n1")
		spoil(kept)
		data, err := kept.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Decode(data, "n1"); !errors.Is(err, ErrNoProfiles) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var endless bytes.Buffer // it is not read to its end
	packed := gzip.NewWriter(&endless)
	_ = json.NewEncoder(packed).Encode(k.Copy("n1"))
	_, _ = packed.Write(bytes.Repeat([]byte(" "), mostText))
	_ = packed.Close()
	if _, err := Decode(endless.Bytes(), "n1"); !errors.Is(err, ErrNoProfiles) {
		t.Errorf("a file without an end: %v", err)
	}
}

func BenchmarkAdd(b *testing.B) {
	k, guests := New(), map[string]Reading{}
	for i := range 200 {
		guests[fmt.Sprint("u", i)] = reading(1, 1<<30, 0.01)
	}
	for i := range b.N {
		k.Add(monday.Add(time.Duration(i)*2*time.Second), reading(0.5, 1<<36, 0.01), guests)
	}
}

func BenchmarkEncode(b *testing.B) {
	k, guests := New(), map[string]Reading{}
	for hour := range week.Hours {
		for i := range 200 {
			guests[fmt.Sprint("u", i)] = reading(float64(i*hour%64), float64(i*hour%97)*(1<<30), 0.01)
		}
		measure(k, monday.Add(time.Duration(hour)*time.Hour), 60, reading(0.5, 1<<36, 0.01), guests)
	}
	b.ResetTimer()
	for range b.N {
		data, err := k.Copy("n1").Encode()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(len(data)), "bytes")
	}
}
