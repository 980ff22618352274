// Package stage is what every part of a run stands on: virtual time, in which one piece of code runs at any moment; chance, as the
// seed gives it; how often things go wrong by themselves; and the trace of what happened, with the invariants that were broken.
package stage
