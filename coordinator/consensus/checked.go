package consensus

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"

	"github.com/hashicorp/raft"
)

// bbolt has sums for its two meta pages and for nothing else, and trusts the rest of its file. A flipped bit must not
// become a command, a term or a vote, and must not make the last entries vanish that this member has promised to keep.
// So: every entry and value has a sum, a witness tells which entries there have to be, and before bbolt opens the file
// its pages are walked (see checkFile).

// checked adds the sums and the witness.
type checked struct {
	backend
	mu    sync.Mutex
	knows bool // the witness was read
	first uint64
	last  uint64 // 0: no entries
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The witness is an entry that Raft does not know of: its indexes begin with 1. It is written in the transaction of the
// entries that it tells of. When entries are cut off at the end it goes first, since there is no one transaction for
// both; it says so, and after a crash in between the rest is cut off.
const witnessIndex = 0

func witness(first, last uint64, cutting bool) *raft.Log {
	data := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, first), last)
	if cutting {
		return &raft.Log{Index: witnessIndex, Data: append(data, 1)}
	}
	return &raft.Log{Index: witnessIndex, Data: append(data, 0)}
}

// load reads the witness once, and compares. The caller holds mu.
func (c *checked) load() error {
	if c.knows {
		return nil
	}
	last, err := c.backend.LastIndex()
	if err != nil {
		return err
	}
	var log raft.Log
	err = c.entry(witnessIndex, &log)
	switch {
	case errors.Is(err, raft.ErrLogNotFound) && last == 0:
		c.knows = true
		return nil
	case err != nil && !errors.Is(err, raft.ErrLogNotFound):
		return err
	case len(log.Data) != 17:
		return wrong("it does not tell which entries it has")
	}
	c.first, c.last = binary.BigEndian.Uint64(log.Data), binary.BigEndian.Uint64(log.Data[8:])
	cutting := log.Data[16] == 1
	switch {
	case last == c.last:
	case last > c.last && cutting:
		if err := c.backend.DeleteRange(c.last+1, last); err != nil {
			return err
		}
	default:
		return wrong("its last entry is %d, it should be %d", last, c.last)
	}
	c.knows = true
	return nil
}

// FirstIndex implements raft.LogStore.
func (c *checked) FirstIndex() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return c.first, err
}

// LastIndex implements raft.LogStore.
func (c *checked) LastIndex() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.load()
	return c.last, err
}

// StoreLog implements raft.LogStore.
func (c *checked) StoreLog(log *raft.Log) error { return c.StoreLogs([]*raft.Log{log}) }

// StoreLogs implements raft.LogStore. The sums travel at the end of Extensions, in the store only.
func (c *checked) StoreLogs(logs []*raft.Log) error {
	if len(logs) == 0 {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		return err
	}
	first, last := c.first, max(c.last, logs[len(logs)-1].Index)
	if first == 0 {
		first = logs[0].Index
	}
	if err := c.store(append([]*raft.Log{witness(first, last, false)}, logs...)); err != nil {
		return err
	}
	c.first, c.last = first, last
	return nil
}

func (c *checked) store(logs []*raft.Log) error {
	stored := make([]*raft.Log, len(logs))
	for i, log := range logs {
		with := *log
		with.Extensions = append(bytes.Clone(log.Extensions), sumOf(log)...)
		stored[i] = &with
	}
	return c.backend.StoreLogs(stored)
}

// DeleteRange implements raft.LogStore: the log is shortened at one of its ends. What a crash leaves at the beginning is
// taken along the next time.
func (c *checked) DeleteRange(from, to uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		return err
	}
	first, last, cutting := c.first, c.last, to >= c.last
	switch {
	case last == 0:
		return nil
	case from <= first && to >= last:
		first, last, from, to = 0, 0, 1, max(to, last)
	case from <= first:
		first, from = to+1, 1
	case to >= last:
		last = from - 1
	default:
		return fmt.Errorf("entries %d to %d are in the midst of the log (%d to %d)", from, to, first, last)
	}
	if err := c.store([]*raft.Log{witness(first, last, cutting)}); err != nil {
		return err
	}
	c.first, c.last = first, last
	return c.backend.DeleteRange(from, to)
}

// GetLog implements raft.LogStore.
func (c *checked) GetLog(index uint64, log *raft.Log) error {
	if index == witnessIndex {
		return raft.ErrLogNotFound
	}
	return c.entry(index, log)
}

func (c *checked) entry(index uint64, log *raft.Log) error {
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

// Set implements raft.StableStore.
func (c *checked) Set(key, value []byte) error {
	return c.backend.Set(key, binary.BigEndian.AppendUint32(bytes.Clone(value), valueSum(key, value)))
}

// Get implements raft.StableStore.
func (c *checked) Get(key []byte) ([]byte, error) {
	stored, err := c.backend.Get(key)
	if err != nil {
		return nil, err
	}
	at := len(stored) - crc32.Size
	if at < 0 || binary.BigEndian.Uint32(stored[at:]) != valueSum(key, stored[:at]) {
		return nil, fmt.Errorf("%w: value %q", ErrDamaged, key)
	}
	return stored[:at], nil
}

func valueSum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
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
