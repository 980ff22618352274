// Package daemon is the coordinator as a process: its configuration, its place on the disk, how a cluster is made (Init)
// and joined (Join), and how everything is wired together, led and stopped (Run).
package daemon
