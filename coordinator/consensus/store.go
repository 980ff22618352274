package consensus

import (
	"errors"
	"fmt"
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
	if err := checkFile(path); err != nil {
		return nil, opened(path, err)
	}
	var store *raftboltdb.BoltStore
	err := protect(func() (err error) {
		store, err = raftboltdb.New(raftboltdb.Options{
			Path:                    path,
			BoltOptions:             boltOptions(),
			MsgpackUseNewTimeFormat: true,
		})
		return err
	})
	if err != nil {
		return nil, opened(path, err)
	}
	return &checked{backend: store}, nil
}

// lockTimeout is how long to wait for another process to leave the file.
const lockTimeout = time.Second

func boltOptions() *bbolt.Options {
	// The free list would be written with every entry of the log; without it opening takes a scan.
	return &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, Timeout: lockTimeout}
}

// opened makes an error of opening the file tell what to do.
func opened(path string, err error) error {
	switch {
	case errors.Is(err, bbolterrors.ErrTimeout):
		return fmt.Errorf("%w: another coordinator has %s open", ErrInUse, path)
	case errors.Is(err, ErrDamaged), errors.Is(err, bbolterrors.ErrInvalid), errors.Is(err, bbolterrors.ErrChecksum),
		errors.Is(err, bbolterrors.ErrVersionMismatch):
		return damaged(path, err)
	default:
		return fmt.Errorf("open %s: %w", path, err)
	}
}

func damaged(what string, err error) error {
	if !errors.Is(err, ErrDamaged) {
		err = fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fmt.Errorf("%s: %w; remove this coordinator with 'berth coordinator delete' on another one, "+
		"empty its data directory and let it join again", what, err)
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

// guarded ends the process when the store fails or hangs.
type guarded struct {
	backend
	limit  time.Duration
	fatal  func(error)
	pace   pace
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
	begun := time.Now()
	err := g.access("write the log", func() error { return g.backend.StoreLogs(logs) })
	now := time.Now()
	g.pace.add(now, now.Sub(begun))
	return err
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
