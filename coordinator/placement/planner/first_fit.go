package planner

var firstFit = Planner{
	Name: "first-fit",
	Doc:  "All candidates stand in one tier: the weighers alone decide.",
}
