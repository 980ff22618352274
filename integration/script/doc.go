// Package script runs the real berth as its users do, by scripts under testdata: help, wrong usage, and what is said
// when there is no configuration, no certificate or no coordinator. No cluster is needed.
package script
