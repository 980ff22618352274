package weigher

import (
	"slices"

	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
)

// customerKeys is the score of FCO's customer round: proximity times weight, summed over the VM's customer keys and, for
// each, over every VM on the node that shows a key of that name, and over the node's own reserved key of that name.
var customerKeys = Weigher{
	Name: "customer-keys",
	Doc: "How near the customer keys of the VMs on the node, each VM counted, and the node's reserved keys are to what the " +
		"VM's customer keys want.",
	Keys:   true,
	Silent: func(in *rule.Input) bool { return len(in.CustomerKeys) == 0 },
	Weigh: func(in *rule.Input, node int, terms *[]rule.Term) float64 {
		score := 0.0
		met := in.Met
		for k, reserved := range in.Reserved {
			wanted := &in.CustomerKeys[k]
			for ; len(met) > 0 && met[0].Key == k; met = met[1:] {
				at, found := slices.BinarySearch(met[0].Nodes, int32(node))
				if !found {
					continue
				}
				count := met[0].Counts[at]
				contribution := times(key.Contribution(met[0].Value, wanted.Value, wanted.Weight), count)
				score += contribution
				if terms != nil {
					*terms = append(*terms, termOf(wanted, met[0].Value, int(count), contribution))
				}
			}
			if !reserved.Given() {
				continue
			}
			contribution := key.Contribution(reserved.At(node), wanted.Value, wanted.Weight)
			score += contribution
			if terms != nil {
				*terms = append(*terms, termOf(wanted, reserved.At(node), 0, contribution))
			}
		}
		return score
	},
	Sweep: func(in *rule.Input, scores []float64) {
		met := in.Met
		for k, reserved := range in.Reserved {
			wanted := &in.CustomerKeys[k]
			for ; len(met) > 0 && met[0].Key == k; met = met[1:] {
				contribution := key.Contribution(met[0].Value, wanted.Value, wanted.Weight)
				counts := met[0].Counts[:len(met[0].Nodes)]
				for at, node := range met[0].Nodes {
					scores[node] += times(contribution, counts[at])
				}
			}
			if reserved.Given() {
				addOne(scores, reserved, wanted.Value, wanted.Weight/2)
			}
		}
	},
}

// times counts every instance. The conversion keeps the product from being fused with a sum, see key.Contribution.
func times(contribution float64, count int32) float64 { return float64(contribution * float64(count)) }
