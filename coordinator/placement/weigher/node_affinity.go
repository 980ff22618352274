package weigher

import (
	"berth/coordinator/model"
	"berth/coordinator/placement/rule"
)

// nodeAffinity weighs 1, and 1 more for each soft rule of nodes that the VM would break on the node ("Soft host to VM affinity
// support"). Where priorities differ, a rule of a higher priority weighs more than all lower ones together.
var nodeAffinity = Weigher{
	Name:   "node-affinity",
	Doc:    "How many soft rules of nodes of its affinity groups the VM would break on the node, by their priorities.",
	Weight: true,
	Wish:   true,
	Silent: func(in *rule.Input) bool { return len(in.OfNodes) == 0 },
	Weigh: func(in *rule.Input, node int, terms *[]rule.Term) float64 {
		weight := 1.0
		for i := range in.OfNodes {
			one := &in.OfNodes[i]
			if !one.BreaksOfNodes(node) {
				continue
			}
			weight += one.Step
			if terms != nil {
				note := "keeps its VMs off it"
				if one.Membership.Nodes.Polarity == model.Positive {
					note = "keeps its VMs on " + one.Membership.Listed
				}
				*terms = append(*terms, rule.Term{Group: one.Membership.Name, Contribution: -one.Step, Note: note})
			}
		}
		return -weight
	},
	Sweep: func(in *rule.Input, scores []float64) {
		everywhere := 1.0
		for i := range in.OfNodes {
			one, change := &in.OfNodes[i], in.OfNodes[i].Step
			if one.Membership.Nodes.Polarity == model.Positive {
				everywhere, change = everywhere+one.Step, -one.Step
			}
			for _, node := range one.Membership.On {
				scores[node] -= change
			}
		}
		for node := range scores {
			scores[node] -= everywhere
		}
	},
	Maximum: func(in *rule.Input, _ int) float64 { return 1 + steps(in.OfNodes) },
}

// steps is what all the rules weigh together.
func steps(rules []rule.SoftRule) float64 {
	sum := 0.0
	for i := range rules {
		sum += rules[i].Step
	}
	return sum
}
