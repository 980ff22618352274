package unanswered

import (
	"testing"
	"time"
)

// Who is marked again within an hour stays out for longer each time; after an hour without a mark it begins anew.
func TestWhoIsMarkedAgainStaysOutForLonger(t *testing.T) {
	at := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	var mark Mark
	for _, minutes := range []int{0, 1, 3, 7, 15, 15, 15} {
		mark = mark.Again("op", "web", at, at, "b1")
		if want := at.Add(time.Duration(minutes) * time.Minute); !mark.Holds() || !mark.Until.Equal(want) {
			t.Errorf("mark %d holds until %s, want %s", mark.Times, mark.Until, want)
		}
		if mark = mark.Over(); mark.Holds() {
			t.Error("it holds when it is over")
		}
		at = at.Add(Memory - time.Second)
	}
	at = at.Add(Memory)
	if mark = mark.Again("op", "web", at, at, "b1"); mark.Times != 1 || !mark.Until.Equal(at) {
		t.Errorf("after an hour: %+v", mark)
	}
}
