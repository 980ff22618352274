package selector

import "slices"

// rank is oVirt's rank selector ("Normalizing scheduling policy weights"): the best of n nodes has rank n-1, and equal ones
// share the rank that counts only those below them as beaten.
var rank = Selector{
	Name: "rank",
	Doc:  "Each weigher gives a node one point for every other node that is not better; points times factors, most wins.",
	Share: func(of *Given, shares []float64) {
		of.sorted = append(of.sorted[:0], of.Scores...)
		slices.Sort(of.sorted)
		for i, score := range of.Scores {
			shares[i] = float64(above(of.sorted, score) - 1)
		}
	},
}

// above is the index of the first of the sorted scores that is better than this one.
func above(sorted []float64, score float64) int {
	at, _ := slices.BinarySearchFunc(sorted, score, func(one, than float64) int {
		if one > than {
			return 1
		}
		return -1
	})
	return at
}
