// Package consensus replicates commands: hashicorp/raft with its log in bbolt, its links in mutual TLS and the leader's
// care for the members.
//
// Goroutines, and what each owns:
//
//   - Raft's own: the main loop (terms, votes, the log), the FSM (the only one that applies to state.Store), snapshots,
//     and on the leader two for each other member (replication, heartbeat).
//   - The listener's accept loop, and one for each connection while it shakes hands. An accepted connection then belongs
//     to the transport's handler, one goroutine for each; the listener keeps the list of them, to close those of removed
//     members and all at the end.
//   - watchLeadership owns the order of Leadership: it reads Raft's notices, adds the term, and queues what the reader
//     has not taken yet.
//   - lead runs while this member leads: it waits for a barrier, stamps the cluster's ID into a new state, promotes
//     joined members, raises the feature level, and has the log compare the members' states.
//   - upkeep looks at the free space, hands the leadership on when it runs low, and closes connections of removed
//     members.
//   - A call that waits for Raft (Propose, Barrier, ...) has a goroutine until Raft answers, because Raft's futures
//     cannot be left: the caller can, with its context.
//
// Storage faults end the process, by Config.Fatal: a member that cannot write must not go on, and an fsync that failed is
// never tried again.
package consensus
