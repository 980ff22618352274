package balance

import "slices"

// all has every balancer.
var all = []Balancer{
	evenVMCount,
	evenLoad,
	imbalance,
	condense,
}

// Balancers has every balancer.
func Balancers() []Balancer { return slices.Clone(all) }

// ByName finds a balancer. None is none.
func ByName(name string) (Balancer, bool) {
	at := slices.IndexFunc(all, func(b Balancer) bool { return b.Name == name })
	if at < 0 {
		return Balancer{}, false
	}
	return all[at], true
}
