package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// A guest that a migration has brought here stands still until this node resumes it, and no other node can. So a migration begins only
// when this node has journalled a ticket for it. With the ticket the order to resume is carried out even if the journal takes nothing
// any more: what has to be remembered about it, the VM's epoch here, was written with the ticket.

// isPromised tells whether the command resumes a guest that this node has a ticket for, and is as new as what it obeys.
func (j *job) isPromised() bool {
	if !actionOf(j.command).promised {
		return false
	}
	promised, err := j.journal.promised(j.command)
	return err == nil && promised
}

// promised looks for the ticket of a command, without writing anything.
func (j *journal) promised(command *berthv1.Command) (promised bool, err error) {
	err = j.storage.View(func(tx Tx) error {
		text := tx.Bucket(bucketTickets).Get([]byte(command.GetOperationId()))
		if text == nil || command.GetTerm() < number(tx.Bucket(bucketMeta).Get(keyTerm)) {
			return nil
		}
		var e entry
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		floor := number(tx.Bucket(bucketEpochs).Get([]byte(e.VM)))
		promised = e.VM == command.GetVmId() && e.Epoch == command.GetEpoch() && e.Epoch >= floor
		return nil
	})
	return promised, err
}

const (
	// probeEvery is how often a journal that ails is tried, and probeIdle how often any is.
	probeEvery = 5 * time.Second
	probeIdle  = 20 * time.Second
	// probeSize is how much is written then: more than any entry has, so that the journal fails at this before it fails at one.
	probeSize = 16 << 10
)

var keyProbe = []byte("probe")

// health is whether the journal takes entries. The zero value is that of a journal that works.
type health struct {
	mu  sync.Mutex
	at  time.Time // when the last try was first looked at; zero: nobody has
	err error
}

// note is told how a change ended, and whether it was a try. A full disk still takes what is small, so only a try shows that there is room.
func (h *health) note(err error, try bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || try {
		h.err = err
	}
	if try {
		h.at = time.Time{}
	}
}

// due tells whether the journal should be tried now.
func (h *health) due(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.at.IsZero() {
		h.at = now
	}
	return h.err != nil || now.Sub(h.at) >= probeIdle
}

// Ailing is why the journal takes no entry; nil: it takes them. A node that ails should get no VMs.
func (j *Jobs) Ailing() error {
	j.health.mu.Lock()
	defer j.health.mu.Unlock()
	if j.health.err == nil {
		return nil
	}
	return fmt.Errorf("its agent's journal takes no entry: %w: free space on its disk", j.health.err)
}

// probe keeps trying the journal, and writes what it did not take before.
func (j *Jobs) probe(storage *watched) {
	for j.sleep(probeEvery) == nil {
		for _, one := range j.unwritten.all() {
			if j.journal.answer(one.command, done{result: one.result}, j.now()) == nil {
				j.unwritten.written(one.command)
			}
		}
		if j.health.due(j.now()) {
			storage.try()
		}
	}
}

// watched is a storage whose health is kept. An error of the change itself says nothing about the disk.
type watched struct {
	Storage
	health *health // nil: nobody asks for it yet
}

// Update implements Storage.
func (w *watched) Update(change func(Tx) error) error {
	return w.update(change, false)
}

// try writes more than any entry has.
func (w *watched) try() {
	_ = w.update(func(tx Tx) error { return tx.Bucket(bucketProbe).Put(keyProbe, make([]byte, probeSize)) }, true) // health keeps how it ends
}

func (w *watched) update(change func(Tx) error, try bool) error {
	var refused error
	err := w.Storage.Update(func(tx Tx) error {
		refused = change(tx)
		return refused
	})
	if w.health != nil && refused == nil {
		w.health.note(err, try)
	}
	return err
}

// unwritten are answers that were given and that the journal did not take. The zero value is ready.
type unwritten struct {
	mu      sync.Mutex
	answers map[string]answered
}

type answered struct {
	command *berthv1.Command
	result  *berthv1.CommandResult
}

func (u *unwritten) keep(command *berthv1.Command, result *berthv1.CommandResult) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.answers == nil {
		u.answers = map[string]answered{}
	}
	u.answers[string(keyOf(command.GetOperationId(), command.GetStep()))] = answered{command, result}
}

func (u *unwritten) written(command *berthv1.Command) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.answers, string(keyOf(command.GetOperationId(), command.GetStep())))
}

// of is the answer to a command; nil: there is none.
func (u *unwritten) of(command *berthv1.Command) *berthv1.CommandResult {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.answers[string(keyOf(command.GetOperationId(), command.GetStep()))].result
}

// all are the answers, in the order of their operations.
func (u *unwritten) all() []answered {
	u.mu.Lock()
	defer u.mu.Unlock()
	keys := make([]string, 0, len(u.answers))
	for key := range u.answers {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	all := make([]answered, 0, len(keys))
	for _, key := range keys {
		all = append(all, u.answers[key])
	}
	return all
}
