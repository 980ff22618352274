package forecast_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	"berth/coordinator/scenario"
	"berth/coordinator/scenario/format"
)

const smallScenario = `format: berth/scenario/v1
seed: 7
estate:
  vms: [{name: web-1, memory: 8G, vcpus: 2}, {name: web-2, memory: 8G, vcpus: 2}]
nodes:
  - {name: hv1, memory: 32G, cpus: 16, load: 8}
  - {name: hv2, memory: 16G, cpus: 16}
running:
  - {vm: web-1, node: hv2, resident: 6G}
steps:
  - start: web-2
    expect: {outcome: placed, node: hv1, refused: {hv2: memory-promised}}
`

// timePasses are more steps, in which a rule is declared and repaired.
const timePasses = `  - at: 5m
    apply: {groups: [{name: web, nodes_rule: positive, nodes_enforcing: true, vms: [web-1], nodes: [hv1]}]}
  - run: 10m
    expect: {moves: 1, where: {web-1: hv1}, holds: [web]}
`

// A scenario needs no coordinator: what people read when it comes out as expected, when it does not, and when the file
// cannot be meant.
func TestSimulate(t *testing.T) {
	w, _ := clitest.NewSite(t)
	for _, c := range []struct {
		name, file string
		args       []string
		exit       term.Exit
	}{
		{"simulate", smallScenario, nil, term.Done},
		{"simulate-full", smallScenario, []string{"--full"}, term.Done},
		{"simulate-time", smallScenario + timePasses, nil, term.Done},
		{"simulate-time-full", smallScenario + timePasses, []string{"--full"}, term.Done},
		{"simulate-names", smallScenario, []string{"-o", "name"}, term.Done},
		{"simulate-differs", strings.Replace(smallScenario, "node: hv1", "node: hv2", 1), nil, term.Failed},
		{"simulate-bad-file", strings.Replace(smallScenario, "cpus: 16}", "cpu: 16}", 1) + "  - {begin: web-1}\n", nil, term.WrongUsage},
		{"simulate-bad-step", smallScenario + "  - start: web-1\n", nil, term.WrongUsage},
	} {
		w.In = strings.NewReader(c.file)
		said := w.Run(append([]string{"simulate", "-"}, c.args...)...)
		if said.Exit != c.exit {
			t.Errorf("%s: exit %d, want %d", c.name, said.Exit, c.exit)
		}
		clitest.Golden(t, c.name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
	}
	said := w.Run("simulate", "--help")
	if said.Exit != term.Done || !strings.Contains(said.Out, strings.TrimSpace(format.Schema)) {
		t.Errorf("exit %d, the help does not have the format:\n%s", said.Exit, said.Out)
	}
}

// Programs get all of it, also when something differs.
func TestSimulateForPrograms(t *testing.T) {
	w, _ := clitest.NewSite(t)
	path := filepath.Join(t.TempDir(), "what-if.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(smallScenario, "node: hv1", "node: hv2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	said := w.Run("simulate", path, "-o", "json")
	var report scenario.Report
	if err := json.Unmarshal([]byte(said.Out), &report); err != nil || said.Exit != term.Failed {
		t.Fatalf("exit %d, %v\n%s", said.Exit, err, said.Out)
	}
	if report.Scenario != path || report.Seed != 7 || report.Failed != 1 || len(report.Steps) != 1 ||
		len(report.Steps[0].Decisions) != 1 || len(report.Steps[0].Decisions[0].Nodes) != 2 || report.Steps[0].Different[0].Found != "hv1" {
		t.Errorf("%+v", report)
	}
	if !strings.Contains(said.ErrOut, `"exit_code": 1`) {
		t.Errorf("the standard error is not JSON:\n%s", said.ErrOut)
	}
	if said := w.Run(
		"simulate", filepath.Join(t.TempDir(), "none.yaml"),
	); said.Exit != term.WrongUsage || !strings.Contains(said.ErrOut, "no such file") {
		t.Errorf("a file that is not there: exit %d, %s", said.Exit, said.ErrOut)
	}
}
