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

// A small site gives the rows. What they say is for who runs the bench.
func TestTheRowsAreTaken(t *testing.T) {
	program := filepath.Join(t.TempDir(), "berth")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "berth/coordinator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build berth: %v\n%s", err, out)
	}
	rows, err := Measure(t.Context(), program, t.TempDir(), Size{Nodes: 3, VMs: 6, Pages: 2, Leaders: 1, Looks: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 {
		t.Fatalf("%+v", rows)
	}
	for _, row := range rows {
		if row.Goal != Goals[0] || row.Measured == "" || row.Against == "" || row.Verdict == "" {
			t.Errorf("%+v", row)
		}
	}
}
