package state

import (
	"fmt"
	"iter"
	"strings"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Snapshot is one immutable moment of the state. Records that it returns are copies: the caller may change them.
type Snapshot struct {
	tables
	Records
	Access
	History
	applied appliedRow
	moved   chan struct{} // closed by the store when this is no longer the present
	line    *line
	steps   []step // that led here, the oldest first; not all are kept
}

// line is what moments share of which each came out of the one before by commands. A snapshot that is restored begins another one.
type line struct{ _ byte }

// Index is the Raft index of the last command applied. Entries that are not commands (configurations, barriers) do not
// move it. 0: nothing has been applied yet.
func (x *Snapshot) Index() uint64 { return x.applied.Index }

// Changed is closed when this moment is no longer the present one.
func (x *Snapshot) Changed() <-chan struct{} { return x.moved }

// EventsKept tells whether all events of commands after this Raft index are kept still. It is false when some may have been
// trimmed: a follower of the events has to read the records again.
func (x *Snapshot) EventsKept(index uint64) bool {
	if x.applied.Events < MaxEvents {
		return true
	}
	for oldest := range each[eventRow](x.tables, tableEvents, byID, "") {
		return oldest.Event.Index <= index
	}
	return true
}

// HistoryFrom is the Raft index after which the state has all events, decisions and ended operations of the commands. Decisions that
// went for their age do not count: they are older than DecisionAge.
func (x *Snapshot) HistoryFrom() (index uint64) {
	if x.applied.Events >= MaxEvents {
		oldest, _ := first[eventRow](x.tables, tableEvents, byID)
		index = max(index, oldest.Event.Index)
	}
	if x.applied.Decisions >= MaxDecisions {
		oldest, _ := first[decisionRow](x.tables, string(Decisions), byAge)
		index = max(index, oldest.Index)
	}
	if x.applied.Ended >= MaxOperations {
		oldest, _ := first[operation.Operation](x.tables, string(Operations), byEnded)
		index = max(index, oldest.Revision)
	}
	return index
}

func cloneEvent(row *eventRow) model.Event { return row.Event }

// halt ends this member rather than let it part from the others. Raft calls the state in a goroutine of its own that
// nobody returns an error to.
func halt(format string, args ...any) {
	panic(fmt.Sprintf("state: "+format, args...)) //nolint:forbidigo // see above
}

// take gathers the rows before it copies them: records are large, and a slice of them that grows copies them over and over.
func take[Row, Out any](rows iter.Seq[*Row], limit int, clone func(*Row) Out) []Out {
	var found []*Row
	for row := range rows {
		found = append(found, row)
		if len(found) == limit {
			break
		}
	}
	if len(found) == 0 {
		return nil
	}
	out := make([]Out, len(found))
	for i, row := range found {
		out[i] = clone(row)
	}
	return out
}

func list[Row, Out any](t tables, table, index, prefix string, clone func(*Row) Out) []Out {
	return take(each[Row](t, table, index, prefix), 0, clone)
}

// last is the end of an index, from there backwards.
func last[Row, Out any](t tables, table, index string, limit int, clone func(*Row) Out) []Out {
	return take(backwards[Row](t, table, index), limit, clone)
}

func one[Row, Out any](t tables, table, index, key string, clone func(*Row) Out) (Out, bool) {
	// A key that no record can have would run into the next part of the index's key.
	if !strings.ContainsRune(key, 0) {
		for row := range each[Row](t, table, index, text(key)) {
			return clone(row), true
		}
	}
	var none Out
	return none, false
}

// either finds a record by ID or by name. Both may have their kind before them, as events and '-o name' write them: vm/web-1.
func either[T any](kind, ref string, byID, byName func(string) (T, bool)) (T, bool) {
	ref = strings.TrimPrefix(ref, kind+"/")
	if found, ok := byID(ref); ok {
		return found, true
	}
	return byName(ref)
}
