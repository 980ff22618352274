package operation

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var shown = []model.DomainState{
	model.DomainRunning, model.DomainPaused, model.DomainPausedMigration, model.DomainShutoff,
	model.DomainAbsent, model.DomainCrashed, model.DomainUnknown,
}

// The whole verdict table is a text, to be read together with the short one in FAULTS.md. A change of it has to be explained.
func TestJudgeTable(t *testing.T) {
	const epoch = 7
	var table strings.Builder
	for _, job := range []bool{false, true} {
		for _, source := range shown {
			for _, target := range shown {
				verdict := Judge(Observation{State: source, Epoch: epoch - 1, JobActive: job}, Observation{State: target, Epoch: epoch}, epoch)
				fmt.Fprintf(&table, "job %-5t  source %-16s  target %-16s  %s\n", job, source, target, verdict)
			}
		}
	}
	for _, source := range shown {
		for _, target := range shown {
			seen := Observation{State: source, Epoch: epoch - 1}
			verdict := Judge(seen, Observation{State: target, Epoch: epoch}, epoch)
			seen.Anew = true
			if anew := Judge(seen, Observation{State: target, Epoch: epoch}, epoch); anew != verdict {
				fmt.Fprintf(&table, "anew       source %-16s  target %-16s  %s\n", source, target, anew)
			}
			seen.Anew, seen.Ended = false, true
			if ended := Judge(seen, Observation{State: target, Epoch: epoch}, epoch); ended != verdict {
				fmt.Fprintf(&table, "ended      source %-16s  target %-16s  %s\n", source, target, ended)
			}
		}
	}
	golden(t, "verdicts.txt", table.String())
}

func TestJudgeNeverTrustsAForeignCopy(t *testing.T) {
	for _, source := range shown {
		for _, target := range []model.DomainState{model.DomainRunning, model.DomainPaused, model.DomainPausedMigration} {
			verdict := Judge(Observation{State: source}, Observation{State: target, Epoch: 6}, 7)
			if verdict != CannotTell {
				t.Errorf("source %s, target %s of another epoch: %s, want %s", source, target, verdict, CannotTell)
			}
		}
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); -update rewrites it:\n%s", path, diff)
	}
}
