package state

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/placement"
)

// at stamps so many commands, each some time after the one before.
func (m *member) at(from time.Time, count int, every time.Duration) {
	m.t.Helper()
	for i := range count {
		m.stored(Command{At: from.Add(time.Duration(i) * every)})
	}
}

func TestALeaderThatIsOnceIn2099MakesNothingOld(t *testing.T) {
	m := newMember(t)
	m.stored(RaiseLevel(ClockLevel))
	m.stored(Command{At: noon, Decisions: []placement.Decision{decision("before")}})
	wrong := noon.AddDate(73, 0, 0)
	m.at(wrong, clockProof-1, time.Second)
	for i := range 10 {
		m.stored(Command{At: noon.Add(time.Duration(i) * time.Second), Decisions: []placement.Decision{decision(fmt.Sprint("after-", i))}})
	}
	if got := len(m.store.Snapshot().Decisions(0)); got != 11 {
		t.Errorf("%d decisions are left of 11", got)
	}
	if got := m.store.Snapshot().applied.Clock; got.After(noon.Add(time.Minute)) {
		t.Errorf("the clock is at %s", got)
	}
}

// What an earlier release has left ends by itself.
func TestAClockThatAHundredStampsContradictIsSetBack(t *testing.T) {
	m := newMember(t)
	m.stored(Command{At: noon.AddDate(73, 0, 0)})
	level := RaiseLevel(ClockLevel)
	level.At = noon
	m.stored(level)
	m.at(noon, clockProof-1, time.Second)
	if got := m.store.Snapshot().applied.Clock; got.Year() != noon.Year()+73 {
		t.Fatalf("too few have contradicted it, and the clock is at %s", got)
	}
	m.at(noon.Add(time.Hour), 1, 0)
	if got := m.store.Snapshot().applied.Clock; !got.Equal(noon.Add(time.Hour)) {
		t.Errorf("the clock is at %s", got)
	}
}

// A quiet estate has a command now and then.
func TestTheClockFollowsAQuietEstate(t *testing.T) {
	m := newMember(t)
	m.stored(RaiseLevel(ClockLevel))
	m.at(noon.Add(time.Hour), clockProof, time.Hour)
	if got, want := m.store.Snapshot().applied.Clock, noon.Add(clockProof*time.Hour); !got.Equal(want) {
		t.Errorf("the clock is at %s, want %s", got, want)
	}
	m.at(noon.Add(clockProof*time.Hour-time.Minute), 1, 0)
	if got := m.store.Snapshot().applied.Clock; !got.Equal(noon.Add(clockProof * time.Hour)) {
		t.Errorf("a leader that is a minute behind has set it to %s", got)
	}
}

// Two leaders that disagree prove nothing, whatever their number of commands.
func TestStampsOnBothSidesOfTheClockProveNothing(t *testing.T) {
	m := newMember(t)
	m.stored(RaiseLevel(ClockLevel))
	for range clockProof {
		m.at(noon.AddDate(-1, 0, 0), 1, 0)
		m.at(noon.AddDate(1, 0, 0), 1, 0)
	}
	if got := m.store.Snapshot().applied.Clock; got.Sub(noon).Abs() > time.Minute {
		t.Errorf("the clock is at %s", got)
	}
}
