package plan_test

import (
	"strings"
	"testing"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
)

// What people read of plans and drains that go well.
func TestGoldenPlans(t *testing.T) {
	f := clitest.Steady()
	maintained(f, true)
	w, _ := clitest.NewSite(t, f)
	for name, args := range map[string][]string{
		"plan-list":             {"plan", "list"},
		"plan-list-wide":        {"plan", "list", "-o", "wide"},
		"plan-list-name":        {"plan", "list", "--live", "-o", "name"},
		"plan-show-waiting":     {"plan", "show"},
		"plan-show":             {"plan", "show", "last"},
		"plan-show-drain-wide":  {"plan", "show", "node/node1", "-o", "wide"},
		"plan-show-json":        {"plan", "show", "last", "-o", "json"},
		"plan-new":              {"plan", "new"},
		"plan-new-dry-run":      {"plan", "new", "--dry-run"},
		"plan-new-even":         {"plan", "new", "--cluster", "prod"},
		"plan-apply":            {"plan", "apply", "last"},
		"plan-apply-no-wait":    {"plan", "apply", "last", "--no-wait"},
		"plan-discard":          {"plan", "discard", "last"},
		"plan-cancel":           {"plan", "cancel", "node/node1"},
		"node-drain-cancel":     {"node", "drain", "node1", "--cancel", "--abort"},
		"node-drain-no-wait":    {"node", "drain", "node1", "--yes", "--no-wait"},
		"node-undrain":          {"node", "undrain", "node1"},
		"node-undrain-return":   {"node", "undrain", "node1", "--return"},
		"node-undrain-dry-run":  {"node", "undrain", "node1", "--return", "--dry-run"},
		"node-undrain-name":     {"node", "undrain", "node1", "-o", "name"},
		"node-undrain-no-wait":  {"node", "undrain", "node1", "--return", "--no-wait"},
		"plan-watch-evening":    {"plan", "watch", "last"},
		"plan-watch-quiet-name": {"plan", "watch", "last", "-q", "-o", "name"},
	} {
		t.Run(name, func(t *testing.T) {
			said := w.Run(args...)
			if said.Exit != term.Done {
				t.Errorf("exit %d", said.Exit)
			}
			clitest.Golden(t, name+".golden", said.Out+clitest.ErrSection(said.ErrOut))
		})
	}
}

// A plan that has been cancelled in the meantime, or a drain that runs, is not what 'apply last' means: the canned coordinator lists a
// drain that runs before the plan that waits, and refuses to apply anything else.
func TestTheLastPlanIsTheNewestThatWaits(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	for _, args := range [][]string{
		{"plan", "apply", "last", "--no-wait"}, {"plan", "discard", "last"}, {"plan", "discard", "plan/last"}, {"plan", "cancel", "last"},
	} {
		if said := w.Run(args...); said.Exit != term.Done {
			t.Errorf("%v: exit %d, %s", args, said.Exit, said.ErrOut)
		}
	}
}

// What '-o name' prints is taken as it is: berth node list -o name | xargs -n1 berth node undrain.
func TestANameMayHaveItsKind(t *testing.T) {
	w, _ := clitest.NewSite(t, clitest.Steady())
	plain, kind := w.Run("node", "undrain", "node1"), w.Run("node", "undrain", "node/node1")
	if plain.Exit != term.Done || kind.Exit != term.Done || plain.Out != kind.Out {
		t.Errorf("%q and %q: %s", plain.Out, kind.Out, kind.ErrOut)
	}
}

// A drain that is cancelled after its node was taken back keeps nothing in maintenance.
func TestADrainIsCancelledAfterTheNodeWasTakenBack(t *testing.T) {
	f := clitest.Steady()
	maintained(f, false)
	w, _ := clitest.NewSite(t, f)
	said := w.Run("node", "drain", "node1", "--cancel")
	if said.Exit != term.Done || !strings.Contains(said.Out, "node/node1 is not in maintenance: nothing drains it\n") ||
		strings.Contains(said.Out, "stays in maintenance") {
		t.Errorf("exit %d, %s", said.Exit, said.Out)
	}
}

// maintained has the cluster answer that its nodes are in maintenance, or are not.
func maintained(f *clitest.Fake, yes bool) {
	f.OnGetNode = func(r *berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error) {
		return &berthv1.GetNodeResponse{Node: &berthv1.Node{Name: r.GetNode(), Maintenance: yes}}, nil
	}
}
