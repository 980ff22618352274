package wordindex

import (
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The nodes of a word are those that a look at all of them finds, and copies that were made before stay as they are.
func TestAnIndexIsALookAtAllNodes(t *testing.T) {
	words := []string{"", "a", "aa", "b", "customer/acme"}
	rapid.Check(t, func(t *rapid.T) {
		type past struct {
			index *Index
			has   map[string]map[string]bool
		}
		index := new(Index)
		has := map[string]map[string]bool{} // words by node
		var before []past
		for range rapid.IntRange(0, 30).Draw(t, "changes") {
			if rapid.IntRange(0, 3).Draw(t, "copy") == 0 {
				before = append(before, past{index: index, has: maps.Clone(has)})
				index = index.Copy()
			}
			node, now := rapid.SampledFrom([]string{"n1", "n2", "n10", "a"}).Draw(t, "node"), map[string]bool{}
			for _, word := range words {
				if rapid.Bool().Draw(t, "has") {
					now[word] = true
				}
			}
			index.Replace(node, has[node], now)
			has[node] = now
		}
		anew := new(Index)
		for node, words := range has {
			anew.Replace(node, nil, words)
		}
		if !index.Equal(anew) {
			t.Fatal("it differs from one that is made anew")
		}
		for _, one := range append(before, past{index: index, has: has}) {
			for _, word := range words {
				var want []string
				for _, node := range slices.Sorted(maps.Keys(one.has)) {
					if one.has[node][word] {
						want = append(want, node)
					}
				}
				if got := one.index.Nodes(word); !slices.Equal(got, want) {
					t.Fatalf("%q: %v, not %v", word, got, want)
				}
			}
		}
	})
}
