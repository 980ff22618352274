package consensus

import "errors"

// What a proposal, a read or a change of the members can end in. The texts are for people; errors.Is tells them apart.
var (
	// ErrNotLeader: this member does not lead, or has just stopped to. What was asked for has surely not been done: ask
	// the leader.
	ErrNotLeader = errors.New("this coordinator is not the leader")
	// ErrUnknown: sent, and lost sight of. The command may be committed, now or later. Propose it again with the same
	// key to learn.
	ErrUnknown = errors.New("whether the change was committed is not known")
	// ErrTooLarge: the command is larger than state.MaxCommand and was not sent.
	ErrTooLarge = errors.New("the change is too large for one entry of the log")
	// ErrDiskLow: the disk of the data directory is nearly full; nothing was sent.
	ErrDiskLow = errors.New("the coordinator's disk is nearly full")
	// ErrClock: this member's clock is ahead of most others', and stamps what it commits; nothing was sent.
	ErrClock = errors.New("the coordinator's clock is ahead of most others'")

	// ErrNotEmpty: a store that holds a cluster cannot be bootstrapped.
	ErrNotEmpty = errors.New("the data directory holds a cluster already")
	// ErrDamaged: something that was written cannot be read back.
	ErrDamaged = errors.New("the Raft store is damaged")
	// ErrInUse: another process has the store open.
	ErrInUse = errors.New("the data directory is in use")
	// ErrNoStore: there is no member in the directory.
	ErrNoStore = errors.New("the directory holds no Raft store")
	// ErrForeign: a state or a backup of another cluster.
	ErrForeign = errors.New("it belongs to another cluster")

	// ErrNoMember: there is no such member in the Raft configuration.
	ErrNoMember = errors.New("no such member")
	// ErrQuorum: the change would leave too few reachable voters to decide anything.
	ErrQuorum = errors.New("too few members would be left to decide")
	// ErrNoHeir: each other voter was asked to lead in this term, and none does.
	ErrNoHeir = errors.New("no other member has taken the leadership over")
)
