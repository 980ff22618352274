package planner

import "slices"

// all has every planner.
var all = []Planner{
	firstFit,
	userDispersing,
	userConcentrated,
}

// All has every planner.
func All() []Planner { return slices.Clone(all) }

// ByName finds a planner.
func ByName(name string) (Planner, bool) {
	at := slices.IndexFunc(all, func(p Planner) bool { return p.Name == name })
	if at < 0 {
		return Planner{}, false
	}
	return all[at], true
}
