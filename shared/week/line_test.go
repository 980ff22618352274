package week

import (
	"slices"
	"testing"
	"time"
)

func TestALineHasAPlaceForEachStep(t *testing.T) {
	type point struct {
		at    time.Time
		value *float64
	}
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	points := []point{
		{noon.Add(-time.Minute), new(8.0)},
		{noon.Add(-2 * time.Minute), new(0.0)},
		{noon.Add(-4 * time.Minute), new(1.0)},
		{noon.Add(-3 * time.Minute), nil},
		{noon.Add(-6 * time.Minute), new(99.0)},
		{noon, new(99.0)},
		{noon.Add(-5 * time.Minute), new(9.0)},
		{noon.Add(-5 * time.Minute), new(4.0)},
	}
	l := LineOf(points, func(p point) time.Time { return p.at }, func(p point) *float64 { return p.value },
		noon.Add(30*time.Second), time.Minute, 5)
	if want := []int{4, 1, Unknown, 0, 8}; !slices.Equal(l.Shade, want) || l.Known != 4 || l.Most != 8 ||
		!l.At.Equal(noon.Add(-time.Minute)) || !l.Begin.Equal(noon.Add(-5*time.Minute)) {
		t.Errorf("the line is %+v, want shades %v", l, want)
	}
	empty := LineOf(nil, func(p point) time.Time { return p.at }, func(p point) *float64 { return p.value }, noon, time.Hour, 24)
	if empty.Known != 0 || empty.Shade[0] != Unknown || len(empty.Figures) != 24 || !empty.Begin.Equal(noon.Add(-24*time.Hour)) {
		t.Errorf("a line of nothing is %+v", empty)
	}
}
