package affinity

import (
	"maps"
	"slices"

	"berth/coordinator/model"
)

// ties says which VMs belong together: one tree of VM IDs for each set, with the first ID as its root.
type ties map[string]string

// tiesOf is the ties of the hard positive rules. oVirt merges such groups as well ("unified positive affinity groups").
func tiesOf(groups []model.Group) ties {
	t := ties{}
	for i := range groups {
		if g := &groups[i]; g.VMsRule.Hard() && g.VMsRule.Polarity == model.Positive {
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

// root is the first VM of a VM's set: the VM itself if nothing ties it.
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

// sets is all sets of more than one VM.
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

// Merged is the sets of VMs that hard positive rules tie together. Groups that share a VM make one set. Sets of one VM are
// left out. VMs are sorted by ID, and sets by their first VM.
func Merged(groups []model.Group) [][]string { return tiesOf(groups).sets() }
