package history

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
)

// Place is where a row stands: in which entry of the log, and as which of the rows that this entry made, from 0.
type Place struct {
	Index    uint64 `json:"index"`
	Sequence uint32 `json:"sequence,omitempty"`
}

// Compare tells whether a place is before (-1) or after (1) another one, or is that one (0).
func (p Place) Compare(other Place) int {
	return cmp.Or(cmp.Compare(p.Index, other.Index), cmp.Compare(p.Sequence, other.Sequence))
}

// Row is one thing that happened. Exactly one of Event, Decision and Operation is there.
type Row struct {
	Place
	Event     *model.Event         `json:"event,omitempty"`
	Decision  *placement.Decision  `json:"decision,omitempty"`
	Operation *operation.Operation `json:"operation,omitempty"` // one that has ended
}

// At is when it happened, as a leader has stamped it. Clocks may be set, so it need not grow from row to row.
func (r *Row) At() time.Time {
	switch {
	case r.Event != nil:
		return r.Event.At
	case r.Decision != nil:
		return r.Decision.At
	case r.Operation != nil:
		return r.Operation.EndedAt
	}
	return time.Time{}
}

// words are what a row can be looked up by.
func (r *Row) words() []string {
	switch {
	case r.Event != nil:
		_, name, _ := strings.Cut(r.Event.Subject, "/")
		return []string{r.Event.Subject, name, r.Event.Operation, r.Event.Decision}
	case r.Decision != nil:
		return []string{r.Decision.ID, r.Decision.Request.VM, r.Decision.Request.VMName, r.Decision.Operation}
	case r.Operation != nil:
		return []string{r.Operation.ID, r.Operation.VM, r.Operation.VMName, r.Operation.Decision}
	}
	return nil
}

// Since gathers what a state has of the commands after an entry of the log, in the order of the log. Within one entry decisions come
// first and operations last. The rows are the state's own, and nobody changes them. They are all there are if the state is complete
// from that entry on: see state.Snapshot.HistoryFrom.
func Since(x *state.Snapshot, after uint64) []Row {
	var rows []Row
	for index, decision := range x.DecisionsSince(after) {
		rows = append(rows, Row{Place: Place{Index: index}, Decision: decision})
	}
	events := x.EventsAfter(after)
	for i := range events {
		rows = append(rows, Row{Place: Place{Index: events[i].Index}, Event: &events[i]})
	}
	for op := range x.EndedSince(after) {
		rows = append(rows, Row{Place: Place{Index: op.Revision}, Operation: op})
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(a.Index, b.Index) })
	for i := range rows {
		if i > 0 && rows[i].Index == rows[i-1].Index {
			rows[i].Sequence = rows[i-1].Sequence + 1
		}
	}
	return rows
}
