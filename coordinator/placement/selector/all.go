package selector

import "slices"

// all has every selector, the default one first.
var all = []Selector{
	rank,
	percentageFixed,
	percentageDynamic,
	sum,
}

// All has every selector.
func All() []Selector { return slices.Clone(all) }

// ByName finds a selector.
func ByName(name string) (Selector, bool) {
	at := slices.IndexFunc(all, func(s Selector) bool { return s.Name == name })
	if at < 0 {
		return Selector{}, false
	}
	return all[at], true
}
