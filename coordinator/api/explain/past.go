package explain

import (
	"context"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/history"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
)

// ListHistory answers with what happened, newest first, as this member has kept it. No leader is needed.
func (s *DecisionCalls) ListHistory(
	ctx context.Context, request *connect.Request[berthv1.ListHistoryRequest],
) (*connect.Response[berthv1.ListHistoryResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.DefaultList)
	if err != nil {
		return nil, err
	}
	p := s.Present()
	filter, err := p.FilterOf(request.Msg.GetFilter(), p.Happened("entry", nil, nil))
	if err != nil {
		return nil, err
	}
	query := filter.Query()
	if query.Before, err = page.InPast(); err != nil {
		return nil, err
	}
	response := &berthv1.ListHistoryResponse{SchemaVersion: wire.SchemaVersion, Filtered: filter.Asked()}
	response.Entries, response.NextPageToken, err = answer.PartOf(ctx, s.Past(query), history.Place{}, page.Limit,
		func(row *history.Row) (*berthv1.HistoryEntry, bool) {
			entry := entryOf(p, request.Msg, filter, row)
			return entry, entry != nil
		})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response), nil
}

// entryOf is a row as a message; nil if it is not asked for.
func entryOf(p *answer.Moment, asked *berthv1.ListHistoryRequest, filter *answer.Filter, row *history.Row) *berthv1.HistoryEntry {
	entry := &berthv1.HistoryEntry{Index: row.Index, Sequence: row.Sequence}
	wants := func(kind berthv1.HistoryKind, caller string) bool {
		return (len(asked.GetOf()) == 0 || slices.Contains(asked.GetOf(), kind)) && (!asked.GetCalled() || called(caller))
	}
	switch {
	case row.Event != nil && wants(berthv1.HistoryKind_HISTORY_KIND_EVENT, row.Event.Caller) && filter.Event(p, row.Event):
		entry.What = &berthv1.HistoryEntry_Event{Event: wire.Event(*row.Event)}
	case row.Decision != nil && wants(berthv1.HistoryKind_HISTORY_KIND_DECISION, row.Decision.Caller) && filter.Decision(row.Decision):
		entry.What = &berthv1.HistoryEntry_Decision{Decision: wire.DecisionSummary(*row.Decision)}
	case row.Operation != nil && wants(berthv1.HistoryKind_HISTORY_KIND_OPERATION, row.Operation.Caller) && filter.Operation(row.Operation):
		entry.What = &berthv1.HistoryEntry_Operation{Operation: wire.Operation(*row.Operation)}
	default:
		return nil
	}
	return entry
}

// called tells that a person or a program has asked for something, and not a coordinator by itself.
func called(caller string) bool { return caller != "" && !strings.HasPrefix(caller, "coordinator/") }
