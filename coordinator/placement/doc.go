// Package placement is the engine: it takes the nodes of a cluster as columns and a request, and returns a decision. It is
// pure.
//
// Every path (start, migration, drain, balancing, repair, restart) uses one pipeline: Filter, Order, Prefer, Gate, Weigh,
// Select. The constraints leave candidates. The planner puts them in tiers. Prefer keeps those of a tier that break the least of
// the VM's soft rules. The gate compares the scores of the system keys with
// thresholds and lets in the nodes of the first round that has any. The weighers decide among these, by the customer keys
// alone or as a selector combines them. Equal nodes are drawn. The same columns, request, policy and seed give the same
// decision, to the last bit. SEMANTICS.md says what the rules mean.
//
// Engine.Choose finds the node and allocates nothing. Place makes a Decision of it and keeps the figures that it was made on.
// From these, Explain computes what every stage did to every node, and Replay makes the decision again. WhyNot answers for
// one node, and Capacity counts how many more VMs fit. A VM that several clusters may take is placed by package across.
//
// The rules are in the packages constraint, weigher, planner and selector, one in each file. A rule judges one node. It may
// also have a fast form for a whole column, and both must agree.
package placement
