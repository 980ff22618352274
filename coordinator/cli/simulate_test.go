package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/coordinator/sim"
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
	w, _ := newWorld(t)
	for _, c := range []struct {
		name, file string
		args       []string
		exit       Exit
	}{
		{"simulate", smallScenario, nil, Done},
		{"simulate-full", smallScenario, []string{"--full"}, Done},
		{"simulate-time", smallScenario + timePasses, nil, Done},
		{"simulate-time-full", smallScenario + timePasses, []string{"--full"}, Done},
		{"simulate-names", smallScenario, []string{"-o", "name"}, Done},
		{"simulate-differs", strings.Replace(smallScenario, "node: hv1", "node: hv2", 1), nil, Failed},
		{"simulate-bad-file", strings.Replace(smallScenario, "cpus: 16}", "cpu: 16}", 1) + "  - {begin: web-1}\n", nil, WrongUsage},
		{"simulate-bad-step", smallScenario + "  - start: web-1\n", nil, WrongUsage},
	} {
		w.in = strings.NewReader(c.file)
		said := w.run(append([]string{"simulate", "-"}, c.args...)...)
		if said.exit != c.exit {
			t.Errorf("%s: exit %d, want %d", c.name, said.exit, c.exit)
		}
		golden(t, c.name+".golden", said.out+errSection(said.errOut))
	}
	said := w.run("simulate", "--help")
	if said.exit != Done || !strings.Contains(said.out, strings.TrimSpace(sim.Schema)) {
		t.Errorf("exit %d, the help does not have the format:\n%s", said.exit, said.out)
	}
}

// Programs get all of it, also when something differs.
func TestSimulateForPrograms(t *testing.T) {
	w, _ := newWorld(t)
	path := filepath.Join(t.TempDir(), "what-if.yaml")
	if err := os.WriteFile(path, []byte(strings.Replace(smallScenario, "node: hv1", "node: hv2", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	said := w.run("simulate", path, "-o", "json")
	var report sim.Report
	if err := json.Unmarshal([]byte(said.out), &report); err != nil || said.exit != Failed {
		t.Fatalf("exit %d, %v\n%s", said.exit, err, said.out)
	}
	if report.Scenario != path || report.Seed != 7 || report.Failed != 1 || len(report.Steps) != 1 ||
		len(report.Steps[0].Decisions) != 1 || len(report.Steps[0].Decisions[0].Nodes) != 2 || report.Steps[0].Different[0].Found != "hv1" {
		t.Errorf("%+v", report)
	}
	if !strings.Contains(said.errOut, `"exitCode": 1`) {
		t.Errorf("the standard error is not JSON:\n%s", said.errOut)
	}
	if said := w.run("simulate", filepath.Join(t.TempDir(), "none.yaml")); said.exit != WrongUsage || !strings.Contains(said.errOut, "no such file") {
		t.Errorf("a file that is not there: exit %d, %s", said.exit, said.errOut)
	}
}
