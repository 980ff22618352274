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

// combinedText names the weighers that set a node apart from another one where several were combined, those that count most
// first. It is empty where none does.
func combinedText(node, other *NodeResult) string {
	there := make(map[string]float64)
	for i := range other.Terms {
		if term := &other.Terms[i]; term.Weight != 0 && term.Key == "" {
			there[term.Weigher] = term.Contribution
		}
	}
	var terms []Term
	for i := range node.Terms {
		term := &node.Terms[i]
		if other, is := there[term.Weigher]; is && term.Weight != 0 && term.Key == "" && figure(other) != figure(term.Contribution) {
			terms = append(terms, *term)
		}
	}
	far := func(t Term) float64 { return math.Abs(t.Contribution - there[t.Weigher]) }
	slices.SortStableFunc(terms, func(a, b Term) int { return cmp.Compare(far(b), far(a)) })
	var parts []string
	for i := range terms {
		parts = append(parts, fmt.Sprintf("%s gives %s here and %s there",
			terms[i].Weigher, figure(terms[i].Contribution), figure(there[terms[i].Weigher])))
	}
	return strings.Join(parts, ", ")
}

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
