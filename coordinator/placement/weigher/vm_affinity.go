package weigher

import (
	"fmt"

	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
	"berth/coordinator/view"
)

// vmAffinity puts nodes in order as oVirt's VmAffinityGroups does: by the priorities of the rules of VMs that the VM would
// break there, soft or hard; then, of the members of its positive groups, by how many immovable ones are there; then by how
// many there are. The weight counts up to the second only where the first is equal, and to the third where both are.
var vmAffinity = Weigher{
	Name: "vm-affinity",
	Doc: "How many rules of VMs of its affinity groups the VM would break on the node, by their priorities, and how many " +
		"members of its positive groups are there, immovable ones first.",
	Weight: true,
	Wish:   true,
	Silent: func(in *rule.Input) bool { return len(in.OfVMs) == 0 },
	Weigh: func(in *rule.Input, node int, terms *[]rule.Term) float64 {
		ofBroken, ofFixed := places(in)
		weight := 1 + float64(in.Fixed)*ofFixed + float64(in.Members)
		for i := range in.OfVMs {
			one := &in.OfVMs[i]
			here, there := one.Membership.At(node)
			if there && one.Membership.VMs.Polarity == model.Positive {
				weight -= float64(here.Fixed)*ofFixed + float64(here.Stay())
			}
			if !one.BreaksOfVMs(node) {
				continue
			}
			weight += one.Step * ofBroken
			if terms != nil {
				note := "keeps its VMs together, and none of the others is there"
				if there && one.Membership.VMs.Polarity == model.Negative {
					note = fmt.Sprintf("keeps its VMs apart, and has %d there", here.Count)
				}
				*terms = append(*terms, rule.Term{Group: one.Membership.Name, Contribution: -one.Step * ofBroken, Note: note})
			}
		}
		return -weight
	},
	Sweep: func(in *rule.Input, scores []float64) {
		ofBroken, ofFixed := places(in)
		everywhere := 1 + float64(in.Fixed)*ofFixed + float64(in.Members)
		for i := range in.OfVMs {
			one := &in.OfVMs[i]
			positive := one.Membership.VMs.Polarity == model.Positive
			if positive && one.BreaksOfVMs(view.Elsewhere) {
				everywhere += one.Step * ofBroken
			}
			for p := range one.Membership.Others {
				switch here := &one.Membership.Others[p]; {
				case here.Node < 0:
				case !positive:
					scores[here.Node] -= one.Step * ofBroken
				case here.Stay() > 0:
					scores[here.Node] += one.Step*ofBroken + float64(here.Fixed)*ofFixed + float64(here.Stay())
				}
			}
		}
		for node := range scores {
			scores[node] -= everywhere
		}
	},
	Maximum: func(in *rule.Input, _ int) float64 {
		ofBroken, ofFixed := places(in)
		return 1 + steps(in.OfVMs)*ofBroken + float64(in.Fixed)*ofFixed + float64(in.Members)
	},
}

// places is what one broken rule of the lowest priority and one immovable member weigh: more than all that comes after them.
func places(in *rule.Input) (ofBroken, ofFixed float64) {
	ofFixed = float64(in.Members + 1)
	return ofFixed * float64(in.Fixed+1), ofFixed
}
