package affinity

import (
	"cmp"
	"slices"

	"berth/coordinator/cluster"
)

// Improves tells whether the soft rules are better kept once the VM is on the target instead of where it is: placement
// semantics 4.4, "a soft candidate counts only if". First says which rules are asked first, those that weigh more in the
// policy: the others decide only where these make no difference, so that no two repairs undo each other.
//
// Of the rules of nodes, the higher priority that differs decides: fewer of them broken than now. Of the rules of VMs
// likewise: more that should be together with the VM are on the target than where it is, or the target is free of those that
// it should be apart from and its own node is not.
func Improves(groups []cluster.Group, vm, target string, where Where, first Scope) bool {
	return gain(groups, vm, target, where, first) > 0
}

// Worsens tells whether the soft rules are worse kept once the VM is on the target: fewer of the nodes' rules, or more VMs with it
// that it should be apart from, or fewer that it should be with. A move that neither improves nor worsens makes no difference.
func Worsens(groups []cluster.Group, vm, target string, where Where, first Scope) bool {
	return gain(groups, vm, target, where, first) < 0
}

// gain is positive where the soft rules are better kept on the target, and negative where they are worse kept.
func gain(groups []cluster.Group, vm, target string, where Where, first Scope) int {
	source, runs := where[vm]
	if !runs || source == target {
		return 0
	}
	nodes, vms := 0, 0
	for _, level := range levels(groups, vm) {
		if nodes == 0 {
			nodes = nodesGain(level, source, target)
		}
		if vms == 0 {
			vms = vmsGain(level, vm, source, target, where)
		}
	}
	if first == OfVMs {
		return cmp.Or(vms, nodes)
	}
	return cmp.Or(nodes, vms)
}

// levels are the groups that the VM is in, those of one priority at a time, the highest first.
func levels(groups []cluster.Group, vm string) [][]*cluster.Group {
	var own []*cluster.Group
	for i := range groups {
		if has(groups[i].VMs, vm) {
			own = append(own, &groups[i])
		}
	}
	slices.SortStableFunc(own, higherFirst)
	var all [][]*cluster.Group
	for _, g := range own {
		if last := len(all) - 1; last >= 0 && all[last][0].Priority == g.Priority {
			all[last] = append(all[last], g)
			continue
		}
		all = append(all, []*cluster.Group{g})
	}
	return all
}

// nodesGain is how many soft rules of nodes less are broken on the target.
func nodesGain(level []*cluster.Group, source, target string) int {
	gain := 0
	for _, g := range level {
		if !nodesRule(g).Soft() {
			continue
		}
		switch from, to := onRight(g, source), onRight(g, target); {
		case !from && to:
			gain++
		case from && !to:
			gain--
		}
	}
	return gain
}

// vmsGain is what soft rules of VMs win on the target, in pairs of VMs. What a rule that keeps VMs apart wins counts only
// if the target is free of them: a move from a crowd into a smaller one keeps the rule broken. It never counts more than
// there is, so the pairs that are as they should be grow with every move that this finds good.
func vmsGain(level []*cluster.Group, vm, source, target string, where Where) int {
	gain := 0
	for _, g := range level {
		if !g.VMsRule.Soft() {
			continue
		}
		from, to := 0, 0
		for _, other := range g.VMs {
			switch node := where[other]; {
			case other == vm:
			case node == source:
				from++
			case node == target:
				to++
			}
		}
		switch {
		case g.VMsRule.Polarity == cluster.Positive:
			gain += to - from
		case to == 0 || to > from:
			gain += from - to
		}
	}
	return gain
}
