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
	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/shared/units"
)

// A column is the slice that it was made of, but for the values that were set since; and columns that were made before stay as they are.
func TestAColumnIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.SampledFrom([]int{0, 1, inPart - 1, inPart, inPart + 1, 3*inPart + 7}).Draw(t, "values")
		want := make([]int, count)
		for i := range want {
			want[i] = i
		}
		column := ColumnOf(slices.Clone(want)...)
		type before struct {
			column Column[int]
			was    []int
		}
		var all []before
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			all = append(all, before{column: column, was: slices.Clone(want)})
			owned := own[int]{column: &column}
			for range rapid.IntRange(0, 2*min(count, 3)).Draw(t, "at once") {
				at, value := rapid.IntRange(0, count-1).Draw(t, "at"), rapid.IntRange(0, count).Draw(t, "value")
				owned.set(at, value)
				want[at] = value
			}
		}
		all = append(all, before{column: column, was: want})
		copied := column.Clone()
		for i := range count {
			copied.Set(i, -1)
		}
		for _, one := range all {
			isSlice(t, one.column, one.was)
		}
	})
}

// isSlice fails unless each way to read a column gives what a slice has.
func isSlice(t *rapid.T, column Column[int], want []int) {
	if !column.Given() || column.Len() != len(want) || column.IsZero() != (len(want) == 0) || !slices.Equal(column.Slice(), want) {
		t.Fatalf("%v of %d, not %v", column.Slice(), column.Len(), want)
	}
	reached := 0
	for i, value := range column.All() {
		if value != want[i] || column.At(i) != value || i != reached {
			t.Fatalf("%d at %d, not %d", value, i, want[i])
		}
		reached++
	}
	var pieces []int
	for len(pieces) < len(want) {
		pieces = append(pieces, column.From(len(pieces))...)
	}
	filled := make([]int, len(want))
	column.CopyTo(filled)
	if reached != len(want) || !slices.Equal(pieces, want) || !slices.Equal(filled, want) {
		t.Fatalf("%d of %d values are met, in pieces %v, copied %v", reached, len(want), pieces, filled)
	}
	if len(want) > 0 {
		places := []int{0, len(want) / 2, len(want) - 1}
		if got := column.choose(places).Slice(); !slices.Equal(got, pick(want, places)) {
			t.Fatalf("%v at %v", got, places)
		}
	}
	written, err := json.Marshal(column)
	if err != nil {
		t.Fatal(err)
	}
	if slice, _ := json.Marshal(want); string(written) != string(slice) {
		t.Fatalf("it is written %s, a slice %s", written, slice)
	}
	var read Column[int]
	if err := json.Unmarshal(written, &read); err != nil || !read.Equal(column) {
		t.Fatalf("%s is read as %v: %v", written, read.Slice(), err)
	}
}

// A column that was not given stays so in the log, and where nodes are chosen.
func TestAColumnThatWasNotGivenStaysSo(t *testing.T) {
	var none Column[float64]
	written, err := json.Marshal(none)
	if err != nil || string(written) != "null" || none.Given() || none.choose([]int{}).Given() || none.Clone().Given() || none.Len() != 0 {
		t.Fatalf("%s, %v, %+v", written, err, none)
	}
	var read Column[float64]
	if err := json.Unmarshal(written, &read); err != nil || read.Given() || read.Equal(ColumnOf([]float64{}...)) {
		t.Fatalf("%+v: %v", read, err)
	}
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
	const nodes = 2*inPart + 9
	records := Records{Clusters: []model.Resource{{
		Kind: model.KindCluster, ID: "c1", Name: model.DefaultCluster, NodeKeys: []model.NodeKey{{Name: "SSD"}},
	}}}
	facts := make(map[string]model.NodeFacts)
	for i := range nodes {
		id := fmt.Sprintf("n%04d", i)
		records.Nodes, facts[id] = append(records.Nodes, model.Node{ID: id, Name: id, Cluster: model.DefaultCluster}), healthy()
	}
	type past struct{ columns, was *Columns }
	var before []past
	later := New(noon, 1, records, facts)
	for round := range 60 {
		changed := Changes{Nodes: make(map[string]model.NodeFacts)}
		var given []model.Node
		for range random.IntN(6) {
			row := random.IntN(nodes)
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
		later = later.Later(noon, uint64(round+2), Records{Nodes: given}, List(nil), changed)
		if random.IntN(4) == 0 {
			continue // nobody asks for the columns of each view
		}
		got, want := later.Columns(model.DefaultCluster), New(noon, 1, records, maps.Clone(facts)).Columns(model.DefaultCluster)
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
