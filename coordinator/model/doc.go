// Package model has the records that Berth stores and the facts that agents report: nodes, VMs, resources, keys, groups,
// volumes, plans and settings, and how each is validated. It is pure: no clock, network, file, logger or random source; time
// and facts come in as arguments.
//
// The JSON form of a record (Node, VM, Resource and so on) is its form in the Raft log and in snapshots, so a field is renamed
// only together with a migration. NodeFacts are never stored. Package view joins records and facts for one moment.
package model
