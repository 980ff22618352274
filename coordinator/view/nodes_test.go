package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"berth/coordinator/model"
	"berth/coordinator/view/column"
)

// A list of nodes is the slice that it was made of, but for the nodes that were given instead; and lists that were made before stay as
// they are.
func TestAListOfNodesIsASlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		made := 0
		node := func(i int) *NodeView {
			made++
			return &NodeView{Node: model.Node{ID: fmt.Sprintf("n%05d", 2*i)}, ran: made}
		}
		var want []*NodeView
		count := rapid.SampledFrom([]int{0, 1, column.InPart - 1, column.InPart, column.InPart + 1, 5*column.InPart + 7}).Draw(t, "nodes")
		for i := range count {
			want = append(want, node(i))
		}
		list := NodesOf(slices.Clone(want))
		for range rapid.IntRange(0, 5).Draw(t, "changes") {
			before, was := list, slices.Clone(want)
			others := map[int]*NodeView{}
			for range rapid.IntRange(0, 2*min(count, 3)).Draw(t, "at once") {
				at := rapid.IntRange(0, count-1).Draw(t, "at")
				made++
				others[at] = &NodeView{Node: want[at].Node, ran: made}
				want[at] = others[at]
			}
			list = list.with(others)
			if rapid.Bool().Draw(t, "others come and go") {
				var gone []string
				if len(want) > 0 && rapid.Bool().Draw(t, "goes") {
					at := rapid.IntRange(0, len(want)-1).Draw(t, "which")
					gone = []string{want[at].Node.ID}
					want = slices.Delete(slices.Clone(want), at, at+1)
				}
				var come []*NodeView
				for range rapid.IntRange(0, 2).Draw(t, "come") {
					made++
					id := fmt.Sprintf("n%05d-%d", 2*rapid.IntRange(0, count+1).Draw(t, "behind"), made)
					come = append(come, &NodeView{Node: model.Node{ID: id}, ran: made})
				}
				list, want = list.joined(come, gone), append(slices.Clone(want), come...)
				slices.SortFunc(want, func(a, b *NodeView) int { return strings.Compare(a.Node.ID, b.Node.ID) })
				count = len(want)
			}
			if !slices.Equal(before.Slice(), was) {
				t.Fatal("the list before has changed")
			}
		}
		if list.Len() != count || !slices.Equal(list.Slice(), want) {
			t.Fatalf("%d nodes, not those of the slice", list.Len())
		}
		reached := 0
		for i, one := range list.All() {
			if one != want[i] || list.At(i) != one || i != reached {
				t.Fatalf("node %d is another one", i)
			}
			if at, found := list.search(one.Node.ID); !found || at != i {
				t.Fatalf("node %d is found at %d, %t", i, at, found)
			}
			reached++
		}
		if reached != count {
			t.Fatalf("%d of %d nodes are met", reached, count)
		}
		for _, gone := range []string{"", "n", fmt.Sprintf("n%05d", 2*rapid.IntRange(0, count+1).Draw(t, "gap")+1), "z"} {
			if at, found := list.search(gone); found {
				t.Fatalf("%s is found at %d", gone, at)
			}
		}
	})
}
