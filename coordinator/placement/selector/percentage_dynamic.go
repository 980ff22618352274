package selector

import "math"

// percentageDynamic is the second of the normalisations that oVirt's design compares: the weight as a whole percentage, cut
// off, of the highest one among the nodes that compete.
var percentageDynamic = Selector{
	Name:    "percentage-dynamic",
	Doc:     "Each weigher gives a node its weight in percent of the highest that it gave; percentages times factors, least wins.",
	Falling: true,
	Share: func(of *Given, shares []float64) {
		highest, maximum := of.highest(), 0.0
		for i := range of.Scores {
			maximum = max(maximum, of.weight(i, highest))
		}
		for i := range of.Scores {
			shares[i] = percentage(of.weight(i, highest), maximum)
		}
	},
}

// percentage of a maximum, cut off to a whole one; 0 of no maximum.
func percentage(weight, maximum float64) float64 {
	if maximum <= 0 {
		return 0
	}
	const whole = 100
	return math.Trunc(weight * whole / maximum)
}
