package console

import (
	"bytes"
	"slices"
	"sort"
)

// hunk is a piece of a text that has changed: from which line of the old text on, how many lines of it go, and what comes instead. A line
// has its end, which the last one may lack.
type hunk struct {
	At    int    `json:"at"`
	Drop  int    `json:"drop,omitempty"`
	Lines string `json:"lines,omitempty"`
}

// differences are the hunks, in the order of the text, that make another text of an old one.
func differences(old, fresh []byte) []hunk {
	before, after := slices.Collect(bytes.Lines(old)), slices.Collect(bytes.Lines(fresh))
	var hunks []hunk
	from := pair{}
	for _, to := range append(anchors(before, after), pair{len(before), len(after)}) {
		hunks = between(hunks, before, after, from, to)
		from = pair{to.old + 1, to.fresh + 1}
	}
	return hunks
}

// pair is a line that both texts have.
type pair struct{ old, fresh int }

// anchors are lines that stand once in each text, as many as there are in the same order in both. Each row of a table has such a line.
func anchors(before, after [][]byte) []pair {
	type places struct{ olds, freshes, old int }
	seen := make(map[string]*places, len(before))
	for i, line := range before {
		if at := seen[string(line)]; at != nil {
			at.olds++
		} else {
			seen[string(line)] = &places{olds: 1, old: i}
		}
	}
	for _, line := range after {
		if at := seen[string(line)]; at != nil {
			at.freshes++
		}
	}
	// The longest run of rising places in the old text: ends has, for each length, the pair with the lowest place that ends such a run.
	type link struct {
		pair
		last *link
	}
	var ends []*link
	for k, line := range after {
		at := seen[string(line)]
		if at == nil || at.olds != 1 || at.freshes != 1 {
			continue
		}
		length := sort.Search(len(ends), func(i int) bool { return ends[i].old > at.old })
		one := &link{pair: pair{at.old, k}}
		if length > 0 {
			one.last = ends[length-1]
		}
		if length == len(ends) {
			ends = append(ends, one)
		} else {
			ends[length] = one
		}
	}
	var found []pair
	if len(ends) > 0 {
		for one := ends[len(ends)-1]; one != nil; one = one.last {
			found = append(found, one.pair)
		}
	}
	slices.Reverse(found)
	return found
}

// between adds what differs from one place to another that both texts have. As many lines as before are compared one by one: a cell has
// changed then, and not its row.
func between(hunks []hunk, before, after [][]byte, from, to pair) []hunk {
	olds, freshes := before[from.old:to.old], after[from.fresh:to.fresh]
	if len(olds) != len(freshes) {
		first := 0
		for first < min(len(olds), len(freshes)) && bytes.Equal(olds[first], freshes[first]) {
			first++
		}
		olds, freshes = olds[first:], freshes[first:]
		for len(olds) > 0 && len(freshes) > 0 && bytes.Equal(olds[len(olds)-1], freshes[len(freshes)-1]) {
			olds, freshes = olds[:len(olds)-1], freshes[:len(freshes)-1]
		}
		return append(hunks, hunk{from.old + first, len(olds), string(bytes.Join(freshes, nil))})
	}
	for i := range olds {
		if bytes.Equal(olds[i], freshes[i]) {
			continue
		}
		at := from.old + i
		if last := len(hunks) - 1; last >= 0 && hunks[last].At+hunks[last].Drop == at {
			hunks[last].Drop++
			hunks[last].Lines += string(freshes[i])
		} else {
			hunks = append(hunks, hunk{at, 1, string(freshes[i])})
		}
	}
	return hunks
}
