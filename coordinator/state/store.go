package state

// Snapshot is one immutable moment of the state.
type Snapshot struct{}
