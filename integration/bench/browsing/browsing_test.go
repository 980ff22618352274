package browsing

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"berth/integration/simagent/crew"
)

func TestMain(m *testing.M) {
	crew.Child()
	os.Exit(m.Run())
}

// A small site gives the row. What it says is for who runs the bench.
func TestTheRowIsTaken(t *testing.T) {
	program := filepath.Join(t.TempDir(), "berth")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "berth/coordinator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
	rows, err := Measure(t.Context(), program, t.TempDir(), Size{Nodes: 3, Pages: 2, Looks: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 1 || rows[0].Goal != Goals[0] || rows[0].Measured == "" || rows[0].Against == "" || rows[0].Verdict == "" {
		t.Errorf("%+v", rows)
	}
}
