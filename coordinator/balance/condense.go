package balance

import "slices"

// SkipThreshold is a parameter of condense alone.
const SkipThreshold = "SkipThreshold"

// condense is imbalance with the algorithm "condensed": VMs go to the nodes that are already full, so that other nodes become
// empty.
var condense = Balancer{
	Name: "condense",
	Doc: "VMs on few nodes: it moves them to the nodes that have most while the standard deviation over the mean is less than " +
		"1 less Imbalance.",
	Unit: "1 less the standard deviation over mean",
	Parameters: append(slices.Clip(imbalanceParameters), Parameter{
		Name: SkipThreshold, Default: 0.95, Most: 1,
		Doc: "A node with more than this share promised is full, and does not count any more in whether anything is to be moved; " +
			"where Free is 1, one with less than this share free.",
	}),
	Propose: func(s *Situation, take func(Proposal) bool) string { return s.proposeByImbalance(toCondense, take) },
	Figure:  func(s *Situation) float64 { return s.tally(toCondense).figure() },
}
