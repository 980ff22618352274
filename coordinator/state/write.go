package state

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"hash"

	"github.com/hashicorp/go-memdb"
)

// write is one command being applied: a transaction, and the digest of every change that it makes.
type write struct {
	entryPlace
	txn     *memdb.Txn
	before  *Snapshot
	applied appliedRow // as it will be
	digest  hash.Hash
}

func begin(present *Snapshot, command *Command, at entryPlace) *write {
	w := &write{entryPlace: at, txn: present.live.Txn(true), before: present, applied: present.applied, digest: sha256.New()}
	w.applied.Index = at.index
	w.applied.Clock = later(w.applied.Clock, command.At)
	w.digest.Write(present.applied.Hash)
	w.digest.Write(number(at.index))
	return w
}

// seal stores the index and the hash in the transaction of the records. The hash covers what the command changed and
// answered, not its bytes: equal bytes with another outcome are exactly what it has to find.
func (w *write) seal(result Result) {
	w.note("result", "", result)
	w.applied.Hash = w.digest.Sum(nil)
	w.insert(tableApplied, &w.applied)
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

// insert and the other accesses use tables of the schema and rows that checkShape let through, so an error is a slip of
// this package: the member stops rather than part from the others.
func (w *write) insert(table string, row any) {
	if err := w.txn.Insert(table, row); err != nil {
		halt("store in %s: %v", table, err)
	}
}

func put[Row any](w *write, table, id string, row *Row) {
	w.insert(table, row)
	w.note(table, id, row)
}

func (w *write) remove(table, id string, row any) {
	if err := w.txn.Delete(table, row); err != nil {
		halt("delete %q from %s: %v", id, table, err)
	}
	w.note(table, id, nil)
}

// row is the present row with this ID, nil if there is none.
func (w *write) row(table, id string) any {
	row, err := w.txn.First(table, byID, id)
	if err != nil {
		halt("read %s: %v", table, err)
	}
	return row
}

func get[Row any](w *write, table, id string) (*Row, bool) {
	row, ok := w.row(table, id).(*Row)
	return row, ok
}

// first is the first row of an index.
func first[Row any](w *write, table, index string) (*Row, bool) {
	for row := range each[Row](w.txn.Get(table, index)) {
		return row, true
	}
	return nil, false
}
