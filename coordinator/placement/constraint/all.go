package constraint

import "slices"

// all has every constraint, in the order in which explanations show them.
var all = []Constraint{
	running,
	fresh,
	memoryPromised,
	memoryPhysical,
	vcpusPromised,
	pin,
	excluded,
	localStorage,
	movable,
	among,
	leave,
	nodeAffinity,
	vmAffinity,
	storage,
	samePool,
	network,
	cpuModel,
	answering,
	headroom,
}

// All has every constraint.
func All() []Constraint { return slices.Clone(all) }

// ByName finds a constraint.
func ByName(name string) (Constraint, bool) {
	at := slices.IndexFunc(all, func(c Constraint) bool { return c.Name == name })
	if at < 0 {
		return Constraint{}, false
	}
	return all[at], true
}
