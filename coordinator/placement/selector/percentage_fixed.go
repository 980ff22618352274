package selector

// percentageFixed is the first of the normalisations that oVirt's design compares: the weight as a whole percentage, cut off,
// of a maximum that does not depend on what other nodes weigh.
var percentageFixed = Selector{
	Name:    "percentage-fixed",
	Doc:     "Each weigher gives a node its weight in percent of the weigher's maximum; percentages times factors, least wins.",
	Falling: true,
	Bounded: true,
	Share: func(of *Given, shares []float64) {
		for i := range of.Scores {
			shares[i] = percentage(of.weight(i, of.Maximum[i]), of.Maximum[i])
		}
	},
}
