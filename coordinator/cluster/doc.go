// Package cluster is the pure model: nodes, VMs, resources, accounting, reservations and the view that a decision is
// made on. It has no clock, network, file, logger or random source; time and facts come in as arguments.
//
// Records (Node, VM, Member, Token) are what the replicated state stores; their JSON form is the form of the Raft log
// and of snapshots, so a field is renamed only together with a migration. NodeFacts are soft: what agents reported.
// A View joins both for one moment.
package cluster
