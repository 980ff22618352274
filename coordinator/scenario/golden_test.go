package scenario

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/scenario/format"
	"berth/coordinator/schema"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// run runs a scenario of the testdata.
func run(t *testing.T, file string) Report {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	scenario, problems := Parse(filepath.Base(file), data)
	if err := schema.Problems(problems); err != nil {
		t.Fatal(err)
	}
	report, err := scenario.Run()
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Every scenario comes out as it expects, and otherwise as before.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/scenario/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			report := run(t, file)
			for _, step := range report.Steps {
				for _, one := range step.Different {
					t.Errorf("line %d: %s: expected %s, found %s", one.Line, one.Of, one.Expected, one.Found)
				}
			}
			golden(t, strings.TrimSuffix(file, ".yaml")+".golden", outline(&report))
		})
	}
}

// outline is what came of a scenario without the engine's words, which have tests of their own.
func outline(report *Report) string {
	var text strings.Builder
	for _, step := range report.Steps {
		fmt.Fprintf(&text, "%s\n", step.Words)
		for i := range step.Log {
			fmt.Fprintf(&text, "  %s\n", step.Log[i].Text())
		}
		for _, d := range step.Decisions {
			fmt.Fprintf(&text, "  %s %s: %s", d.Request.Purpose, d.Request.VMName, d.Outcome)
			if d.Winner != "" {
				fmt.Fprintf(&text, " %s in round %d", d.WinnerName, d.Round)
			}
			text.WriteString(string(d.FailedPhase) + "\n")
		}
		if step.Said != "" {
			fmt.Fprintf(&text, "  %s\n", step.Said)
		}
		for _, left := range step.Left {
			fmt.Fprintf(&text, "  %s stays\n", left.Name)
		}
	}
	return text.String() + report.Summary() + "\n"
}

// What people read of the steps of a scenario, one of which comes out otherwise than it expects.
func TestText(t *testing.T) {
	report := run(t, "testdata/text.yaml")
	var text strings.Builder
	for i := range report.Steps {
		text.WriteString(report.Steps[i].Text(false))
	}
	golden(t, "testdata/text.golden", text.String()+report.Summary()+"\n")
	if report.Expected != 4 || report.Failed != 3 {
		t.Errorf("%d expected, %d failed, want 4 and 3", report.Expected, report.Failed)
	}
	if full := report.Steps[1].Text(true); len(full) <= len(report.Steps[1].Text(false)) {
		t.Errorf("the full text is no longer than the terse one:\n%s", full)
	}
}

// The help is right: its example comes out as it expects, and it has every word that a file may have.
func TestSchema(t *testing.T) {
	scenario, problems := Parse("example.yaml", []byte(format.Example))
	if err := schema.Problems(problems); err != nil {
		t.Fatal(err)
	}
	report, err := scenario.Run()
	if err != nil || report.Expected != 2 || report.Failed != 0 {
		t.Errorf("%v, %s: %+v", err, report.Summary(), report.Steps)
	}
	words := slices.Concat(nodeStates, unknowables, guestStates)
	for _, verb := range verbs {
		words = append(words, "- "+verb.name+": ")
	}
	for _, word := range words {
		if !strings.Contains(format.Schema, word) {
			t.Errorf("the help does not tell of %q", word)
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update if this is meant:\n%s", path, diff)
	}
}
