package week

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAWeekBeginsOnMonday(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-23T00:00:00Z": "Mon 00:00", "2026-11-22T23:59:59Z": "Sun 23:00", "2026-11-24T14:30:00Z": "Tue 14:00",
		"2026-11-24T14:30:00+02:00": "Tue 12:00", "1970-01-01T00:00:00Z": "Thu 00:00",
	} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, hour := Of(at); Name(hour) != want {
			t.Errorf("%s is in %s, want %s", text, Name(hour), want)
		}
	}
	if number, _ := Of(time.Unix(-1, 0)); number >= 0 {
		t.Errorf("a time before all weeks is in week %d", number)
	}
}

func TestAnHourIsFoundAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "at"), 0)
		number, hour := Of(at)
		if began := Began(number, hour); !began.Equal(at.Truncate(time.Hour)) || hour < 0 || hour >= Hours {
			t.Errorf("%s is hour %d of week %d, which begins %s", at.UTC(), hour, number, began)
		}
	})
}

func TestFiguresStandAtTheirHours(t *testing.T) {
	tuesday := time.Date(2026, 11, 24, 15, 0, 0, 0, time.FixedZone("", 3600))
	type told struct {
		began  time.Time
		figure *float64
	}
	shown := Show([]told{
		{tuesday.AddDate(0, 0, -7), new(9.0)}, {tuesday, new(2.0)}, {tuesday.Add(time.Hour), new(1.0)}, {tuesday.Add(2 * time.Hour), nil},
	}, func(t told) time.Time { return t.began }, func(t told) *float64 { return t.figure })
	const at = Day + 14
	if shown.Known != 2 || shown.At != at || *shown.Figures[at] != 2 {
		t.Errorf("%d are known, and the most is %g at %s", shown.Known, shown.Most, Name(shown.At))
	}
	if next := shown.Shade[at+1 : at+3]; next[0] != Shades/2 || next[1] != Unknown {
		t.Errorf("the next hours have the shades %v", next)
	}
	if when := shown.When(); when != "Tue 14:00 (2026-11-24)" {
		t.Errorf("the most was on %s", when)
	}
}

func TestAPictureShowsPartsOfTheMost(t *testing.T) {
	var figures Figures
	for hour, value := range map[int]float64{0: 0, 1: 0.01, 2: 1, 3: 1.01, 50: 8, 51: 8} {
		figures[hour] = new(value)
	}
	p := Draw(&figures)
	if p.Known != 6 || p.Most != 8 || p.At != 50 {
		t.Errorf("%d are known, the most is %g at %s", p.Known, p.Most, Name(p.At))
	}
	for hour, want := range map[int]int{0: 0, 1: 1, 2: 1, 3: 2, 4: Unknown, 50: Shades, 51: Shades} {
		if p.Shade[hour] != want {
			t.Errorf("hour %d has shade %d, want %d", hour, p.Shade[hour], want)
		}
	}
	if p := Draw(&Figures{new(0.035), new(0.04)}); p.Shade[0] != 7 || p.Shade[1] != Shades {
		t.Errorf("seven eighths of 0.04 have shade %d, and 0.04 has %d", p.Shade[0], p.Shade[1])
	}
	if nothing := Draw(new(Figures)); nothing.Known != 0 || nothing.Most != 0 || nothing.Shade[7] != Unknown {
		t.Errorf("%+v of nothing", nothing)
	}
}
