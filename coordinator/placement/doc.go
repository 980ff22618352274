// Package placement is the pure engine: a view of the cluster and a request in, a decision out.
//
// One pipeline serves every path (start, migrate, drain, balancing, repair): Filter, Order, Gate, Weigh, Select. Every
// stage is recorded in the Decision, for every node. Same view, same policy, same seed: same decision.
package placement
