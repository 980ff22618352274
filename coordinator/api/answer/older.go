package answer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"berth/coordinator/api/refusal"
	"berth/coordinator/history"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/shared/rpc"
)

// pastKey begins the key of a page of a list that reads on in the history, where the state ends. No other key has a NUL there.
const pastKey = "past\x00"

// PastToken is the token of a page that begins before a row of the history.
func PastToken(at history.Place) string {
	return TokenOf(fmt.Sprintf("%s%d.%d", pastKey, at.Index, at.Sequence))
}

// InPast is the row of the history that a page begins before; nil if it does not begin there.
func (p Page) InPast() (*history.Place, error) {
	text, past := strings.CutPrefix(p.After, pastKey)
	if !past {
		return nil, nil
	}
	var at history.Place
	if _, err := fmt.Sscanf(text, "%d.%d", &at.Index, &at.Sequence); err != nil {
		return nil, refusal.New(rpc.Invalid, "", "give the next_page_token of the page before, or none to begin anew", "the page token is none")
	}
	return &at, nil
}

// Past walks all that happened, newest first: what the history has, and before it what the state has and the history does not have yet.
func (s *Source) Past(q history.Query) iter.Seq2[history.Row, error] {
	whole := s.History.Whole() // before the snapshot, so that nothing is between them
	x := s.Store.Snapshot()
	return func(yield func(history.Row, error) bool) {
		for _, row := range slices.Backward(history.Since(x, max(whole, x.HistoryFrom()))) {
			if (q.Before == nil || row.Compare(*q.Before) < 0) && !yield(row, nil) {
				return
			}
		}
		for row, err := range s.History.Backwards(earlier(q, history.Place{Index: whole + 1})) {
			if !yield(row, err) {
				return
			}
		}
	}
}

// FindDecision finds a decision: in the state, or in the history if the state has dropped it.
func (s *Source) FindDecision(ctx context.Context, p *Moment, id string) (placement.Decision, bool, error) {
	if decision, kept := p.Decision(id); kept || id == "" {
		return decision, kept, nil
	}
	row, err := s.pastRow(ctx, id, func(row *history.Row) bool { return row.Decision != nil && row.Decision.ID == id })
	if row == nil {
		return placement.Decision{}, false, err
	}
	return *row.Decision, true, nil
}

// FindOperation finds an operation: in the state, or in the history if the state has dropped it.
func (s *Source) FindOperation(ctx context.Context, p *Moment, id string) (operation.Operation, bool, error) {
	if op, kept := p.Operation(id); kept || id == "" {
		return op, kept, nil
	}
	row, err := s.pastRow(ctx, id, func(row *history.Row) bool { return row.Operation != nil && row.Operation.ID == id })
	if row == nil {
		return operation.Operation{}, false, err
	}
	return *row.Operation, true, nil
}

// pastRow is the newest row with a word that is one; nil: there is none.
func (s *Source) pastRow(ctx context.Context, word string, is func(*history.Row) bool) (*history.Row, error) {
	for row, err := range s.Past(history.Query{Words: []string{word}}) {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		if is(&row) {
			return &row, nil
		}
	}
	return nil, nil
}

func earlier(q history.Query, before history.Place) history.Query {
	if q.Before == nil || before.Compare(*q.Before) < 0 {
		q.Before = &before
	}
	return q
}

// ReadOn gives what a list goes on with where the state ends, at most limit things, and the token of the next page. What is read is of the
// time before that which the state has whole, so the state may have some of it.
func ReadOn[M any](
	ctx context.Context, s *Source, p *Moment, q history.Query, limit int, keep func(*history.Row) (M, bool),
) (part []M, next string, err error) {
	q = earlier(q, history.Place{Index: p.HistoryFrom() + 1})
	return PartOf(ctx, s.History.Backwards(q), *q.Before, limit, keep)
}

// PartOf gives what is kept of rows, at most limit things, and the token of the next page. The rows begin before a place: there the next
// page begins too if there is no room in this one.
func PartOf[M any](
	ctx context.Context, rows iter.Seq2[history.Row, error], before history.Place, limit int, keep func(*history.Row) (M, bool),
) (part []M, next string, err error) {
	for row, err := range rows {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, "", err
		}
		made, kept := keep(&row)
		if !kept {
			continue
		}
		if len(part) == limit {
			return part, PastToken(before), nil
		}
		part, before = append(part, made), row.Place
	}
	return part, "", nil
}

// Query is what the filter lets the history pass over. Its rows are to be looked at all the same.
func (f *Filter) Query() history.Query {
	q := history.Query{Since: f.past.since}
	for _, ref := range f.past.vms {
		q.Words = append(q.Words, ref)
		if vm, known := f.moment.VMByRef(ref); known {
			q.Words = append(q.Words, vm.ID, vm.Name)
		}
	}
	return q
}

// Operation tells whether an operation is asked for, its state apart.
func (f *Filter) Operation(op *operation.Operation) bool {
	return f.During(op.CreatedAt) && f.About(op.VM, op.VMName) && f.OfKind(string(op.Kind)) && f.By(op.Caller) &&
		f.In(op.Source, op.Target) && f.WhoseID(op.VM)
}

// Decision tells whether a decision is asked for, its state apart.
func (f *Filter) Decision(d *placement.Decision) bool {
	return f.During(d.At) && f.By(d.Caller) && f.About(d.Request.VM, d.Request.VMName) && f.OfKind(string(d.Request.Purpose)) &&
		f.WhoseID(d.Request.VM) && f.In(d.Winner)
}
