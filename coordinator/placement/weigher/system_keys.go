package weigher

import (
	"berth/coordinator/cluster"
	"berth/coordinator/placement/key"
	"berth/coordinator/placement/rule"
)

// systemKeys is the score of FCO's system rounds: proximity times weight, summed over the node's keys that the VM has a
// system key for.
var systemKeys = Weigher{
	Name: "system-keys",
	Doc:  "How near the node's system keys (#RAM, #CPU, #LOAD) are to the values that the VM's system keys want.",
	Weigh: func(in *rule.Input, node *cluster.NodeView, terms *[]rule.Term) float64 {
		score := 0.0
		specials := key.SpecialsOf(node)
		for i := range specials {
			present := &specials[i]
			for j := range in.SystemKeys {
				wanted := &in.SystemKeys[j]
				if wanted.Name != present.Name {
					continue
				}
				proximity := 0.0
				if present.Known {
					proximity = key.Proximity(wanted.Value, present.Value.Value)
				}
				score += proximity * wanted.Weight
				if terms != nil {
					*terms = append(*terms, rule.Term{
						Key: wanted.Name, Raw: present.Value.Value, Proximity: proximity, Weight: wanted.Weight,
						Contribution: proximity * wanted.Weight, Unknown: !present.Known,
					})
				}
			}
		}
		return score
	},
}
