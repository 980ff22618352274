package state

import "slices"

// Members that applied the same log must have the same state. Whether they have is told by the running hash: each
// command adds what it changed, row by row as this member stored it, and what it answered, to the hash of all commands
// before. So two members whose states have parted at any entry have different hashes at every later one, over restarts
// and snapshots, and one comparison now and then finds what happened at any time before. A hash of the bytes of the log
// would be equal; a hash of the whole state would cost its size each time.

// Check compares: a member that had another state at that index stops when it applies the command. The proposer
// makes sure first that most members had this one, or it would stop those that are right.
type Check struct {
	Index uint64 `json:"index"` // of a command
	Hash  string `json:"hash"`  // as Snapshot.Hash gave it there
}

// HashesKept is for how many commands back a member knows what its hash was. A check of an older one says nothing to it.
const HashesKept = 4096

// trail is the hashes of the last commands, oldest first.
type trail []Check

func (t trail) add(x *Snapshot) trail {
	if len(t) >= 2*HashesKept {
		t = slices.Delete(t, 0, len(t)-HashesKept)
	}
	return append(t, Check{Index: x.Index(), Hash: x.Hash()})
}

// at is the hash at an index, and whether it is known.
func (t trail) at(index uint64) (hash string, known bool) {
	at, known := slices.BinarySearchFunc(t, index, func(c Check, index uint64) int {
		switch {
		case c.Index < index:
			return -1
		case c.Index > index:
			return 1
		}
		return 0
	})
	if !known {
		return "", false
	}
	return t[at].Hash, true
}

// HashAt is the hash that this member had after the command at an index. It is known for the last HashesKept commands
// since the start or the last restored snapshot, that one's own included.
func (s *Store) HashAt(index uint64) (hash string, known bool) {
	s.writer.Lock()
	defer s.writer.Unlock()
	return s.hashes.at(index)
}

// compare ends this member if it has parted from the others. The caller holds writer.
func (s *Store) compare(check *Check, index uint64) {
	if had, known := s.hashes.at(check.Index); known && had != check.Hash {
		halt("this coordinator's state has parted from that of the others: at entry %d of the Raft log its hash was %s, theirs was %s "+
			"(compared by entry %d); it must stop: remove it with 'berth coordinator delete' on another one, empty its data "+
			"directory and let it join again, and report this as a fault of Berth", check.Index, had, check.Hash, index)
	}
}
