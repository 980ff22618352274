package affinity

import (
	"cmp"
	"slices"

	"berth/coordinator/cluster"
)

// Where tells on which node each VM is, by ID; VMs that do not run are left out.
type Where map[string]string

// Names puts IDs of VMs and nodes in words. What it does not know it returns as it is.
type Names func(id string) string

// Scope is which of a group's two rules something is about.
type Scope string

// The scopes.
const (
	OfVMs   Scope = "vms"
	OfNodes Scope = "nodes"
)

// nodesRule is the group's rule of nodes as it counts: without a node it is none. oVirt's filter would let no node pass, and
// its enforcement would look away.
func nodesRule(g *cluster.Group) cluster.Rule {
	if len(g.Nodes) == 0 {
		return cluster.Rule{Polarity: cluster.Disabled, Enforcing: g.NodesRule.Enforcing}
	}
	return g.NodesRule
}

// byName are the groups in the order of their names, so that no answer depends on the order of the question.
func byName(groups []cluster.Group) []cluster.Group {
	sorted := slices.Clone(groups)
	slices.SortFunc(sorted, func(a, b cluster.Group) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return sorted
}

func has(ascending []string, id string) bool {
	_, found := slices.BinarySearch(ascending, id)
	return found
}

// unique sorts and leaves out what is there twice.
func unique(ids []string) []string {
	slices.Sort(ids)
	return slices.Compact(ids)
}

// common is what two ascending lists both have.
func common(a, b []string) []string {
	var both []string
	for _, id := range a {
		if has(b, id) {
			both = append(both, id)
		}
	}
	return both
}

// without is what only the first of two ascending lists has.
func without(a, b []string) []string {
	var rest []string
	for _, id := range a {
		if !has(b, id) {
			rest = append(rest, id)
		}
	}
	return rest
}
