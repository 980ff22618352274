// Package coordinator is the commands about the coordinators themselves: who is a member, how the cluster does, and its
// snapshots.
package coordinator
