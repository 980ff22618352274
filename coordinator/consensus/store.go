package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"
	bbolterrors "go.etcd.io/bbolt/errors"
)

// storeFile is Raft's log and its votes, below the data directory.
const storeFile = "log.db"

// storeLimit is how long one access to the store may take. Raft's heartbeats do not wait for the disk, so a leader whose
// disk hangs would lead on for ever, doing nothing.
const storeLimit = 10 * time.Second

// backend is where Raft keeps its log, its term and its vote.
type backend interface {
	raft.LogStore
	raft.StableStore
	Close() error
}

// openBolt opens the file, and makes it if it is not there.
func openBolt(dir string) (backend, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, storeFile)
	var store *raftboltdb.BoltStore
	err := protect(func() (err error) {
		store, err = raftboltdb.New(raftboltdb.Options{
			Path: path,
			// The free list would be written with every entry of the log; without it opening takes a scan.
			BoltOptions:             &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, Timeout: time.Second},
			MsgpackUseNewTimeFormat: true,
		})
		return err
	})
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return nil, fmt.Errorf("%w: another coordinator has %s open", ErrInUse, path)
	case errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum), errors.Is(err, bbolterrors.ErrVersionMismatch):
		return nil, damaged(path, err)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &checked{store}, nil
}

func damaged(what string, err error) error {
	return fmt.Errorf("%w: %s: %w; remove this coordinator with 'berth coordinator remove' on another one, "+
		"empty its data directory and let it join again", ErrDamaged, what, err)
}

// protect makes an error of a panic: bbolt trusts its file, and follows a damaged one out of bounds.
func protect(open func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("%w: %v", ErrDamaged, reason)
		}
	}()
	return open()
}

// checked adds a sum to every entry and value, because bbolt has none for its data: a flipped bit must not become a
// command, a term or a vote.
type checked struct{ backend }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf covers what Raft acts on.
func sumOf(log *raft.Log) []byte {
	var head [17]byte
	binary.BigEndian.PutUint64(head[:], log.Index)
	binary.BigEndian.PutUint64(head[8:], log.Term)
	head[16] = byte(log.Type)
	crc := crc32.Update(0, castagnoli, head[:])
	crc = crc32.Update(crc, castagnoli, log.Data)
	crc = crc32.Update(crc, castagnoli, log.Extensions)
	return binary.BigEndian.AppendUint32(nil, crc)
}

// StoreLog implements raft.LogStore.
func (c *checked) StoreLog(log *raft.Log) error { return c.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. The sum travels at the end of Extensions, in the store only.
func (c *checked) StoreLogs(logs []*raft.Log) error {
	stored := make([]*raft.Log, len(logs))
	for i, log := range logs {
		with := *log
		with.Extensions = append(bytes.Clone(log.Extensions), sumOf(log)...)
		stored[i] = &with
	}
	return c.backend.StoreLogs(stored)
}

// GetLog implements raft.LogStore.
func (c *checked) GetLog(index uint64, log *raft.Log) error {
	if err := c.backend.GetLog(index, log); err != nil {
		return err
	}
	at := len(log.Extensions) - crc32.Size
	if at < 0 || log.Index != index {
		return fmt.Errorf("%w: entry %d", ErrDamaged, index)
	}
	sum := log.Extensions[at:]
	if log.Extensions = log.Extensions[:at]; at == 0 {
		log.Extensions = nil
	}
	if !bytes.Equal(sum, sumOf(log)) {
		return fmt.Errorf("%w: entry %d", ErrDamaged, index)
	}
	return nil
}

// Set implements raft.StableStore.
func (c *checked) Set(key, value []byte) error {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
	return c.backend.Set(key, binary.BigEndian.AppendUint32(bytes.Clone(value), sum))
}

// Get implements raft.StableStore.
func (c *checked) Get(key []byte) ([]byte, error) {
	stored, err := c.backend.Get(key)
	if err != nil {
		return nil, err
	}
	at := len(stored) - crc32.Size
	if at < 0 || binary.BigEndian.Uint32(stored[at:]) != crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, stored[:at]) {
		return nil, fmt.Errorf("%w: value %q", ErrDamaged, key)
	}
	return stored[:at], nil
}

