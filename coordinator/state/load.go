package state

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// ErrSnapshot reports a snapshot that cannot be restored: damaged, cut short, of another format, or with something that
// this release does not know.
var ErrSnapshot = errors.New("snapshot of the state cannot be restored")

// Load reads what Save wrote into a store of its own, and checks all of it: every sum, every count, every invariant.
// It reads r to its end. The error is ErrSnapshot, or that of r.
func Load(r io.Reader) (*Store, error) {
	store, rows := NewStore(), newTables().draft()
	in := &checking{from: bufio.NewReaderSize(r, 1<<16)}
	release, err := in.header()
	if err != nil {
		return nil, err
	}
	applied, err := in.sections(rows)
	if err != nil {
		return nil, fmt.Errorf("%w (written by release %s)", err, release)
	}
	store.now.Store(newSnapshot(rows, applied))
	if level := store.Snapshot().FeatureLevel(); level > FeatureLevel {
		return nil, fmt.Errorf("%w: %w", ErrSnapshot, tooHigh(level, release))
	}
	if in.unknown != nil {
		return nil, fmt.Errorf("%w (written by release %s)", in.unknown, release)
	}
	if err := store.Snapshot().verify(); err != nil {
		return nil, fmt.Errorf("%w (written by release %s)", err, release)
	}
	store.hashes = trail(nil).add(store.Snapshot())
	return store, nil
}

// checking reads and sums.
type checking struct {
	from *bufio.Reader
	crc  uint32
	// unknown is the first thing that this release cannot read. What follows it is read all the same: it may tell that a later
	// release is needed, and which.
	unknown error
}

// skip notes that something is left out because this release cannot read it.
func (c *checking) skip(format string, args ...any) {
	if c.unknown == nil {
		c.unknown = refuse(format, args...)
	}
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSnapshot, fmt.Sprintf(format, args...))
}

// read fills a buffer that grows with what really arrives, so that a false length cannot ask for memory.
func (c *checking) read(length int64) ([]byte, error) {
	var into bytes.Buffer
	_, err := io.CopyN(&into, c.from, length)
	switch {
	case errors.Is(err, io.EOF):
		return nil, refuse("it is cut short")
	case err != nil:
		return nil, fmt.Errorf("read snapshot of the state: %w", err)
	}
	c.crc = crc32.Update(c.crc, castagnoli, into.Bytes())
	return into.Bytes(), nil
}

func (c *checking) number(bytes int64) (uint64, error) {
	b, err := c.read(bytes)
	if err != nil {
		return 0, err
	}
	var padded [8]byte
	copy(padded[8-len(b):], b)
	return binary.BigEndian.Uint64(padded[:]), nil
}

func (c *checking) text() (string, error) {
	length, err := c.number(2)
	if err != nil {
		return "", err
	}
	b, err := c.read(int64(length))
	return string(b), err
}

// sum compares the sum at the end of what.
func (c *checking) sum(what string) error {
	want := c.crc
	got, err := c.number(4)
	if err != nil {
		return err
	}
	if got != uint64(want) {
		return refuse("the %s is damaged: its sum is %08x, written was %08x", what, want, got)
	}
	c.crc = 0
	return nil
}

func (c *checking) header() (release string, err error) {
	start, err := c.read(int64(len(magic)))
	if err != nil {
		return "", err
	}
	if string(start) != magic {
		return "", refuse("it does not begin like one")
	}
	format, err := c.number(2)
	if err != nil {
		return "", err
	}
	if format != snapshotFormat {
		return "", refuse("it has format %d, this release reads %d", format, snapshotFormat)
	}
	if release, err = c.text(); err != nil {
		return "", err
	}
	return release, c.sum("header")
}

// sections reads all of them, the end and nothing more.
func (c *checking) sections(rows *draft) (applied appliedRow, err error) {
	seen := make(map[string]bool)
	for {
		mark, err := c.number(1)
		if err != nil {
			return applied, err
		}
		if mark == markEnd {
			break
		}
		if mark != markSection {
			return applied, refuse("a section begins with %d", mark)
		}
		name, err := c.text()
		if err != nil {
			return applied, err
		}
		if seen[name] {
			return applied, refuse("it has two sections %q", name)
		}
		seen[name] = true
		if err := c.section(rows, name); err != nil {
			return applied, err
		}
	}
	if err := c.end(len(seen)); err != nil {
		return applied, err
	}
	if row, stored := first[appliedRow](rows.tables, tableApplied, byID); stored {
		return *row, nil
	}
	return applied, nil
}

func (c *checking) section(rows *draft, name string) error {
	var reads func([]byte) (any, error)
	for _, section := range sections {
		if section.name == name {
			reads = section.read
		}
	}
	if reads == nil {
		c.skip("it has a section %q, which this release does not know", name)
	}
	count, err := c.number(8)
	if err != nil {
		return err
	}
	for range count {
		if err := c.record(rows, name, reads); err != nil {
			return err
		}
	}
	if err := c.sum("section " + name); err != nil {
		return err
	}
	if c.unknown != nil {
		return nil // it is not going to be restored
	}
	if stored := uint64(rows.count(name)); stored != count {
		return refuse("%d of %d records of section %q have an ID twice", count-stored, count, name)
	}
	return nil
}

func (c *checking) record(rows *draft, section string, reads func([]byte) (any, error)) error {
	length, err := c.number(4)
	if err != nil {
		return err
	}
	if length > maxRecord {
		return refuse("a record of section %q has %d bytes", section, length)
	}
	record, err := c.read(int64(length))
	if err != nil {
		return err
	}
	if reads == nil {
		return nil
	}
	row, err := reads(record)
	if err != nil {
		c.skip("a record of section %q: %v", section, err)
		return nil
	}
	rows.insert(section, row)
	return nil
}

func (c *checking) end(sections int) error {
	written, err := c.number(4)
	if err != nil {
		return err
	}
	if err := c.sum("end"); err != nil {
		return err
	}
	if written != uint64(sections) {
		return refuse("it has %d sections, written were %d", sections, written)
	}
	if _, err := c.from.ReadByte(); err == nil {
		return refuse("something follows its end")
	} else if !errors.Is(err, io.EOF) {
		return fmt.Errorf("read snapshot of the state: %w", err)
	}
	return nil
}
