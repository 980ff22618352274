package affinity

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
)

// Where tells on which node each VM is, by ID; VMs that do not run are left out.
type Where map[string]string

// Names turns IDs of VMs and nodes into names. An ID that it does not know is returned as it is.
type Names func(id string) string

// Scope is which of a group's two rules something is about.
type Scope string

// The scopes.
const (
	OfVMs   Scope = "vms"
	OfNodes Scope = "nodes"
)

// nodesRule is the group's rule for nodes as it counts: a rule without nodes counts as none. oVirt is of two minds here: its
// filter would refuse every node, and its enforcement skips the group.
func nodesRule(g *model.Group) model.Rule {
	if len(g.Nodes) == 0 {
		return model.Rule{Polarity: model.Disabled, Enforcing: g.NodesRule.Enforcing}
	}
	return g.NodesRule
}

// byName sorts the groups by name, so that no answer depends on the order in which they were given.
func byName(groups []model.Group) []model.Group {
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b model.Group) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return sorted
}

func has(ascending []string, id string) bool {
	_, found := slices.BinarySearch(ascending, id)
	return found
}

// unique sorts and removes duplicates.
func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// common is the intersection of two ascending lists.
func common(a, b []string) []string {
	var both []string
	for _, id := range a {
		if has(b, id) {
			both = append(both, id)
		}
	}
	return both
}

// without is the first of two ascending lists without the members of the second.
func without(a, b []string) []string {
	var rest []string
	for _, id := range a {
		if !has(b, id) {
			rest = append(rest, id)
		}
	}
	return rest
}
