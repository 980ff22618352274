package affinity

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// colours tries everything.
func colours(g *graph, choices []set, given []int) bool {
	unit := len(given)
	if unit == len(choices) {
		return true
	}
	if choices[unit].size() == 0 {
		return colours(g, choices, append(given, -1))
	}
	for choice := range choices[unit].all() {
		clash := false
		for other, theirs := range given {
			clash = clash || theirs == choice && g.neighbours[unit].has(other)
		}
		if !clash && colours(g, choices, append(slices.Clone(given), choice)) {
			return true
		}
	}
	return false
}

// drawn is a graph of small cliques with few choices, so that about as many fit as do not.
func drawn(random *rand.Rand) (*graph, []set) {
	units, nodes := 4+random.IntN(4), 2+random.IntN(4)
	var cliques [][]int
	for range 2 + random.IntN(6) {
		clique := random.Perm(units)[:2+random.IntN(2)]
		slices.Sort(clique)
		cliques = append(cliques, clique)
	}
	choices := make([]set, units)
	for unit := range choices {
		choices[unit] = newSet(nodes)
		for node := range nodes {
			if random.IntN(4) > 0 {
				choices[unit].add(node)
			}
		}
	}
	return newGraph(units, cliques), choices
}

func TestPlaceAgreesWithTryingEverything(t *testing.T) {
	seen := map[outcome]int{}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		for i := range uint64(100) {
			g, choices := drawn(rand.New(rand.NewPCG(seed, i)))
			result, clique, units := g.place(choices)
			seen[result]++
			if colours(g, choices, nil) != (result == fits) {
				t.Fatalf("%v %v: %v", g.cliques, choices, result)
			}
			if result == fits {
				continue
			}
			if result == tooMany { // those who are named are of one clique, and fewer choices are theirs
				shared := newSet(64)
				for _, unit := range units {
					for choice := range choices[unit].all() {
						shared.add(choice)
					}
					if !slices.Contains(g.cliques[clique], unit) {
						t.Fatalf("%v %v: %d is not of the clique %v", g.cliques, choices, unit, g.cliques[clique])
					}
				}
				if shared.size() >= len(units) {
					t.Fatalf("%v %v: %v have enough choices", g.cliques, choices, units)
				}
			}
			for unit := range choices { // without those who are named, the others are in nobody's way of these
				if !slices.Contains(units, unit) {
					choices[unit] = newSet(64)
				}
			}
			if colours(g, choices, nil) {
				t.Fatalf("%v: %v alone are not in each other's way", g.cliques, units)
			}
		}
	})
	if seen[fits] == 0 || seen[tooMany] == 0 || seen[clashing] == 0 {
		t.Errorf("too few kinds of outcome: %v", seen)
	}
}

// Twenty units that are apart two by two, on nineteen nodes that are all different, are more than is tried.
func TestASearchHasABound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	const units, nodes = 20, 19
	var cliques [][]int
	choices := make([]set, units)
	for a := range units {
		for b := range a {
			cliques = append(cliques, []int{b, a})
		}
		choices[a] = newSet(nodes)
		for node := range nodes {
			if random.IntN(10) > 0 {
				choices[a].add(node)
			}
		}
	}
	if result, _, _ := newGraph(units, cliques).place(choices); result != unknown {
		t.Errorf("the outcome is %v, want unknown", result)
	}
}
