package history

import (
	"testing"

	"berth/coordinator/model"
)

// Read in small bites, everything comes once and in order; a hole stops the reader and is named.
func TestAfterReadsAllOnceAndStopsAtAHole(t *testing.T) {
	t.Parallel()
	s, _, err := Open(t.TempDir(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	event := func(index uint64, sequence uint32) Row {
		return Row{Place: Place{index, sequence}, Event: &model.Event{Index: index, At: begun, Kind: "test"}}
	}
	want := []Row{event(3, 0), event(3, 1), event(3, 2), event(7, 0), event(9, 0), event(9, 1)}
	for _, err := range []error{s.Add(0, 4, want[:3]), s.Add(4, 6, nil), s.Add(6, 10, want[3:]), s.Add(20, 22, []Row{event(21, 0)})} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for limit := 1; limit < 8; limit++ {
		var got []Row
		var at Place
		for {
			part, err := s.After(at, limit)
			if err != nil || len(part.Rows) > limit {
				t.Fatal(len(part.Rows), err)
			}
			got = append(got, part.Rows...)
			if part.Next == at {
				if part.Lacks != 20 || part.Gone {
					t.Fatalf("limit %d: lacks %d, gone %t", limit, part.Lacks, part.Gone)
				}
				break
			}
			at = part.Next
		}
		if len(got) != len(want) {
			t.Fatalf("limit %d: %d rows, want %d", limit, len(got), len(want))
		}
		for i := range want {
			if got[i].Place != want[i].Place {
				t.Fatalf("limit %d: row %d is %v, want %v", limit, i, got[i].Place, want[i].Place)
			}
		}
	}
	for i := range want { // from the place before each row on, this row is the first
		part, err := s.After(want[i].Previous(), 1)
		if err != nil || len(part.Rows) != 1 || part.Rows[0].Place != want[i].Place {
			t.Fatalf("before %v: %v, %v", want[i].Place, part.Rows, err)
		}
	}
	if part, err := s.After(EndOf(20), 5); err != nil || len(part.Rows) != 1 || part.Next != EndOf(22) {
		t.Fatalf("after the hole: %+v, %v", part, err)
	}
	s.GiveUp(20)
	if part, err := s.After(EndOf(22), 5); err != nil || len(part.Rows) != 0 || part.Next != EndOf(22) || part.Lacks != 0 {
		t.Fatalf("at the end: %+v, %v", part, err)
	}
}
