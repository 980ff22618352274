package affinity

import (
	"maps"
	"slices"

	"berth/coordinator/cluster"
)

// ties are which VMs belong together: a tree of VM IDs for each set, whose root is the set's first ID.
type ties map[string]string

// tiesOf are those of the hard positive rules. oVirt merges such groups too ("unified positive affinity groups").
func tiesOf(groups []cluster.Group) ties {
	t := ties{}
	for i := range groups {
		if g := &groups[i]; g.VMsRule.Hard() && g.VMsRule.Polarity == cluster.Positive {
			t.tie(g.VMs)
		}
	}
	return t
}

func (t ties) tie(vms []string) {
	for _, vm := range vms {
		a, b := t.root(vms[0]), t.root(vm)
		t[max(a, b)] = min(a, b)
	}
}

// root is the first VM of the set that a VM is in, itself if nothing ties it.
func (t ties) root(vm string) string {
	for {
		above, tied := t[vm]
		if !tied || above == vm {
			return vm
		}
		if further, tied := t[above]; tied {
			t[vm] = further
		}
		vm = above
	}
}

// sets are all with more than one VM.
func (t ties) sets() [][]string {
	byRoot := map[string][]string{}
	for _, vm := range slices.Sorted(maps.Keys(t)) {
		byRoot[t.root(vm)] = append(byRoot[t.root(vm)], vm)
	}
	var sets [][]string
	for _, root := range slices.Sorted(maps.Keys(byRoot)) {
		if len(byRoot[root]) > 1 {
			sets = append(sets, byRoot[root])
		}
	}
	return sets
}

// Merged are the sets of VMs that hard positive rules tie together, transitively: groups that share a VM are one. Sets of
// one VM are left out. Each is in the order of IDs, and so are they by their first.
func Merged(groups []cluster.Group) [][]string { return tiesOf(groups).sets() }
