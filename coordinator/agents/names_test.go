package agents

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
)

// The names that are kept are the names of all nodes, whatever has come, gone or changed, and as of whatever moment they are asked for.
func TestTheNamesOfNodesThatAreKeptAreThoseOfAll(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 18))
	s := statetest.New(t)
	var kept names
	before, shared := s.Snapshot(), 0
	for i := range 4000 {
		id := fmt.Sprint("n", 1+random.IntN(8))
		node, is := s.Snapshot().Node(id)
		expect := []state.Expectation{{Table: state.Nodes, ID: id, Revision: node.Revision}}
		switch {
		case random.IntN(2) == 0:
			s.Apply(state.Command{Kind: "nothing of nodes", Meta: map[string]string{"some": fmt.Sprint(i)}})
		case is && random.IntN(3) == 0:
			s.Apply(state.Command{Expect: expect, Delete: []state.Record{{Table: state.Nodes, ID: id}}})
		default:
			node.ID, node.Name, node.Cluster = id, fmt.Sprint(id, "-", random.IntN(3)), model.DefaultCluster
			s.Apply(state.Command{Expect: expect, Nodes: []model.Node{node}})
		}
		snapshot := s.Snapshot()
		if random.IntN(10) == 0 {
			snapshot = before // somebody has read the records a while ago
		}
		was := kept.sorted
		got := kept.of(snapshot)
		if len(was) > 0 && &was[0] == &kept.sorted[0] {
			shared++
		}
		var want []string
		for _, one := range snapshot.Nodes() {
			want = append(want, one.Name)
		}
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("after %d: %q, not %q", i, got, want)
		}
		before = s.Snapshot()
	}
	if shared < 500 {
		t.Errorf("%d of 4000 times they were kept", shared)
	}
}
