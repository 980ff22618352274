package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
	"berth/coordinator/view/column"
	"berth/shared/units"
)

// What is kept of no nodes is written as it always was.
func TestTheRecordOfNoNodesStaysAsItIs(t *testing.T) {
	if record, err := json.Marshal(Figures{}); err != nil || string(record) != recordOfNoNodes {
		t.Fatalf("%s: %v", record, err)
	}
}

// recordOfNoNodes is what releases before columns were in parts wrote.
const recordOfNoNodes = `{"cluster":"","ids":null,"names":null,"standing":null,"known":null,"inventory_at":null,"telemetry_at":null,` +
	`"memory":null,"ram_ratio":null,"overhead":null,"promised":null,"used":null,"free":null,"vcpu_limit":null,"vcpus":null,"load":null}`

// The columns of a later view are those that would be made anew, on a site of several parts; and those of the views before stay as they
// were, though they share what does not differ.
func TestLaterColumnsAreThoseMadeAnew(t *testing.T) {
	random := rand.New(rand.NewPCG(18, 18))
	const nodes = 2*column.InPart + 9
	records := Records{Clusters: []model.Resource{{
		Kind: model.KindCluster, ID: "c1", Name: model.DefaultCluster, NodeKeys: []model.NodeKey{{Name: "SSD"}},
	}}}
	facts := make(map[string]model.NodeFacts)
	enrol := func(id string) model.Node {
		node := model.Node{ID: id, Name: id, Cluster: model.DefaultCluster}
		records.Nodes, facts[id] = append(records.Nodes, node), healthy()
		return node
	}
	for i := range nodes {
		enrol(fmt.Sprintf("n%04d", i))
	}
	type past struct{ columns, was *Columns }
	var before []past
	later := New(noon, 1, records, facts)
	for round := range 60 {
		changed := Changes{Nodes: make(map[string]model.NodeFacts)}
		var given []model.Node
		for range random.IntN(6) {
			row := random.IntN(len(records.Nodes))
			node := &records.Nodes[row]
			now := facts[node.ID]
			available, load := units.Bytes(random.IntN(1<<20))*units.KiB, float64(random.IntN(400))/100
			now.Available, now.Load1 = &available, &load
			now.TelemetryAt, now.Telemetry = noon.Add(time.Duration(round)*time.Second), random.IntN(9) > 0
			if random.IntN(9) == 0 {
				node.Keys = map[string]float64{"SSD": float64(random.IntN(5))}
				given = append(given, *node)
			}
			facts[node.ID], changed.Nodes[node.ID] = now, now
		}
		for n := range random.IntN(3) { // mostly behind all others, as IDs are given
			id := fmt.Sprintf("o%04d-%d", round, n)
			if random.IntN(4) == 0 {
				id = fmt.Sprintf("n%04d-%d-%d", random.IntN(nodes), round, n)
			}
			node := enrol(id)
			given, changed.Nodes[node.ID] = append(given, node), facts[node.ID]
		}
		if random.IntN(4) == 0 {
			at := random.IntN(len(records.Nodes))
			gone := records.Nodes[at].ID
			records.Nodes, changed.Gone = slices.Delete(records.Nodes, at, at+1), []string{gone}
			given = slices.DeleteFunc(given, func(n model.Node) bool { return n.ID == gone })
			delete(changed.Nodes, gone)
			delete(facts, gone)
		}
		later = later.Later(noon, uint64(round+2), Records{Nodes: given}, List(nil), changed)
		if random.IntN(4) == 0 {
			continue // nobody asks for the columns of each view
		}
		now := Records{Clusters: records.Clusters, Nodes: slices.Clone(records.Nodes)}
		got, want := later.Columns(model.DefaultCluster), New(noon, 1, now, maps.Clone(facts)).Columns(model.DefaultCluster)
		before = append(before, past{columns: got, was: want})
	}
	if len(before) < 20 {
		t.Fatalf("only %d columns were compared", len(before))
	}
	for i, one := range before {
		if diff := cmp.Diff(one.was, one.columns, sameColumns); diff != "" {
			t.Fatalf("columns %d (-made anew +later):\n%s", i, diff)
		}
	}
}
