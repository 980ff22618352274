package constraint

import (
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// nodeAffinity is oVirt's filter for hard VM-to-host rules. Several positive groups intersect; a rule without nodes is no
// rule.
var nodeAffinity = Constraint{
	Name: "node-affinity",
	Doc:  "The node is one of those that hard rules of the VM's affinity groups keep it on, and none of those that they keep it off.",
	Check: func(in *rule.Input, node int) rule.Verdict {
		switch b := &in.Bounds; {
		case b.HasWithin && !has(b.Within, node):
			return rule.Refuse("outside")
		case has(b.Outside, node):
			return rule.Refuse("inside")
		}
		return rule.Pass()
	},
	Say: func(in *rule.Input, node int, _ rule.Verdict) string {
		return sayGroups(brokenOfNodes(in, node), func(m *rule.Membership) string {
			if m.Nodes.Polarity == model.Positive {
				return "keeps its VMs on " + m.Listed
			}
			return "keeps its VMs off " + in.Name(node)
		})
	},
	Relax: func(in *rule.Input, node int, _ rule.Verdict) (rule.Relaxation, bool) {
		return withoutGroups(in, node, brokenOfNodes(in, node))
	},
	Sweep: func(in *rule.Input, out []bool) {
		if in.Bounds.HasWithin {
			only(in.Bounds.Within, out)
		}
		for _, node := range in.Bounds.Outside {
			out[node] = true
		}
	},
}

// has tells whether a node is in an ascending set.
func has(set []int32, node int) bool {
	_, found := slices.BinarySearch(set, int32(node))
	return found
}

// only marks every node that is not in an ascending set.
func only(set []int32, out []bool) {
	for node := range out {
		if len(set) > 0 && int(set[0]) == node {
			set = set[1:]
		} else {
			out[node] = true
		}
	}
}

// brokenOfNodes is the groups whose hard rule for nodes refuses the node.
func brokenOfNodes(in *rule.Input, node int) []*rule.Membership {
	var broken []*rule.Membership
	for i := range in.Groups {
		if m := &in.Groups[i]; m.Nodes.Hard() && m.Has(node) == (m.Nodes.Polarity == model.Negative) {
			broken = append(broken, m)
		}
	}
	return broken
}

// sayGroups says what each group does.
func sayGroups(groups []*rule.Membership, does func(m *rule.Membership) string) string {
	text := ""
	for i, m := range groups {
		if i > 0 {
			text += ", and "
		}
		text += "group " + m.Name + " " + does(m)
	}
	return text
}

// withoutGroups is the change that takes the VM out of some groups.
func withoutGroups(in *rule.Input, node int, groups []*rule.Membership) (rule.Relaxation, bool) {
	if len(groups) == 0 {
		return rule.Relaxation{}, false
	}
	var names, ids []string
	for _, m := range groups {
		names, ids = append(names, m.Name), append(ids, m.Group)
	}
	word := "group "
	if len(names) > 1 {
		word = "groups "
	}
	return rule.Relaxation{
		Text:  "without " + word + rule.Enumerate(names, len(names), len(names)) + ", " + in.Name(node) + " would take it",
		Cost:  float64(len(names)),
		Apply: func(_ *view.Figures, in *rule.Input) { in.Groups = rule.WithoutGroups(in.Groups, ids...) },
	}, true
}
