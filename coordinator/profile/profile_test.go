package profile

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/shared/units"
	"berth/shared/week"
)

var monday = time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC)

func hour(node string, after time.Duration, cpu float64) Hour {
	return Hour{Began: monday.Add(after), Node: node, CPU: new(cpu)}
}

func said(hours []Hour) string {
	var parts []string
	for _, one := range hours {
		parts = append(parts, fmt.Sprintf("%s %s %g", one.Began.Format("01-02 15h"), one.Node, *one.CPU))
	}
	return strings.Join(parts, "; ")
}

// A VM that has moved has each hour from the node that measured it last.
func TestTheNewestOfEachHourCounts(t *testing.T) {
	const weeks = 7 * 24 * time.Hour
	told := []Hour{
		hour("node2", 2*time.Hour, 2), hour("node1", 0, 1), hour("node1", weeks+2*time.Hour, 3), hour("node2", weeks, 4), hour("node1", weeks, 5),
	}
	for range 2 {
		if got, want := said(Join(told)), "11-30 00h node1 5; 11-30 02h node1 3"; got != want {
			t.Errorf("joined to %s, want %s", got, want)
		}
		for i, k := 0, len(told)-1; i < k; i, k = i+1, k-1 {
			told[i], told[k] = told[k], told[i] // in which order nodes answer decides nothing
		}
	}
}

// An agent may tell anything. What is shown is a figure of an hour, or nothing.
func TestWhatIsNoHourIsLeftOut(t *testing.T) {
	told := []Hour{
		{Began: monday.Add(time.Minute), CPU: new(1.0)},
		{Began: monday},
		{Began: time.Unix(-3600, 0), CPU: new(1.0)},
		hour("node1", time.Hour, math.NaN()), hour("node1", time.Hour, math.Inf(1)), hour("node1", time.Hour, -1),
		{Began: monday, Memory: new(units.Bytes(-1))},
	}
	if got := Join(told); len(got) != 0 {
		t.Errorf("joined to %+v", got)
	}
	mixed := Join([]Hour{{Began: monday, CPU: new(-1.0), Memory: new(units.Bytes(1)), Delay: new(0.5)}})
	if len(mixed) != 1 || mixed[0].CPU != nil || *mixed[0].Memory != 1 || *mixed[0].Delay != 0.5 {
		t.Errorf("joined to %+v", mixed)
	}
	rapid.Check(t, func(t *rapid.T) {
		var many []Hour
		for range rapid.IntRange(0, 500).Draw(t, "hours") {
			after := time.Duration(rapid.IntRange(0, 700).Draw(t, "at")) * time.Hour
			many = append(many, hour(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "node"), after, 1))
		}
		joined := Join(many)
		for i := range joined {
			if _, at := week.Of(joined[i].Began); i > 0 {
				if _, before := week.Of(joined[i-1].Began); before >= at {
					t.Errorf("%s comes before %s", week.Name(before), week.Name(at))
				}
			}
		}
	})
}

func TestTheLastNodesAreAsked(t *testing.T) {
	var stays []Stay
	for i, node := range []string{"n1", "n2", "n3", "n1", "", "n4"} {
		stays = append(stays, Stay{Node: node, At: monday.Add(time.Duration(i) * time.Hour)})
	}
	if got := strings.Join(Nodes(stays, 3), " "); got != "n4 n1 n3" {
		t.Errorf("%s are asked", got)
	}
}

// Of the last minutes each counts once and comes in its order, whichever node has told it; what is no minute is left out.
func TestMinutesAreJoined(t *testing.T) {
	told := []Hour{
		hour("node2", 2*time.Minute, 3), hour("node1", 0, 1), hour("node2", time.Minute, 9), hour("node1", time.Minute, 2),
		hour("node1", time.Second, 7), hour("node1", 3*time.Minute, math.NaN()),
		{Began: monday.Add(4 * time.Minute)},
		{Began: time.Unix(-60, 0), CPU: new(1.0)},
	}
	var parts []string
	for _, one := range JoinMinutes(told) {
		parts = append(parts, fmt.Sprintf("%s %s %g", one.Began.Format("15:04"), one.Node, *one.CPU))
	}
	if got, want := strings.Join(parts, "; "), "00:00 node1 1; 00:01 node1 2; 00:02 node2 3"; got != want {
		t.Errorf("joined to %s, want %s", got, want)
	}
	var many []Hour
	for i := range 500 {
		many = append(many, hour("node1", time.Duration(i)*time.Minute, 1))
	}
	if joined := JoinMinutes(many); len(joined) != mostMinutes || !joined[mostMinutes-1].Began.Equal(many[499].Began) {
		t.Errorf("of 500 minutes %d are told", len(joined))
	}
}
