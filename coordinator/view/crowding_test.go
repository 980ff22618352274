package view

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth/coordinator/model"
)

// What may be passed is told once it is passed, and not before.
func TestCrowdingIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []Crowd
		want  []string
	}{
		"all that may be": {[]Crowd{{Node: "hv1", CPUs: 2, Limit: 16, VCPUs: 16, Widest: 2, VM: "web"}}, nil},
		"CPUs not known":  {[]Crowd{{Node: "hv1", VCPUs: 16, Widest: 2, VM: "web"}}, nil},
		"the ratio passed": {
			[]Crowd{{Node: "hv1", CPUs: 2, Limit: 16, VCPUs: 17}},
			[]string{"more vCPUs are promised than the CPUs times cpu_ratio: hv1 17 of 16"},
		},
		"a VM too wide": {
			[]Crowd{{Node: "hv1", CPUs: 2, Limit: 16, VCPUs: 3, Widest: 3, VM: "web"}},
			[]string{"more vCPUs in one VM than its node has CPUs: web 3 on hv1, which has 2"},
		},
		"many": {
			[]Crowd{
				{Node: "a", CPUs: 1, Limit: 1, VCPUs: 2},
				{Node: "b", CPUs: 1, Limit: 1, VCPUs: 2},
				{Node: "c", CPUs: 1, Limit: 1, VCPUs: 2},
				{Node: "d", CPUs: 1, Limit: 1, VCPUs: 2},
				{Node: "e", CPUs: 1, Limit: 1.5, VCPUs: 2},
				{Node: "f", CPUs: 1, Limit: 1, VCPUs: 2},
			},
			[]string{"more vCPUs are promised than the CPUs times cpu_ratio: a 2 of 1, b 2 of 1, c 2 of 1, d 2 of 1, e 2 of 1.5, and 1 more"},
		},
	} {
		if diff := cmp.Diff(c.want, Crowding(c.nodes)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	node := NodeView{
		Node: model.Node{Name: "hv1"}, Facts: model.NodeFacts{Inventory: true, CPUs: 2}, VCPULimit: 8, VCPUsUsed: 9,
		Allocations: []Allocation{{Name: "leaves", VCPUs: 5, Leaving: true}, {Name: "stays", VCPUs: 4}},
	}
	if diff := cmp.Diff(Crowd{Node: "hv1", CPUs: 2, Limit: 8, VCPUs: 9, Widest: 4, VM: "stays"}, node.Crowd()); diff != "" {
		t.Error(diff)
	}
	if node.Facts.Inventory = false; node.Crowd().CPUs != 0 {
		t.Error("CPUs of a node that has told none")
	}
}
