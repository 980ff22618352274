package state

import (
	"slices"
	"sync"
	"sync/atomic"

	"berth/coordinator/packing"
)

// Store is the replicated state of one member. Its records change only through FSM, which Raft drives; everybody else
// reads. All methods may be called from any goroutine.
type Store struct {
	writer sync.Mutex // one Apply or Restore at a time
	now    atomic.Pointer[Snapshot]
	hashes trail // under writer
	known  packing.Known[[]*Command]
}

// Foresee gives the store, and it alone, the commands of an entry that this process proposes, as Written has them; one that is nil: Apply
// decodes the entry as any other. Otherwise it does not, if it gets this very slice. Forget is called when the entry's fate is known.
func (s *Store) Foresee(entry []byte, commands []*Command) (forget func()) {
	return s.known.Keep(entry, commands)
}

func (s *Store) read(entry []byte) ([]*Command, error) {
	if commands, known := s.known.Take(entry); known && !slices.Contains(commands, nil) {
		return commands, nil
	}
	return DecodeEntry(entry)
}

// NewStore makes an empty state.
func NewStore() *Store {
	store := &Store{}
	store.now.Store(newSnapshot(newTables().draft(), appliedRow{}))
	return store
}

// Snapshot is the state of this moment. It costs nothing and never changes.
func (s *Store) Snapshot() *Snapshot { return s.now.Load() }

// Changed is closed when the next command has been applied, or a snapshot restored. To miss nothing, take it before
// the Snapshot that is read, or take that Snapshot's own Changed.
func (s *Store) Changed() <-chan struct{} { return s.now.Load().moved }

// Hash is the running hash of the present state. See Snapshot.Hash.
func (s *Store) Hash() string { return s.now.Load().Hash() }

// publish makes a moment the present one. The caller holds writer.
func (s *Store) publish(next *Snapshot) {
	last := s.now.Swap(next)
	close(last.moved)
}

// newSnapshot is the moment that a draft and what was applied make. Nothing is drafted there any more.
func newSnapshot(rows *draft, applied appliedRow) *Snapshot {
	rows.insert(tableApplied, &applied)
	return &Snapshot{
		tables: rows.tables, Records: Records{rows.tables}, Access: Access{rows.tables}, History: History{rows.tables},
		applied: applied, moved: make(chan struct{}), line: new(line),
	}
}
