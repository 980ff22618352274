// Package script runs the real berth as its users do, by scripts under testdata: help, wrong usage, what is said when there
// is no configuration, no certificate or no coordinator, and an estate on a coordinator without nodes. No host is needed.
package script
