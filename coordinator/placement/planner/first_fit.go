package planner

// firstFit takes the clusters by used capacity, the emptiest first.
var firstFit = Planner{
	Name: "first-fit",
	Doc:  "Clusters come by used capacity, the emptiest first; all candidates stand in one tier: the weighers alone decide.",
	Order: func(places []Place, terms Terms) {
		arrange(places, terms.Pods, func(used float64, _, _ int) float64 { return used })
	},
}
