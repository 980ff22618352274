package state

import (
	"encoding/hex"
	"io"

	"github.com/hashicorp/raft"
)

// FSM is the side of the store that Raft drives. Nobody else may call it.
func (s *Store) FSM() raft.FSM { return fsm{s} }

type fsm struct{ store *Store }

// Apply implements raft.FSM. The answer is a Result, or for an entry with several commands a []Result in their order. An
// entry that this release cannot read, and an index that runs backwards, panic: the member has to stop, since it cannot have
// the state that the others have.
func (f fsm) Apply(entry *raft.Log) any {
	commands, err := f.store.read(entry.Data)
	if err != nil {
		halt("entry %d of the Raft log cannot be applied: %v; this coordinator must stop: "+
			"run the release that the leader runs", entry.Index, err)
	}
	results := f.store.apply(commands, entry.Index)
	if len(results) == 1 {
		return results[0]
	}
	return results
}

// Snapshot implements raft.FSM. It is one pointer; it is written while Apply goes on.
func (f fsm) Snapshot() (raft.FSMSnapshot, error) { return persisted{f.store.Snapshot()}, nil }

// Restore implements raft.FSM: the present state is replaced as a whole, or not at all.
func (f fsm) Restore(from io.ReadCloser) error {
	defer from.Close()
	restored, err := Load(from)
	if err != nil {
		return err
	}
	f.store.writer.Lock()
	defer f.store.writer.Unlock()
	f.store.hashes = trail(nil).add(restored.Snapshot())
	f.store.publish(restored.Snapshot())
	return nil
}

type persisted struct{ snapshot *Snapshot }

// Persist implements raft.FSMSnapshot.
func (p persisted) Persist(sink raft.SnapshotSink) error {
	if err := p.snapshot.Save(sink); err != nil {
		_ = sink.Cancel() // the first error is the one to tell
		return err
	}
	return sink.Close()
}

// Release implements raft.FSMSnapshot.
func (persisted) Release() {}

// Hash is the running hash of the state at this moment, in hexadecimal; empty before the first command. It covers
// every change of every command since the cluster was made, so it is comparable between members only at equal Index.
func (x *Snapshot) Hash() string { return hex.EncodeToString(x.applied.Hash) }
