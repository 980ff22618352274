package schema

import (
	"slices"
	"strings"

	"berth/coordinator/model"
)

// SameKey tells whether two keys are one: of one class and name.
func SameKey(a, b model.Key) bool { return a.Class == b.Class && a.Name == b.Name }

// SortKeys puts keys in the order in which they are stored.
func SortKeys(keys []model.Key) {
	slices.SortFunc(keys, func(a, b model.Key) int {
		if a.Class != b.Class {
			return strings.Compare(string(a.Class), string(b.Class))
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// SortNodeKeys puts declared node keys in the order in which they are stored.
func SortNodeKeys(keys []model.NodeKey) {
	slices.SortFunc(keys, func(a, b model.NodeKey) int { return strings.Compare(a.Name, b.Name) })
}
