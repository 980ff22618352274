package estate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run with -update to accept):\n%s", file, diff)
	}
}

var epoch = time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC)

// counted gives out IDs in order.
func counted() func(model.Kind, string) string {
	last := 0
	return func(kind model.Kind, _ string) string {
		last++
		return fmt.Sprintf("%s-%d", kind, last)
	}
}

func lines(problems []schema.Problem) string {
	var b strings.Builder
	for _, problem := range problems {
		fmt.Fprintln(&b, problem)
	}
	return b.String()
}

// read parses a document that has to be good.
func read(t testing.TB, text string) *document.Document {
	t.Helper()
	doc, problems := document.Parse("estate.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatalf("the document is refused:\n%s", lines(problems))
	}
	return doc
}

// applied carries out a document on a state, which has to go.
func carriedOut(t testing.TB, now State, text string, prune bool) State {
	t.Helper()
	plan, problems := Diff(now, read(t, text), prune)
	if len(problems) > 0 {
		t.Fatalf("the document cannot be applied:\n%s", lines(problems))
	}
	plan.Assign(epoch, counted())
	return plan.Apply(now)
}

// site has two nodes that have joined, and the estate of testdata/estate.yaml.
func site(t testing.TB) State {
	t.Helper()
	text, err := os.ReadFile("testdata/estate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return carriedOut(t, State{Nodes: []model.Node{
		{ID: "n1", Name: "hv1", Cluster: model.DefaultCluster, Revision: 5},
		{ID: "n2", Name: "hv2", Cluster: model.DefaultCluster, Revision: 6},
	}}, string(text), false)
}

func export(t testing.TB, now State, live bool) string {
	t.Helper()
	out, err := Export(now, live)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestExport(t *testing.T) {
	now := site(t)
	golden(t, "estate.golden", export(t, now, false))
	now.VMs[0].Holder, now.VMs[0].Desired = "n1", model.Running
	now.VMs[1].LastNode = "n2"
	now.Nodes[1].Maintenance, now.Nodes[1].MaintenanceReason = true, "new\nmemory"
	golden(t, "live.golden", export(t, now, true))
}

// An estate that is applied again, and its export that is applied, change nothing.
func TestApplyIsIdempotent(t *testing.T) {
	now := site(t)
	text, err := os.ReadFile("testdata/estate.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, again := range map[string]string{
		"the document": string(text), "its export": export(t, now, false), "the live export": export(t, now, true),
	} {
		for _, prune := range []bool{false, true} {
			plan, problems := Diff(now, read(t, again), prune)
			if len(problems) > 0 || len(plan.Changes) > 0 {
				t.Errorf("%s, prune %v: %v\n%s", name, prune, plan.Changes, lines(problems))
			}
		}
	}
	if problems := Check(now); len(problems) > 0 {
		t.Errorf("the state breaks rules:\n%s", lines(problems))
	}
}