// SetUint64 implements raft.StableStore.
func (c *checked) SetUint64(key []byte, value uint64) error {
	return c.Set(key, binary.BigEndian.AppendUint64(nil, value))
}

// GetUint64 implements raft.StableStore.
func (c *checked) GetUint64(key []byte) (uint64, error) {
	value, err := c.Get(key)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("%w: value %q has %d bytes", ErrDamaged, key, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// guarded ends the process when the store fails or hangs.
type guarded struct {
	backend
	limit  time.Duration
	fatal  func(error)
	closed atomic.Bool
}

func (g *guarded) access(what string, access func() error) error {
	hung := time.AfterFunc(g.limit, func() {
		g.fatal(fmt.Errorf("the disk hangs: to %s takes longer than %s", what, g.limit))
	})
	defer hung.Stop()
	err := access()
	if err != nil && !absent(err) && !g.closed.Load() {
		g.fatal(fmt.Errorf("cannot %s: %w", what, err))
	}
	return err
}

// absent is how stores say that there is no such entry or value. Raft compares the second one's text.
func absent(err error) bool {
	return errors.Is(err, raft.ErrLogNotFound) || errors.Is(err, raftboltdb.ErrKeyNotFound) || err.Error() == "not found"
}

func (g *guarded) FirstIndex() (index uint64, err error) {
	err = g.access("read the log", func() (err error) { index, err = g.backend.FirstIndex(); return err })
	return index, err
}

func (g *guarded) LastIndex() (index uint64, err error) {
	err = g.access("read the log", func() (err error) { index, err = g.backend.LastIndex(); return err })
	return index, err
}

func (g *guarded) GetLog(index uint64, log *raft.Log) error {
	return g.access("read the log", func() error { return g.backend.GetLog(index, log) })
}

func (g *guarded) StoreLog(log *raft.Log) error { return g.StoreLogs([]*raft.Log{log}) }

func (g *guarded) StoreLogs(logs []*raft.Log) error {
	return g.access("write the log", func() error { return g.backend.StoreLogs(logs) })
}

func (g *guarded) DeleteRange(first, last uint64) error {
	return g.access("shorten the log", func() error { return g.backend.DeleteRange(first, last) })
}

func (g *guarded) Set(key, value []byte) error {
	return g.access("write the vote", func() error { return g.backend.Set(key, value) })
}

func (g *guarded) SetUint64(key []byte, value uint64) error {
	return g.access("write the term", func() error { return g.backend.SetUint64(key, value) })
}

func (g *guarded) Get(key []byte) (value []byte, err error) {
	err = g.access("read the vote", func() (err error) { value, err = g.backend.Get(key); return err })
	return value, err
}

func (g *guarded) GetUint64(key []byte) (value uint64, err error) {
	err = g.access("read the term", func() (err error) { value, err = g.backend.GetUint64(key); return err })
	return value, err
}

func (g *guarded) Close() error {
	g.closed.Store(true)
	return g.backend.Close()
}

// verifyLog reads all of the log before Raft trusts it. snapshot is the index of the newest good snapshot: entries above
// it must be there, since nothing else has them; below it there may be a gap, where a backup was restored.
func verifyLog(logs raft.LogStore, snapshot uint64) error {
	first, err := logs.FirstIndex()
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	if last == 0 {
		return nil
	}
	if first > snapshot+1 {
		return fmt.Errorf("%w: the log begins at entry %d, the newest good snapshot ends at %d", ErrDamaged, first, snapshot)
	}
	for index := first; index <= last; index++ {
		var log raft.Log
		err := logs.GetLog(index, &log)
		if errors.Is(err, raft.ErrLogNotFound) && index <= snapshot {
			continue
		}
		if err != nil {
			return fmt.Errorf("entry %d of the log: %w", index, err)
		}
	}
	return nil
}
