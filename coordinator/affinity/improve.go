package affinity

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Improves tells whether the soft rules hold better once the VM is on the target instead of where it is (SEMANTICS.md,
// "Enforcement", point 4). First says which rules weigh more in the policy. They are asked first; the others decide only
// where these make no difference, so that no two repairs undo each other.
//
// Of the rules for nodes, the highest priority that differs decides, and fewer broken rules are better. The rules for VMs are
// compared in the same order. They hold better if the target has more VMs that should be together with the VM, or if the
// target is free of VMs that it should be apart from and its own node is not.
func Improves(groups []model.Group, vm, target string, where Where, first Scope) bool {
	return gain(groups, vm, target, where, first) > 0
}

// Worsens tells whether the soft rules hold worse once the VM is on the target: more rules for nodes are broken, or it has
// more VMs near it that it should be apart from, or fewer that it should be with. A move that neither improves nor worsens
// makes no difference.
func Worsens(groups []model.Group, vm, target string, where Where, first Scope) bool {
	return gain(groups, vm, target, where, first) < 0
}

// gain is positive where the soft rules hold better on the target, and negative where they hold worse.
func gain(groups []model.Group, vm, target string, where Where, first Scope) int {
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

// levels splits the groups of the VM by priority, the highest first.
func levels(groups []model.Group, vm string) [][]*model.Group {
	var own []*model.Group
	for i := range groups {
		if has(groups[i].VMs, vm) {
			own = append(own, &groups[i])
		}
	}
	slices.SortStableFunc(own, higherFirst)
	var all [][]*model.Group
	for _, g := range own {
		if last := len(all) - 1; last >= 0 && all[last][0].Priority == g.Priority {
			all[last] = append(all[last], g)
			continue
		}
		all = append(all, []*model.Group{g})
	}
	return all
}

// nodesGain is how many fewer soft rules for nodes are broken on the target.
func nodesGain(level []*model.Group, source, target string) int {
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

// vmsGain is what soft rules for VMs win on the target, in pairs of VMs. What a rule that keeps VMs apart wins counts only if
// the target is free of them: a move from many to fewer leaves the rule broken. It never counts more pairs than there are, so
// with every move that this finds good the number of satisfied pairs grows.
func vmsGain(level []*model.Group, vm, source, target string, where Where) int {
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
		case g.VMsRule.Polarity == model.Positive:
			gain += to - from
		case to == 0 || to > from:
			gain += from - to
		}
	}
	return gain
}
