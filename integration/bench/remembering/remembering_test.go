package remembering

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Child()
	os.Exit(m.Run())
}

// Few guests give the row. What it says is for who runs the bench.
func TestTheRowIsTaken(t *testing.T) {
	rows, err := Measure(t.Context(), t.TempDir(), Size{Guests: 2, Hours: 2, Rounds: 2})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Goal != Goals[0] || rows[0].Measured == "" || rows[0].Against == "" || rows[0].Verdict == "" {
		t.Errorf("%+v", rows)
	}
}
