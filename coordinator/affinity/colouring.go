package affinity

import (
	"iter"
	"math/bits"
	"slices"
)

// set is a set of small numbers.
type set []uint64

func newSet(most int) set { return make(set, (most+63)/64) }

func (s set) add(i int)      { s[i/64] |= 1 << (i % 64) }
func (s set) remove(i int)   { s[i/64] &^= 1 << (i % 64) }
func (s set) has(i int) bool { return s[i/64]&(1<<(i%64)) != 0 }

func (s set) size() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// all are the numbers, ascending.
func (s set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for at, word := range s {
			for ; word != 0; word &= word - 1 {
				if !yield(at*64 + bits.TrailingZeros64(word)) {
					return
				}
			}
		}
	}
}

// graph has the units that must not share a node, by position, and which of them are neighbours.
type graph struct {
	neighbours []set
	cliques    [][]int // sets in which all units are neighbours: one for each rule
}

func newGraph(size int, cliques [][]int) *graph {
	g := &graph{cliques: cliques}
	for range size {
		g.neighbours = append(g.neighbours, newSet(size))
	}
	for _, clique := range cliques {
		for _, a := range clique {
			for _, b := range clique {
				if a != b {
					g.neighbours[a].add(b)
				}
			}
		}
	}
	return g
}

// kernel is the units that decide whether each unit can have a node of its own. A unit with more choices than neighbours gets
// one whatever the neighbours have, so it is left out; then its neighbours may be left out for the same reason. A unit
// without any choice is left out as well. Spare is how many choices of each are not to be counted on.
func (g *graph) kernel(choices []set, spare int) []int {
	left := newSet(len(choices))
	degree, queue := make([]int, len(choices)), []int(nil)
	free := func(unit int) bool {
		size := choices[unit].size()
		return size == 0 || size-spare > degree[unit]
	}
	for unit := range choices {
		left.add(unit)
		degree[unit] = g.neighbours[unit].size()
		if free(unit) {
			queue = append(queue, unit)
		}
	}
	for len(queue) > 0 {
		unit := queue[0]
		queue = queue[1:]
		if !left.has(unit) {
			continue
		}
		left.remove(unit)
		for other := range g.neighbours[unit].all() {
			if degree[other]--; left.has(other) && free(other) {
				queue = append(queue, other)
			}
		}
	}
	return slices.Collect(left.all())
}

// mostSteps bounds the search of one colouring.
const mostSteps = 50_000

// outcome is the answer to whether units can be placed.
type outcome int

const (
	fits     outcome = iota
	tooMany          // for the nodes, in one clique
	clashing         // across several cliques
	unknown
)

// place tells whether each unit that has choices can have one that no neighbour has. If not, units is some of those that
// conflict: in one clique or in several.
func (g *graph) place(choices []set) (result outcome, clique int, units []int) {
	kernel := g.kernel(choices, 0)
	if len(kernel) == 0 {
		return fits, 0, nil
	}
	cliques := 0
	for i := range g.cliques {
		var members []int
		var theirs [][]int
		for _, unit := range g.cliques[i] {
			if _, decides := slices.BinarySearch(kernel, unit); decides {
				members, theirs = append(members, unit), append(theirs, slices.Collect(choices[unit].all()))
			}
		}
		if len(members) > 1 {
			cliques++
		}
		if short, _ := scarce(theirs); len(short) > 0 {
			for at, who := range short {
				short[at] = members[who]
			}
			return tooMany, i, short
		}
	}
	if cliques < 2 {
		return fits, 0, nil
	}
	c := colouring{graph: g, left: kernel, steps: mostSteps, used: map[int]int{}}
	c.choices = make([]set, len(choices))
	for _, unit := range kernel {
		c.choices[unit] = slices.Clone(choices[unit])
	}
	c.alike = alike(kernel, choices)
	switch found := c.search(); {
	case found:
		return fits, 0, nil
	case c.steps <= 0:
		return unknown, 0, nil
	default:
		return clashing, 0, kernel
	}
}

// alike maps each choice to the first one that the same units have. As long as nobody has taken either, one is as good as the
// other.
func alike(units []int, choices []set) map[int]int {
	whose := map[int][]byte{}
	for at, unit := range units {
		for choice := range choices[unit].all() {
			row := whose[choice]
			if row == nil {
				row = make([]byte, (len(units)+7)/8)
				whose[choice] = row
			}
			row[at/8] |= 1 << (at % 8)
		}
	}
	first, result := map[string]int{}, map[int]int{}
	choicesInOrder := make([]int, 0, len(whose))
	for choice := range whose {
		choicesInOrder = append(choicesInOrder, choice)
	}
	slices.Sort(choicesInOrder)
	for _, choice := range choicesInOrder {
		if _, known := first[string(whose[choice])]; !known {
			first[string(whose[choice])] = choice
		}
		result[choice] = first[string(whose[choice])]
	}
	return result
}

// colouring is a search with backtracking. It takes the unit with the fewest choices left first.
type colouring struct {
	*graph
	left    []int       // units without a choice yet
	choices []set       // by unit, what is left of them
	alike   map[int]int // choices that are as good as this one
	used    map[int]int // how many units have a choice
	steps   int         // left
}

func (c *colouring) search() bool {
	if len(c.left) == 0 {
		return true
	}
	at := c.tightest()
	unit := c.left[at]
	c.left = slices.Delete(c.left, at, at+1)
	defer func() { c.left = slices.Insert(c.left, at, unit) }()
	tried := map[int]bool{}
	for choice := range c.choices[unit].all() {
		if c.steps--; c.steps <= 0 {
			return false
		}
		if c.used[choice] == 0 {
			if tried[c.alike[choice]] {
				continue
			}
			tried[c.alike[choice]] = true
		}
		if c.take(unit, choice) {
			return true
		}
	}
	return false
}

// take gives the unit a choice and continues with the others.
func (c *colouring) take(unit, choice int) bool {
	var narrowed []int
	c.used[choice]++
	defer func() {
		c.used[choice]--
		for _, other := range narrowed {
			c.choices[other].add(choice)
		}
	}()
	for _, other := range c.left {
		if c.neighbours[unit].has(other) && c.choices[other].has(choice) {
			c.choices[other].remove(choice)
			narrowed = append(narrowed, other)
		}
	}
	return c.search()
}

func (c *colouring) tightest() int {
	best, fewest := 0, 0
	for at, unit := range c.left {
		if size := c.choices[unit].size(); at == 0 || size < fewest {
			best, fewest = at, size
		}
	}
	return best
}
