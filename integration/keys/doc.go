// Package keys proves on a lab of real hypervisors what placement keys promise: VMs that repel each other land apart, a
// premium key attracts, a sticky key brings a VM back, strangers never meet, each memory ledger refuses by itself, and every
// answer can be asked why.
package keys
