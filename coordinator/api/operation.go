package api

import (
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/explain"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/history"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// progressEvery is how often a watcher is told of a migration's progress. Agents report once a second.
const progressEvery = 500 * time.Millisecond

// operationResult begins the names of the results of operations in the protocol.
const operationResult = "OPERATION_RESULT_"

// cancelled is the state of an operation that failed because somebody has cancelled it.
const cancelled = string(operation.OutcomeCancelled)

// ListOperations answers with the newest operations.
func (s *planCalls) ListOperations(
	ctx context.Context, request *connect.Request[berthv1.ListOperationsRequest],
) (*connect.Response[berthv1.ListOperationsResponse], error) {
	page, err := answer.PageOf(request.Msg, answer.DefaultList)
	if err != nil {
		return nil, err
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	operations := p.Operations()
	if request.Msg.GetRunningOnly() {
		operations = slices.DeleteFunc(operations, func(op operation.Operation) bool { return !op.Live() })
	}
	filter, err := p.FilterOf(request.Msg.GetFilter(),
		p.Happened("operation", append(answer.Words(berthv1.OperationResult_name, operationResult), cancelled), operation.KindNames()))
	if err != nil {
		return nil, err
	}
	response := &berthv1.ListOperationsResponse{SchemaVersion: wire.SchemaVersion, Filtered: filter.Asked()}
	keep := func(op operation.Operation) (*berthv1.Operation, bool) {
		if !filter.Operation(&op) {
			return nil, false
		}
		message := s.live(&op)
		word := answer.Word(message.GetResult().String(), operationResult)
		if message.GetCancelled() {
			word = cancelled
		}
		return message, filter.Is(word)
	}
	query := filter.Query()
	if query.Before, err = page.InPast(); err != nil {
		return nil, err
	}
	if query.Before == nil {
		response.Operations, response.NextPageToken = answer.Pick(operations, page, answer.Descending, answer.OperationKey, keep)
	}
	if response.GetNextPageToken() != "" || request.Msg.GetRunningOnly() {
		return connect.NewResponse(response), nil
	}
	older, next, err := answer.ReadOn(ctx, s.Source, p, query, page.Limit-len(response.GetOperations()),
		func(row *history.Row) (*berthv1.Operation, bool) {
			if row.Operation == nil {
				return nil, false
			}
			if _, kept := p.Operation(row.Operation.ID); kept {
				return nil, false
			}
			return keep(*row.Operation)
		})
	response.Operations, response.NextPageToken = append(response.GetOperations(), older...), next
	return connect.NewResponse(response), err
}

// GetOperation answers with one operation.
func (s *planCalls) GetOperation(
	ctx context.Context, request *connect.Request[berthv1.GetOperationRequest],
) (*connect.Response[berthv1.GetOperationResponse], error) {
	p, err := s.Verified(ctx)
	if err != nil {
		return nil, err
	}
	op, known, err := s.FindOperation(ctx, p, request.Msg.GetId())
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, refusal.NotFound("operation", request.Msg.GetId())
	}
	message := s.live(&op)
	message.Views, message.Predicted = viewsOf(p, op), wire.Predicted(&op, p)
	message.Waits = explain.Waits(p, &op)
	return connect.NewResponse(&berthv1.GetOperationResponse{SchemaVersion: wire.SchemaVersion, Operation: message}), nil
}

// live is the message of an operation, with what the node last told of a migration that runs.
func (s *planCalls) live(op *operation.Operation) *berthv1.Operation {
	message := wire.Operation(*op)
	if op.Live() {
		message.Progress = s.Inventory.Progress(op.ID)
	}
	return message
}

// CancelOperation asks for a live operation to be given up.
func (s *planCalls) CancelOperation(
	ctx context.Context, request *connect.Request[berthv1.CancelOperationRequest],
) (*connect.Response[berthv1.CancelOperationResponse], error) {
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return nil, err
	}
	op, err := s.Control.CancelOperation(ctx, request.Msg.GetId(), gate.CallerOf(ctx).String())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.CancelOperationResponse{
		SchemaVersion: wire.SchemaVersion, Operation: wire.Operation(op),
	}), nil
}

// WatchOperation sends the operation at once, at every change and at every progress report, and ends with it. A parked
// operation ends the stream as well: nothing more happens to it by itself. When this member loses the leadership the
// stream breaks with code unavailable; the caller opens it again and misses nothing.
func (s *planCalls) WatchOperation(
	ctx context.Context, request *connect.Request[berthv1.WatchOperationRequest],
	stream *connect.ServerStream[berthv1.WatchOperationResponse],
) error {
	if err := s.Consensus.VerifyRead(ctx); err != nil {
		return err
	}
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	var sent *berthv1.WatchOperationResponse
	for {
		snapshot := s.Store.Snapshot()
		op, known, err := s.FindOperation(ctx, &answer.Moment{Snapshot: snapshot}, request.Msg.GetId())
		if err != nil {
			return err
		}
		if !known {
			return refusal.NotFound("operation", request.Msg.GetId())
		}
		next := &berthv1.WatchOperationResponse{Operation: wire.Operation(op)}
		over := !op.Live() || op.Result == operation.Parked
		if !over && op.Kind == operation.Migrate {
			next.Progress = s.Inventory.Progress(op.ID)
		}
		if !proto.Equal(sent, next) {
			if err := stream.Send(next); err != nil {
				return err
			}
			sent = next
		}
		if over {
			return nil
		}
		select {
		case <-snapshot.Changed():
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.Stopping:
			return stopping()
		}
		if err := s.Leads(); err != nil {
			return err
		}
	}
}

func stopping() error {
	return refusal.New(rpc.Unavailable, "", "watch again: another coordinator answers", "this coordinator is shutting down")
}
