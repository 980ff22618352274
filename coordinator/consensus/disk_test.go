package consensus

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// disk is one member's, over its restarts: a log, values and snapshots. What was acknowledged stays; what is being written
// when the member crashes is there afterwards, whole, or is not, as a transaction of bbolt is.
type disk struct {
	mu        sync.Mutex
	chance    *rand.Rand
	logs      map[uint64]raft.Log
	values    map[string][]byte
	snapshots []*memSnapshot // newest last

	// How slow it is, and what is wrong with it.
	least, spread time.Duration
	hung          chan struct{} // not nil: writes wait until it is closed
	failing       error         // of writes
	fuse          int           // this many writes from now the member crashes: just before it or just after it

	// For the proof that the checks see it: what a disk must not do.
	lies    bool // acknowledges what it loses in a crash
	forgets bool // loses values in a crash: the vote
	undo    []func()
}

func newDisk(seed uint64) *disk {
	return &disk{chance: rand.New(rand.NewPCG(seed, 2)), logs: make(map[uint64]raft.Log), values: make(map[string][]byte)}
}

// handle is what one incarnation of the member has open. It implements backend and raft.SnapshotStore.
type handle struct {
	disk  *disk
	dead  chan struct{}
	died  bool
	fused func() // ends the incarnation, when the disk's fuse has burnt down
}

func (d *disk) open(fused func()) *handle {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.undo, d.fuse = nil, 0
	return &handle{disk: d, dead: make(chan struct{}), fused: fused}
}

// crash makes the incarnation write into the void.
func (h *handle) crash() {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.died {
		return
	}
	if h.disk.lies {
		for _, undo := range slices.Backward(h.disk.undo) {
			undo()
		}
	}
	h.died = true
	close(h.dead)
}

// write makes a change at once, if the incarnation lives.
func (h *handle) write(change func()) error {
	h.disk.mu.Lock()
	if h.died {
		h.disk.mu.Unlock()
		return nil
	}
	burnt := false
	if h.disk.fuse > 0 {
		h.disk.fuse--
		burnt = h.disk.fuse == 0
	}
	if !burnt || h.disk.chance.IntN(2) == 0 {
		change()
	}
	h.disk.mu.Unlock()
	if burnt {
		h.fused()
	}
	return nil
}

// failing is what is wrong with writes of the log and of snapshots; a term that cannot be written is a panic of Raft.
func (h *handle) failing() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.died {
		return nil
	}
	return h.disk.failing
}

// wait is how long a write takes. Half of it passes before the change is on the disk and half before it is acknowledged.
func (h *handle) wait() {
	d := h.disk
	d.mu.Lock()
	takes, hung := (d.least+time.Duration(d.chance.Float64()*float64(d.spread)))/2, d.hung
	d.mu.Unlock()
	if hung != nil {
		select {
		case <-hung:
		case <-h.dead:
			return
		}
	}
	if takes == 0 {
		return
	}
	late := time.NewTimer(takes)
	defer late.Stop()
	select {
	case <-late.C:
	case <-h.dead:
	}
}

// slow makes writes take their time. It is above the sums, which hold a lock that virtual time does not pass.
type slow struct {
	backend
	handle *handle
}

func (s slow) around(write func() error) error {
	s.handle.wait()
	defer s.handle.wait()
	return write()
}

func (s slow) StoreLog(log *raft.Log) error { return s.StoreLogs([]*raft.Log{log}) }

func (s slow) StoreLogs(logs []*raft.Log) error {
	return s.around(func() error { return s.backend.StoreLogs(logs) })
}

// GetLog takes a moment to find nothing. A leader (Raft v1.8.0) that hands over while it replaces the end of its log asks again and
// again for an entry that is gone, without a pause, until the replacement is on the disk; virtual time would stand still.
func (s slow) GetLog(index uint64, into *raft.Log) error {
	err := s.backend.GetLog(index, into)
	if err != nil {
		time.Sleep(time.Millisecond)
	}
	return err
}

func (s slow) DeleteRange(from, to uint64) error {
	return s.around(func() error { return s.backend.DeleteRange(from, to) })
}

func (s slow) Set(key, value []byte) error {
	return s.around(func() error { return s.backend.Set(key, value) })
}

func (s slow) SetUint64(key []byte, value uint64) error {
	return s.around(func() error { return s.backend.SetUint64(key, value) })
}

func (h *handle) read(look func() error) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return look()
}

func (h *handle) FirstIndex() (index uint64, err error) { panic("the witness is above this") }

