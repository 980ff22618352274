package affinity

import (
	"cmp"
	"slices"
)

// crowded finds some that have fewer choices among them than they are, where each wants one of its own: their indexes and
// the choices, both ascending. None: each can have one (Hall's theorem, by augmenting paths).
func crowded[C cmp.Ordered](choices [][]C) (crowd []int, shared []C) {
	taken := map[C]int{} // by choice: who has it
	for start := range choices {
		if len(choices[start]) >= len(choices) {
			continue // there is one left for it whatever the others have
		}
		seen := map[C]bool{}
		if augment(choices, start, taken, seen) {
			continue
		}
		for choice := range seen {
			shared = append(shared, choice)
		}
		slices.Sort(shared)
		return among(choices, shared), shared
	}
	return nil, nil
}

// augment finds a choice for one more, for whom others may have to take another one.
func augment[C cmp.Ordered](choices [][]C, who int, taken map[C]int, seen map[C]bool) bool {
	for _, choice := range choices[who] {
		if _, held := taken[choice]; !held {
			taken[choice] = who
			return true
		}
	}
	for _, choice := range choices[who] {
		if seen[choice] {
			continue
		}
		seen[choice] = true
		if augment(choices, taken[choice], taken, seen) {
			taken[choice] = who
			return true
		}
	}
	return false
}

// among are those that have no other choices than these.
func among[C cmp.Ordered](choices [][]C, shared []C) []int {
	var crowd []int
	for i := range choices {
		if !slices.ContainsFunc(choices[i], func(choice C) bool {
			_, in := slices.BinarySearch(shared, choice)
			return !in
		}) {
			crowd = append(crowd, i)
		}
	}
	return crowd
}
