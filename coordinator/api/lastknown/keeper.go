package lastknown

import (
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/consensus"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// Keeper keeps what the leader told last. It is safe for concurrent use, and its zero value is ready.
type Keeper struct {
	mu     sync.Mutex
	at     time.Time // when that was, by this coordinator's clock; zero: nothing was told
	digest string
	heard  *berthv1.Heard
	told   *state.Snapshot // with the nodes that the leader knew then, and no others; nil: that is not known
	made   *soft           // of the last snapshot that was asked about
}

// Digest is that of what the leader told last, for the next report; empty: it has told nothing.
func (k *Keeper) Digest() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.digest
}

// Keep takes what the leader has told at a time. A nil heard with the digest of what is kept says that it is so still. A leader of an
// earlier release tells neither, and changes nothing here. The leader knew each node of the snapshot then, and has told nothing of those
// that were enrolled later; nil: it knew those that it knew before at least.
func (k *Keeper) Keep(heard *berthv1.Heard, digest string, at time.Time, of *state.Snapshot) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case heard != nil:
		k.heard, k.digest, k.at, k.made = heard, digest, at, nil
	case digest != "" && digest == k.digest:
		k.at, k.made = at, nil
	default:
		return
	}
	if of != nil {
		k.told = of
	}
}

// Within is a member's snapshot if the leader, which had come as far as an index, knew each of its nodes; else nil. A leader that does not
// tell its index knew them.
func Within(snapshot *state.Snapshot, index uint64) *state.Snapshot {
	if index > 0 && index < snapshot.Index() {
		return nil
	}
	return snapshot
}

// Of is the moment that a coordinator without a leader answers from, and as of when that is. The name is that of the coordinator.
func (k *Keeper) Of(name string, snapshot *state.Snapshot, stats consensus.Stats, now time.Time) (*answer.Moment, *berthv1.LastKnown) {
	k.mu.Lock()
	defer k.mu.Unlock()
	heard, at := k.heard, k.at
	only := k.at.IsZero()
	switch {
	case !only:
	case stats.LastContact >= 0: // a leader that told nothing was heard, so the records are as of then
		at = now.Add(-stats.LastContact)
	default:
		at = lastChange(snapshot)
	}
	if k.made == nil || k.made.snapshot != snapshot {
		k.made = newSoft(snapshot, heard, k.told, at)
	}
	known := &berthv1.LastKnown{AnsweredBy: name, RecordsOnly: only}
	if !at.IsZero() {
		known.At, known.AgeSeconds = timestamppb.New(at), max(now.Sub(at), 0).Seconds()
	}
	return &answer.Moment{Snapshot: snapshot, At: at, Soft: k.made}, known
}

// lastChange is when something happened last, by the records; zero: they tell of nothing.
func lastChange(snapshot *state.Snapshot) time.Time {
	for _, event := range snapshot.Events(1) {
		return event.At
	}
	return time.Time{}
}
