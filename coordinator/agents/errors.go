package agents

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Why a session ends, as its agent is told. Each is made anew: connect writes into the errors that it sends.

func notLeading() error {
	return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{
		Code: rpc.NoLeader, NextStep: "connect to another coordinator: it knows the leader",
	}, "this coordinator leads no more")
}

func replaced() error {
	return rpc.Errorf(connect.CodeAborted, &berthv1.ErrorDetail{
		Code: rpc.Stale, NextStep: "see that only one agent runs with this node's certificate",
	}, "the node has opened a newer session")
}

func silent() error {
	return rpc.Errorf(connect.CodeDeadlineExceeded, &berthv1.ErrorDetail{
		Code: rpc.Timeout, NextStep: "connect again",
	}, "nothing was heard of the agent for too long")
}

func tooSlow() error {
	return rpc.Errorf(connect.CodeResourceExhausted, &berthv1.ErrorDetail{
		Code: rpc.Unavailable, NextStep: "connect again",
	}, "the agent reads too slowly: %d messages are waiting for it", queueLength)
}

func denied(subject, nextStep, format string, a ...any) error {
	return rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{
		Code: rpc.Denied, Subject: subject, NextStep: nextStep,
	}, format, a...)
}

func invalid(subject, format string, a ...any) error {
	return rpc.Errorf(connect.CodeInvalidArgument, &berthv1.ErrorDetail{
		Code: rpc.Invalid, Subject: subject, NextStep: "install an agent of the coordinators' release",
	}, format, a...)
}

// isOver tells that the agent's side closed the stream, in good order or by going away.
func isOver(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) || connect.CodeOf(err) == connect.CodeCanceled
}

// reasonOf is what people read about the end of a session.
func reasonOf(err error) string {
	if isOver(err) {
		return "the agent closed it"
	}
	var answered *connect.Error
	if errors.As(err, &answered) {
		return answered.Message()
	}
	return err.Error()
}
