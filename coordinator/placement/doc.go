// Package placement is the pure engine: the nodes of a cluster as columns and a request in, a decision out.
//
// One pipeline serves every path (start, migrate, drain, balancing, repair): Filter, Order, Gate, Weigh, Select. The
// constraints leave candidates; the planner puts them in tiers; the gate lets those of the first round in that has any, by
// the score of the system keys; the weighers decide among these, by the customer keys alone or as a selector combines them;
// equals are drawn. Same columns, same request, same policy, same seed: same decision, to the last bit.
//
// Engine.Choose finds the node and allocates nothing. Place makes a Decision of it, which keeps the figures that it was
// made on. Explain works out from them what every stage did to every node, Replay makes the decision again, WhyNot answers
// for one node, and Capacity places on until nothing fits.
//
// Rules stand in the packages constraint, weigher, planner and selector, one a file. A rule judges one node; it may have a fast form
// that goes over a whole column, and then both say the same.
package placement
