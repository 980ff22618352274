// Package wordindex tells which nodes have something that a word stands for, without looking at any other node.
package wordindex

import (
	"slices"
	"strings"

	"github.com/tidwall/btree"
)

// Index are words with the nodes, by ID, that have what they stand for. The zero value is one without a word. A copy shares what is not
// changed in it. Reading is safe from several goroutines, copying and changing is not.
type Index struct{ entries btree.Set[string] }

// end is behind a word. Neither words nor IDs have it in them.
const end = "\x00"

// Copy is an index that may be changed while this one stays as it is.
func (x *Index) Copy() *Index { return &Index{entries: *x.entries.Copy()} }

// Equal tells whether two have the same words with the same nodes.
func (x *Index) Equal(other *Index) bool { return slices.Equal(x.entries.Keys(), other.entries.Keys()) }

// Replace changes what a node has: from the words before to those now.
func (x *Index) Replace(node string, before, now map[string]bool) {
	for word := range before {
		if !now[word] {
			x.entries.Delete(word + end + node)
		}
	}
	for word := range now {
		if !before[word] {
			x.entries.Insert(word + end + node)
		}
	}
}

// Nodes are the nodes that have what a word stands for, by ID, ascending.
func (x *Index) Nodes(word string) []string {
	var nodes []string
	word += end
	x.entries.Ascend(word, func(entry string) bool {
		node, within := strings.CutPrefix(entry, word)
		if within {
			nodes = append(nodes, node)
		}
		return within
	})
	return nodes
}
