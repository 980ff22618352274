package weigher

import "slices"

// all has every weigher.
var all = []Weigher{
	systemKeys,
	customerKeys,
	nodeAffinity,
	vmAffinity,
	preferredNodes,
	cpuLoad,
	cpuPressure,
	memoryFree,
	vmCount,
}

// All has every weigher.
func All() []Weigher { return slices.Clone(all) }

// ByName finds a weigher.
func ByName(name string) (Weigher, bool) {
	at := slices.IndexFunc(all, func(w Weigher) bool { return w.Name == name })
	if at < 0 {
		return Weigher{}, false
	}
	return all[at], true
}
