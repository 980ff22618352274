package api

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/api/wire"
	"berth/coordinator/cluster"
	"berth/coordinator/consensus"
	"berth/coordinator/control"
	"berth/coordinator/estate"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// statuses gives each code of an ErrorDetail the status that generic clients of Connect and gRPC understand.
var statuses = map[string]connect.Code{
	rpc.NoNodeFits:  connect.CodeFailedPrecondition,
	rpc.NotFound:    connect.CodeNotFound,
	rpc.Exists:      connect.CodeAlreadyExists,
	rpc.Busy:        connect.CodeFailedPrecondition,
	rpc.Invalid:     connect.CodeInvalidArgument,
	rpc.Stale:       connect.CodeAborted,
	rpc.NoLeader:    connect.CodeUnavailable,
	rpc.Unreachable: connect.CodeUnavailable,
	rpc.Timeout:     connect.CodeDeadlineExceeded,
	rpc.Denied:      connect.CodePermissionDenied,
	rpc.Unavailable: connect.CodeUnavailable,
	rpc.Conflict:    connect.CodeFailedPrecondition,
	rpc.Internal:    connect.CodeInternal,
	rpc.Overloaded:  connect.CodeResourceExhausted,
}

// refusal is an expected no. The text names the thing; next says what to do now.
func refusal(code, subject, next, format string, args ...any) *connect.Error {
	return rpc.Errorf(statuses[code], &berthv1.ErrorDetail{Code: code, Subject: subject, NextStep: next}, format, args...)
}

func notFound(noun, ref string) *connect.Error {
	return refusal(rpc.NotFound, noun+"/"+ref, "see 'berth "+noun+" list'", "there is no %s %q", noun, ref)
}

func invalid(subject, next string, err error) *connect.Error {
	return refusal(rpc.Invalid, subject, next, "%w", err)
}

func noLeader(err error) *connect.Error {
	return refusal(rpc.NoLeader, "", noLeaderStep, "%w", err)
}

const (
	noLeaderStep = "more than half of the coordinators must run and reach each other: " +
		"'berth status --stale' asks one of them without a leader, 'systemctl status berth-coordinator' tells on each machine"
	repeatStep = "run the same command again: a request that was carried out is not carried out twice"
	defectStep = "this is a defect of berth: the coordinator's log has more about it"
)

// answer turns whatever a handler returned into the error that the caller gets.
func answer(err error) *connect.Error {
	var (
		ready     *connect.Error
		fromAbove *control.Error
		fromState *state.Refusal
		malformed *cluster.InvalidError
		unsound   *estate.RefusedError
	)
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &fromAbove):
		return fromControl(fromAbove)
	case errors.As(err, &unsound):
		return problems("", unsound.Problems)
	case errors.As(err, &malformed):
		return refusal(rpc.Invalid, "", "correct it and try again", "%w", err)
	case errors.As(err, &fromState):
		return fromRefusal(fromState)
	case errors.Is(err, consensus.ErrNotLeader):
		return noLeader(err)
	case errors.Is(err, consensus.ErrUnknown):
		return refusal(rpc.Unavailable, "", repeatStep, "it is not known whether the change was made: %w", err)
	case errors.Is(err, consensus.ErrDiskLow):
		return refusal(rpc.Unavailable, "", "free some space on the leader's machine", "%w", err)
	case errors.Is(err, consensus.ErrTooLarge):
		return refusal(rpc.Invalid, "", "make it smaller", "%w", err)
	case errors.Is(err, consensus.ErrForeign), errors.Is(err, state.ErrSnapshot):
		return refusal(rpc.Invalid, "snapshot", "give a file that 'berth coordinator snapshot save' wrote in this cluster", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return refusal(rpc.Timeout, "", repeatStep, "not finished in time: %w", err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	default:
		return refusal(rpc.Internal, "", defectStep, "%w", err)
	}
}

func fromControl(err *control.Error) *connect.Error {
	detail := &berthv1.ErrorDetail{
		Code: string(err.Code), Subject: err.Subject, NextStep: err.NextStep, OperationId: err.Operation,
	}
	if err.Decision != nil {
		detail.DecisionId = err.Decision.ID
		detail.Decision = wire.Decision(*err.Decision)
	}
	status, known := statuses[string(err.Code)]
	if !known {
		status = connect.CodeUnknown
	}
	return rpc.Errorf(status, detail, "%s", err.Message)
}

func fromRefusal(err *state.Refusal) *connect.Error {
	subject := string(err.Table) + "/" + err.ID
	switch err.Code {
	case state.NameTaken:
		return refusal(rpc.Exists, subject, "choose another name", "%s", err.Message)
	case state.InUse:
		return refusal(rpc.Conflict, subject, "take it out of there first", "%s", err.Message)
	case state.Stale:
		return refusal(rpc.Stale, subject, "look again, and repeat it if it is still wanted", "%s", err.Message)
	default:
		return refusal(rpc.Invalid, subject, "see the coordinator's log", "%s", err.Message)
	}
}

// answering is the interceptor that gives every error its code and next step, and logs the defects among them.
type answering struct{ log hclog.Logger }

func (a answering) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		response, err := next(ctx, request)
		if err != nil {
			return nil, a.translate(request.Spec().Procedure, err)
		}
		return response, nil
	}
}

func (a answering) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := next(ctx, conn); err != nil {
			return a.translate(conn.Spec().Procedure, err)
		}
		return nil
	}
}

func (answering) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a answering) translate(procedure string, err error) error {
	translated := answer(err)
	if translated.Code() == connect.CodeInternal {
		a.log.Error("a call failed", "procedure", procedure, "error", err)
	}
	return translated
}

var errorWriter = connect.NewErrorWriter()

// refuse answers before Connect's handlers have been reached.
func refuse(w http.ResponseWriter, r *http.Request, err *connect.Error) {
	// A client that is gone gets nothing; there is nobody to tell.
	_ = errorWriter.Write(w, r, err)
}
