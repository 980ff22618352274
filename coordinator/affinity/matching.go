package affinity

import (
	"cmp"
	"slices"
)

// scarce finds members that have fewer choices than they are, where each needs a choice of its own. It returns the indexes of
// the members and their choices, both ascending; none if each can have one (Hall's theorem, by augmenting paths).
func scarce[C cmp.Ordered](choices [][]C) (short []int, shared []C) {
	taken := map[C]int{} // by choice: who has it
	for start := range choices {
		if len(choices[start]) >= len(choices) {
			continue // one is left for it, whatever the others have
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

// augment finds a choice for one more member. Others may have to take another choice for that.
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

// among is the members that have no other choices than these.
func among[C cmp.Ordered](choices [][]C, shared []C) []int {
	var short []int
	for i := range choices {
		if !slices.ContainsFunc(choices[i], func(choice C) bool {
			_, in := slices.BinarySearch(shared, choice)
			return !in
		}) {
			short = append(short, i)
		}
	}
	return short
}
