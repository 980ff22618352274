package machine

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"berth/agent/jobs"
)

// armed says that the agent dies at its next journal entry, and whether that one is on the disk then.
type armed int

const (
	unarmed armed = iota
	beforeEntry
	afterEntry
)

// Arm lets the agent die at its next journal entry: before or after it is on the disk.
func (h *Machine) Arm(written bool) {
	if h.armed = beforeEntry; written {
		h.armed = afterEntry
	}
}

// FillJournal fills the disk of the journal, which takes no entry from now on. EmptyJournal makes room.
func (d *disk) FillJournal() {
	d.at.Note("journal is full", d.at.ID, "", "")
	d.full = true
}

// EmptyJournal makes room on the disk of the journal.
func (d *disk) EmptyJournal() {
	d.at.Note("journal has room", d.at.ID, "", "")
	d.full = false
}

// Keeps tells whether the journal has a line.
func (d *disk) Keeps(bucket, key string) bool { return d.buckets[bucket][key] != nil }

// disk is what is left of a journal when its agent dies: everything that was synced.
type disk struct {
	full    bool
	at      *Machine
	buckets map[string]map[string][]byte
}

// Journal is the disk as one life of the agent has it open.
type Journal struct {
	*disk
	agent Agent
}

var errDead = errors.New("the agent is dead")

// View implements jobs.Storage.
func (j Journal) View(read func(jobs.Tx) error) error {
	if j.agent.IsDead() {
		return errDead
	}
	return read(&tx{disk: j.disk})
}

// Update implements jobs.Storage.
func (j Journal) Update(change func(jobs.Tx) error) error {
	h := j.at
	if j.agent.IsDead() {
		return errDead
	}
	if h.armed == beforeEntry {
		h.armed = unarmed
		j.agent.Kill(h.Between(h.Mix.AgentBack/4, h.Mix.AgentBack))
		return errDead
	}
	t := &tx{disk: j.disk}
	if err := change(t); err != nil {
		t.undo()
		return err
	}
	if h.full || h.Chance(h.Mix.JournalFails) {
		t.undo()
		return errors.New("no space left on device")
	}
	if h.armed == afterEntry && t.changed() {
		h.armed = unarmed
		j.agent.Kill(h.Between(h.Mix.AgentBack/4, h.Mix.AgentBack))
		return errDead
	}
	return nil
}

// Close implements jobs.Storage.
func (j Journal) Close() error { return nil }

type tx struct {
	*disk
	before []before
}

type before struct {
	bucket, key string
	value       []byte // nil: there was none
}

func (t *tx) changed() bool { return len(t.before) > 0 }

func (t *tx) undo() {
	for _, was := range slices.Backward(t.before) {
		if was.value == nil {
			delete(t.buckets[was.bucket], was.key)
		} else {
			t.buckets[was.bucket][was.key] = was.value
		}
	}
}

// Bucket implements jobs.Tx.
func (t *tx) Bucket(name string) jobs.Bucket {
	if t.buckets[name] == nil {
		t.buckets[name] = map[string][]byte{}
	}
	return bucket{t, name}
}

type bucket struct {
	tx   *tx
	name string
}

// Get implements jobs.Bucket.
func (b bucket) Get(key []byte) []byte { return b.tx.buckets[b.name][string(key)] }

// Put implements jobs.Bucket. What orders are compared with only grows (I3).
func (b bucket) Put(key, value []byte) error {
	was := b.Get(key)
	if (b.name == "epochs" || b.name == "obeyed" || b.name == "meta") && len(was) == 8 &&
		binary.BigEndian.Uint64(value) < binary.BigEndian.Uint64(was) {
		b.tx.at.Broken("I3", string(key), "%s goes back from %x to %x in the journal of %s", b.name, was, value, b.tx.at.ID)
	}
	b.tx.before = append(b.tx.before, before{b.name, string(key), was})
	b.tx.buckets[b.name][string(key)] = bytes.Clone(value)
	return nil
}

// Delete implements jobs.Bucket.
func (b bucket) Delete(key []byte) error {
	if was := b.Get(key); was != nil {
		b.tx.before = append(b.tx.before, before{b.name, string(key), was})
		delete(b.tx.buckets[b.name], string(key))
	}
	return nil
}

// ForEach implements jobs.Bucket.
func (b bucket) ForEach(visit func(key, value []byte) error) error {
	keys := make([]string, 0, len(b.tx.buckets[b.name]))
	for key := range b.tx.buckets[b.name] {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for _, key := range keys {
		if err := visit([]byte(key), b.tx.buckets[b.name][key]); err != nil {
			return err
		}
	}
	return nil
}
