package constraint

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// However many targets there are and in whatever order, both forms leave the same nodes.
func TestAmongSweepsWhatItChecks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rule.Input{Columns: &view.Columns{}}
		for i := range rapid.IntRange(1, 40).Draw(t, "nodes") {
			in.Columns.IDs = append(in.Columns.IDs, fmt.Sprintf("n%02d", i))
		}
		ids := append([]string{"elsewhere"}, in.Columns.IDs...)
		in.Among = rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 0, len(ids), rapid.ID[string]).Draw(t, "among")
		in.Current = rapid.SampledFrom(append([]string{""}, ids...)).Draw(t, "current")
		out := make([]bool, len(in.Columns.IDs))
		for node := range out {
			out[node] = rapid.Bool().Draw(t, "out")
		}
		want := make([]bool, len(out))
		for node := range out {
			want[node] = out[node] || !among.Check(&in, node).Passed
		}
		among.Sweep(&in, out)
		if fmt.Sprint(out) != fmt.Sprint(want) {
			t.Errorf("among %v, at %q: %v, want %v", in.Among, in.Current, out, want)
		}
	})
}

// Who refuses a node because a move goes elsewhere says where, and who wants that for which reason.
func TestAmongSaysWhoSendsTheVMWhere(t *testing.T) {
	in := rule.Input{Columns: &view.Columns{}, Among: []string{"gone", "away"}}
	in.Columns.IDs = []string{"n1", "n2"}
	if got := among.Say(&in, 0, rule.Refuse("no_target")); got != "the VM may go only to gone, away: no other node was proposed" {
		t.Error(got)
	}
	in.AmongWho, in.AmongWhy = "the drain sends it", "the VMs that rules tie to it go there"
	if got := among.Say(&in, 0, rule.Refuse("no_target")); got !=
		"the drain sends it only to gone, away: the VMs that rules tie to it go there" {
		t.Error(got)
	}
}
