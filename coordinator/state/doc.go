// Package state is the replicated state: the raft.FSM that compares revisions and stores. It never runs placement code
// and never reads a clock, so that members of two releases cannot diverge.
//
// Store holds the records in trees that are copied where they change (tidwall/btree), so that readers, watchers and a
// snapshot being written see one immutable moment while the log goes on.
package state
