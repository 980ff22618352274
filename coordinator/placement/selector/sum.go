package selector

// sum adds up what weighers give as it is: a weigher with large figures decides alone. It was oVirt's before ranks.
var sum = Selector{
	Name:  "sum",
	Doc:   "Each weigher gives a node its score, or its weight taken off; scores times factors, most wins.",
	Share: func(of *Given, shares []float64) { copy(shares, of.Scores) },
}
