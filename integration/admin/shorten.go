package admin

import "slices"

// shorten leaves steps of a script out as long as what remains still fails: first many at a time, then each by itself. Fails plays a
// script, and every one that it gets has a number of its own. It is asked so many times at most, so the result may not be the shortest.
func shorten(long script, tries int, fails func(*script) bool) script {
	shortest := long
	for size := max(len(long.steps)/2, 1); ; size = max(size/2, 1) {
		left := false
		for at := 0; at < len(shortest.steps) && tries > 0; {
			one := shortest.without(at, min(at+size, len(shortest.steps)))
			tries--
			long.try++
			one.try = long.try
			if fails(&one) {
				shortest, left = one, true
			} else {
				at += size
			}
		}
		if tries == 0 || size == 1 && !left {
			return shortest
		}
	}
}

// without is a script without some of its steps. What was begun beside one that is gone is not begun beside the next one where draw would
// not have that.
func (s *script) without(from, to int) script {
	shorter := *s
	shorter.steps = slices.Delete(slices.Clone(s.steps), from, to)
	shorter.apart()
	return shorter
}

// apart ends what must not overlap. What is defined while the disks change may name those of before: with that the administrator would
// start an old guest.
func (s *script) apart() {
	for i := range s.steps {
		if i+1 == len(s.steps) || s.steps[i].verb.snaps || s.steps[i+1].verb.snaps {
			s.steps[i].twin = false
		}
	}
}
