// Package scenario runs what-if scenarios: a file describes a cluster, what is known of its nodes, what runs there and what
// happens next, and the placement engine of the coordinators answers, without any daemon. Nothing leaves the package but
// the report; time is the scenario's own, and chance comes from its seed, so that the same file gives the same report.
//
// The world of a scenario is the one that the coordinators see: records and facts, joined by view.New. What they
// do around a decision is done here with the same functions: a VM's keys are compiled by package estate, what it shows to
// others is recorded when it starts, sticky keys are copied from the node, and a VM that has just come is charged its full
// size until new figures are told.
package scenario
