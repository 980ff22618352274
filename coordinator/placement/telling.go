package placement

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// mostTelling is how many keys are named that set two nodes apart.
const mostTelling = 3

// tellingText names the keys of one weigher that set a node apart from another one, those that count most first: what each
// adds here and there. It is empty when none does.
func tellingText(node, other *NodeResult, weigher string) string {
	type telling struct {
		key         string
		here, there float64
	}
	var keys []telling
	add := func(terms []Term, figure func(*telling) *float64) {
		for i := range terms {
			if terms[i].Weigher != weigher || terms[i].Key == "" {
				continue
			}
			at := slices.IndexFunc(keys, func(k telling) bool { return k.key == terms[i].Key })
			if at < 0 {
				at, keys = len(keys), append(keys, telling{key: terms[i].Key})
			}
			*figure(&keys[at]) += terms[i].Contribution
		}
	}
	add(node.Terms, func(k *telling) *float64 { return &k.here })
	add(other.Terms, func(k *telling) *float64 { return &k.there })
	keys = slices.DeleteFunc(keys, func(k telling) bool { return figure(k.here) == figure(k.there) })
	slices.SortStableFunc(keys, func(a, b telling) int {
		return cmp.Compare(math.Abs(b.here-b.there), math.Abs(a.here-a.there))
	})
	var parts []string
	for i, k := range keys {
		if i == mostTelling {
			parts = append(parts, fmt.Sprintf("and %s more", count(len(keys)-mostTelling, "key")))
			break
		}
		parts = append(parts, fmt.Sprintf("%s adds %s here and %s there", k.key, figure(k.here), figure(k.there)))
	}
	return strings.Join(parts, ", ")
}