func (h *handle) LastIndex() (index uint64, err error) {
	err = h.read(func() error {
		for at := range h.disk.logs {
			index = max(index, at)
		}
		return nil
	})
	return index, err
}

func (h *handle) GetLog(index uint64, into *raft.Log) error {
	return h.read(func() error {
		entry, found := h.disk.logs[index]
		if !found {
			return raft.ErrLogNotFound
		}
		*into = entry
		return nil
	})
}

func (h *handle) StoreLog(log *raft.Log) error { return h.StoreLogs([]*raft.Log{log}) }

func (h *handle) StoreLogs(logs []*raft.Log) error {
	if err := h.failing(); err != nil {
		return err
	}
	copied := copyEntries(logs)
	return h.write(func() {
		if h.disk.lies {
			before := maps.Clone(h.disk.logs)
			h.disk.undo = append(h.disk.undo[max(0, len(h.disk.undo)-1):], func() { h.disk.logs = before })
		}
		for _, log := range copied {
			h.disk.logs[log.Index] = *log
		}
	})
}

func (h *handle) DeleteRange(from, to uint64) error {
	return h.write(func() {
		maps.DeleteFunc(h.disk.logs, func(index uint64, _ raft.Log) bool { return index >= from && index <= to })
		h.disk.undo = nil
	})
}

func (h *handle) Set(key, value []byte) error {
	key, value = bytes.Clone(key), bytes.Clone(value)
	return h.write(func() { h.disk.values[string(key)] = value })
}

func (h *handle) Get(key []byte) (value []byte, err error) {
	err = h.read(func() error {
		found := false
		if value, found = h.disk.values[string(key)]; !found {
			return errNoValue
		}
		return nil
	})
	return value, err
}

var errNoValue = fmt.Errorf("not found") // Raft compares the text

func (h *handle) SetUint64([]byte, uint64) error   { panic("the sums are above this") }
func (h *handle) GetUint64([]byte) (uint64, error) { panic("the sums are above this") }
func (h *handle) Close() error                     { return nil }

// memSnapshot is one of the files of snapshots.
type memSnapshot struct {
	meta raft.SnapshotMeta
	data []byte
}

func (h *handle) Create(
	version raft.SnapshotVersion, index, term uint64, configuration raft.Configuration, configurationIndex uint64, _ raft.Transport,
) (raft.SnapshotSink, error) {
	return &memSink{handle: h, file: &memSnapshot{meta: raft.SnapshotMeta{
		Version: version, ID: fmt.Sprintf("%d-%d", term, index), Index: index, Term: term,
		Configuration: configuration.Clone(), ConfigurationIndex: configurationIndex,
	}}}, nil
}

func (h *handle) List() (list []*raft.SnapshotMeta, err error) {
	err = h.read(func() error {
		for _, file := range slices.Backward(h.disk.snapshots) {
			meta := file.meta
			list = append(list, &meta)
		}
		return nil
	})
	return list, err
}

func (h *handle) Open(id string) (meta *raft.SnapshotMeta, from io.ReadCloser, err error) {
	err = h.read(func() error {
		for _, file := range slices.Backward(h.disk.snapshots) {
			if file.meta.ID == id {
				found := file.meta
				meta, from = &found, io.NopCloser(bytes.NewReader(file.data))
				return nil
			}
		}
		return fmt.Errorf("no snapshot %s", id)
	})
	return meta, from, err
}

type memSink struct {
	handle *handle
	file   *memSnapshot
	data   bytes.Buffer
	ended  bool
}

func (s *memSink) Write(b []byte) (int, error) { return s.data.Write(b) }
func (s *memSink) ID() string                  { return s.file.meta.ID }
func (s *memSink) Cancel() error               { s.ended = true; return nil }

func (s *memSink) Close() error {
	if s.ended {
		return nil
	}
	s.ended = true
	s.file.data = s.data.Bytes()
	s.file.meta.Size = int64(len(s.file.data))
	d := s.handle.disk
	s.handle.wait()
	if err := s.handle.failing(); err != nil {
		return err
	}
	return s.handle.write(func() {
		d.snapshots = slices.DeleteFunc(d.snapshots, func(f *memSnapshot) bool { return f.meta.ID == s.file.meta.ID })
		d.snapshots = append(d.snapshots, s.file)
		slices.SortStableFunc(d.snapshots, func(a, b *memSnapshot) int {
			return int(int64(a.meta.Term*1e9+a.meta.Index) - int64(b.meta.Term*1e9+b.meta.Index))
		})
		if extra := len(d.snapshots) - retained; extra > 0 {
			d.snapshots = d.snapshots[extra:]
		}
	})
}
