package onlookers

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A small site gives all rows. What they say is for who runs the bench.
func TestEachRowIsTaken(t *testing.T) {
	program := filepath.Join(t.TempDir(), "berth")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "berth/coordinator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
	small := Size{Nodes: 3, VMs: 6, Consoles: 4, Pages: 2, Watched: time.Second, Moves: 3}
	rows, err := Measure(t.Context(), program, t.TempDir(), small)
	if err != nil {
		t.Fatal(err)
	}
	written, err := History(t.Context(), t.TempDir(), 3)
	if err != nil {
		t.Fatal(err)
	}
	var goals []string
	for _, row := range append(rows, written...) {
		goals = append(goals, row.Goal)
		if row.Measured == "" || row.Wanted == "" || row.Verdict == "" {
			t.Errorf("%+v", row)
		}
	}
	if want := []string{"W1", "W2", "W3", "H2", "H1"}; !slices.Equal(goals, want) {
		t.Errorf("rows %v, want %v", goals, want)
	}
}
