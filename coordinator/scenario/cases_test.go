package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth/coordinator/schema"
)

// anHourMore is appended to every case: when its events are over nothing more is to move.
const anHourMore = `
  - run: 1h
    expect: {moves: 0}
`

// Every case of a whole cluster in virtual time comes out as it expects and as before, a second time the same to the byte,
// and comes to an end: an hour more finds nothing to move.
func TestCases(t *testing.T) {
	folders, err := filepath.Glob("testdata/cases/*")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, folder := range folders {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			t.Parallel()
			if readme := file(t, folder, "README.md"); !strings.HasPrefix(readme, "# ") || strings.Count(readme, "\n") < 3 {
				t.Error("README.md does not tell what the case is about")
			}
			text := file(t, folder, "start.yaml") + file(t, folder, "events.yaml") + anHourMore
			first := log(t, text)
			if second := log(t, text); second != first {
				t.Errorf("a second run came out otherwise:\n%s", second)
			}
			golden(t, filepath.Join(folder, "expected.log"), first)
		})
	}
}

// The VMs of one account that are started one after the other are evenly spread over pods and hosts, and their disks with them.
func TestAnAccountIsSpreadOverPods(t *testing.T) {
	folder := filepath.Join("testdata", "cases", "two-pods")
	scenario, problems := Parse("case.yaml", []byte(file(t, folder, "start.yaml")+file(t, folder, "events.yaml")))
	if err := schema.Problems(problems); err != nil {
		t.Fatal(err)
	}
	report, err := scenario.Run()
	if err != nil {
		t.Fatal(err)
	}
	where, pools := make(map[string]string), make(map[string]int)
	for i := range report.Steps {
		for _, decision := range report.Steps[i].Decisions {
			where[decision.Request.VMName] = decision.WinnerName
			for _, choice := range decision.Pools {
				pools[choice.PoolName]++
			}
		}
	}
	counts := make(map[string]int)
	for _, node := range where {
		counts[node]++
	}
	for _, node := range []string{"hv1", "hv2", "hv3", "hv4"} {
		if counts[node] != 5 {
			t.Errorf("%s has %d VMs, want 5 of 20", node, counts[node])
		}
	}
	if len(pools) != 2 || pools["left-disks"] != 10 || pools["right-disks"] != 10 {
		t.Errorf("disks are made in %v, want 10 in each pool, once", pools)
	}
}

// log is what people read of a scenario, which has to come out as it expects.
func log(t *testing.T, text string) string {
	t.Helper()
	scenario, problems := Parse("case.yaml", []byte(text))
	if err := schema.Problems(problems); err != nil {
		t.Fatal(err)
	}
	report, err := scenario.Run()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	for i := range report.Steps {
		step := &report.Steps[i]
		for _, one := range step.Different {
			t.Errorf("line %d: %s: expected %s, found %s", one.Line, one.Of, one.Expected, one.Found)
		}
		said.WriteString(step.Text(false))
	}
	return said.String() + report.Summary() + "\n"
}

func file(t *testing.T, folder, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
