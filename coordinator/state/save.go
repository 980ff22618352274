package state

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/session"
	"berth/shared/buildinfo"
)

// The form of a snapshot, the same for Raft's own and for a backup. Numbers are big-endian; every sum is CRC-32C.
//
//	header   magic "berthfsm" | format uint16 | length uint16, release | sum uint32
//	section  1 | length uint16, name | count uint64 | count × (length uint32, JSON record) | sum uint32
//	end      255 | number of sections uint32 | sum uint32
//
// A sum covers everything from the first byte of its header, section or end. A section that a release does not know is
// an error: what it cannot read it cannot keep. New fields of records carry omitempty or omitzero, so that an old
// snapshot and the running hash stay what they were. The golden files in testdata are restored for ever.
const (
	magic          = "berthfsm"
	snapshotFormat = 1
	markSection    = 1
	markEnd        = 255
	maxRecord      = 64 << 20 // bytes; a command is far below
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// section is one table in a snapshot.
type section struct {
	name string
	read func(record []byte) (row any, err error)
}

// sections are written in this order. They are the tables of the schema; a test compares.
var sections = []section{
	{tableApplied, rowOf[appliedRow]},
	{string(Nodes), rowOf[model.Node]},
	{string(VMs), rowOf[model.VM]},
	{string(Operations), rowOf[operation.Operation]},
	{string(Decisions), rowOf[decisionRow]},
	{string(Members), rowOf[model.Member]},
	{string(Tokens), rowOf[model.Token]},
	{string(Resources), rowOf[model.Resource]},
	{string(Meta), rowOf[metaRow]},
	{tableEvents, rowOf[eventRow]},
	{tableKeys, rowOf[keyRow]},
	{tableEpochs, rowOf[epochRow]},
	{string(Plans), rowOf[model.Plan]},
	{string(Identities), rowOf[model.Identity]},
	{string(Sessions), rowOf[session.Session]},
}

func rowOf[Row any](record []byte) (any, error) {
	row := new(Row)
	return row, unmarshal(record, row)
}

// Save writes the moment to w. It may run for long: the store goes on meanwhile. The same moment gives the same bytes
// from one build.
func (x *Snapshot) Save(w io.Writer) error {
	out := &summing{to: bufio.NewWriterSize(w, 1<<16)}
	out.text(magic)
	out.uint16(snapshotFormat)
	release := buildinfo.Version()
	out.uint16(uint16(len(release)))
	out.text(release)
	out.sum()
	written := uint32(0)
	for _, section := range sections {
		if (section.name == string(Identities) || section.name == string(Sessions)) && x.count(section.name) == 0 {
			continue // members of earlier releases, which have none, read no such section
		}
		x.saveSection(out, section.name)
		written++
	}
	out.byte(markEnd)
	out.uint32(written)
	out.sum()
	if out.err == nil {
		out.err = out.to.Flush()
	}
	if out.err != nil {
		return fmt.Errorf("write snapshot of the state: %w", out.err)
	}
	return nil
}

func (x *Snapshot) saveSection(out *summing, table string) {
	out.byte(markSection)
	out.uint16(uint16(len(table)))
	out.text(table)
	out.uint64(uint64(x.count(table)))
	for row := range x.all(table) {
		record, err := json.Marshal(row)
		if err != nil {
			out.err = err
		}
		if out.err != nil {
			return
		}
		out.uint32(uint32(len(record)))
		out.write(record)
	}
	out.sum()
}

// summing writes and sums. After an error it does nothing more.
type summing struct {
	to  *bufio.Writer
	crc uint32
	err error
}

func (s *summing) write(b []byte) {
	if s.err == nil {
		s.crc = crc32.Update(s.crc, castagnoli, b)
		_, s.err = s.to.Write(b)
	}
}

// sum ends a header, a section or the end.
func (s *summing) sum() {
	s.uint32(s.crc)
	s.crc = 0
}

func (s *summing) text(t string)   { s.write([]byte(t)) }
func (s *summing) byte(b byte)     { s.write([]byte{b}) }
func (s *summing) uint16(n uint16) { s.write(binary.BigEndian.AppendUint16(nil, n)) }
func (s *summing) uint32(n uint32) { s.write(binary.BigEndian.AppendUint32(nil, n)) }
func (s *summing) uint64(n uint64) { s.write(binary.BigEndian.AppendUint64(nil, n)) }
