package state

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"
)

// write is one command being applied: what it makes of the tables, and the digest of every change.
type write struct {
	*draft
	entryPlace
	begun   int        // how many changes of the draft are of the commands before it
	applied appliedRow // as it will be
	digest  hash.Hash
}

// begin goes on from what was applied before, in a draft of what came of it.
func begin(rows *draft, applied appliedRow, command *Command, at entryPlace) *write {
	w := &write{draft: rows, entryPlace: at, begun: len(rows.changes), applied: applied, digest: sha256.New()}
	w.applied.Index = at.index
	if w.applied.clock = w.applied.steadied(command.At); w.featureLevel() < ClockLevel {
		w.applied.clock = clock{Clock: later(applied.Clock, command.At)}
	}
	w.digest.Write(applied.Hash)
	w.digest.Write([]byte(number(at.index)))
	return w
}

// seal gives what is applied now. The hash covers what the command changed and answered, not its bytes: equal bytes with
// another outcome are exactly what it has to find.
func (w *write) seal(result Result) appliedRow {
	w.note("result", "", result)
	w.applied.Hash = w.digest.Sum(nil)
	return w.applied
}

// note adds one change to the digest, in a form that cannot be read in two ways.
func (w *write) note(table, id string, row any) {
	encoded, err := json.Marshal(row)
	if err != nil {
		// Rows come out of JSON, so they go into it.
		halt("encode %s %q: %v", table, id, err)
	}
	for _, part := range [][]byte{[]byte(table), []byte(id), encoded} {
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		w.digest.Write(length[:])
		w.digest.Write(part)
	}
}

func put[Row any](w *write, table, id string, row *Row) {
	w.insert(table, row)
	w.note(table, id, row)
}

func (w *write) remove(table, id string, row any) {
	w.draft.remove(table, row)
	w.note(table, id, nil)
}
