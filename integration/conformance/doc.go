// Package conformance runs cases of the placement design through the real model, hierarchy, engine and leader. The cases
// are data: each has an id, a kind, what is given and what is expected. The runners know kinds, not cases, so that cases
// from elsewhere run as well: BERTH_CONFORMANCE_DIR lists further folders of them, separated as those of PATH are.
// Paths that are not absolute begin at the top of the project.
//
// Nothing is silently left unchecked. A kind that has no runner fails, a field that the runner does not know fails, and so
// does a case that expects nothing.
//
// Cases that name no owner speak of one customer's VMs.
package conformance
