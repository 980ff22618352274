package asking

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/gate"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// A small site gives all rows. What they say is for who runs the bench.
func TestEachRowIsTaken(t *testing.T) {
	rows, err := Measure(t.Context(), t.TempDir(), Size{Recorded: 20, Starts: 4, Calls: 20, Turns: 2, Windows: 1})
	if err != nil {
		t.Fatal(err)
	}
	var goals []string
	for _, row := range rows {
		if row.Measured == "" || row.Goal != "" && (row.Wanted == "" || row.Verdict == "") {
			t.Errorf("%+v", row)
		}
		if row.Goal != "" {
			goals = append(goals, row.Goal)
		}
	}
	if !slices.Equal(goals, Goals) {
		t.Errorf("rows of %v, want %v", goals, Goals)
	}
}

// The door that is measured asks: whoever is not on record is refused there, and let in by the other.
func TestOneDoorAsksAndTheOtherDoesNot(t *testing.T) {
	s, err := raise(t.Context(), t.TempDir(), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	}()
	if s.operator, err = s.certify(pki.RoleOperator, "stranger"); err != nil {
		t.Fatal(err)
	}
	for _, asks := range []bool{true, false} {
		records := s.store
		if !asks {
			records = state.NewStore()
		}
		client, err := s.door(t.Context(), gate.NewKeeper(records, time.Now))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.start(t.Context(), client, fmt.Sprint("vm-", asks), true)
		if refused := connect.CodeOf(err) == connect.CodePermissionDenied; err != nil && !refused || refused != asks {
			t.Errorf("the door that asks (%v) answers %v", asks, err)
		}
	}
}
