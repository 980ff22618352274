// Package refusal is how the API says no: every expected error has a code that programs know, names the thing that it is about, and
// says what to do next. Of turns what a handler returned into such an error; what it does not know is a defect and is logged.
package refusal

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/consensus"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/coordinator/wire"
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

// New is an expected no. The text names the thing; next says what to do now.
func New(code, subject, next, format string, args ...any) *connect.Error {
	return rpc.Errorf(statuses[code], &berthv1.ErrorDetail{Code: code, Subject: subject, NextStep: next}, format, args...)
}

// NotFound says that there is no thing of this kind with this name.
func NotFound(noun, ref string) *connect.Error {
	return New(rpc.NotFound, noun+"/"+ref, "see 'berth "+noun+" list'", "there is no %s %q", noun, ref)
}

// Invalid says what is wrong with a request, in the words of err.
func Invalid(subject, next string, err error) *connect.Error {
	return New(rpc.Invalid, subject, next, "%w", err)
}

// NoLeader says that no coordinator can answer now.
func NoLeader(err error) *connect.Error {
	return New(rpc.NoLeader, "", noLeaderStep, "%w", err)
}

// Removed refuses a coordinator that has a good certificate and no record.
func Removed(code, name string) *connect.Error {
	return New(code, "coordinator/"+name,
		"to take it in again, empty its data directory and run 'berth coordinator join' with a new token",
		"coordinator %s is not a member of this cluster: it was removed", name)
}

// Problems is the refusal that lists everything that is wrong.
func Problems(subject string, found []schema.Problem) *connect.Error {
	detail := &berthv1.ErrorDetail{
		Code: rpc.Invalid, Subject: cmp.Or(subject, found[0].Subject), NextStep: "correct it and try again: nothing was changed",
	}
	lines := make([]string, 0, len(found))
	for _, one := range found {
		detail.Problems = append(detail.Problems, wire.Problem(one))
		lines = append(lines, one.String())
	}
	if len(found) > 1 {
		detail.NextStep = "correct all of them and try again: nothing was changed"
	}
	return rpc.Errorf(statuses[rpc.Invalid], detail, "%s", strings.Join(lines, "\n"))
}

// Unsound is the refusal of a single change that breaks a rule.
func Unsound(subject, next string, err error) error {
	var (
		ready   *connect.Error
		refused *schema.RefusedError
	)
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &refused):
		return Problems(subject, refused.Problems)
	default:
		return Invalid(subject, next, err)
	}
}

// RepeatStep is the next step where it is not known whether a request was carried out.
const RepeatStep = "run the same command again: a request that was carried out is not carried out twice"

const (
	noLeaderStep = "more than half of the coordinators must run and reach each other: " +
		"'berth status --stale' asks one of them without a leader, 'systemctl status berth-coordinator' tells on each machine"
	defectStep = "this is a defect of berth: the coordinator's log has more about it"
)

// Of turns what a handler returned into the error that the caller gets.
func Of(err error) *connect.Error {
	var (
		ready     *connect.Error
		fromAbove *lead.Error
		fromState *state.Refusal
		malformed *model.InvalidError
		unsound   *schema.RefusedError
	)
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &fromAbove):
		return fromControl(fromAbove)
	case errors.As(err, &unsound):
		return Problems("", unsound.Problems)
	case errors.As(err, &malformed):
		return New(rpc.Invalid, "", "correct it and try again", "%w", err)
	case errors.As(err, &fromState):
		return fromRefusal(fromState)
	case errors.Is(err, consensus.ErrNotLeader):
		return NoLeader(err)
	case errors.Is(err, consensus.ErrUnknown):
		return New(rpc.Unavailable, "", RepeatStep, "it is not known whether the change was made: %w", err)
	case errors.Is(err, consensus.ErrDiskLow):
		return New(rpc.Unavailable, "", "free some space on the leader's machine", "%w", err)
	case errors.Is(err, consensus.ErrClock):
		return New(rpc.Unavailable, "", "try again in a minute, another coordinator leads then", "%w", err)
	case errors.Is(err, consensus.ErrTooLarge):
		return New(rpc.Invalid, "", "make it smaller", "%w", err)
	case errors.Is(err, state.ErrNotYet):
		const next = "install this release on every coordinator first, 'berth coordinator list' shows which have it: nothing was changed"
		return New(rpc.Conflict, "", next, "%w", err)
	case errors.Is(err, state.ErrLevel):
		const next = "install the release that it names on every coordinator, and try again: nothing was changed"
		return New(rpc.Invalid, "snapshot", next, "%w", err)
	case errors.Is(err, seal.ErrUnsealed), errors.Is(err, seal.ErrKey):
		const next = "give a file that a coordinator of this cluster wrote, or, if you know where this one has been, say --unproved"
		return New(rpc.Invalid, "snapshot", next, "%w", err)
	case errors.Is(err, seal.ErrChanged):
		return New(rpc.Invalid, "snapshot", "take another copy of it, or an older backup: nothing was changed", "%w", err)
	case errors.Is(err, consensus.ErrForeign), errors.Is(err, state.ErrSnapshot):
		return New(rpc.Invalid, "snapshot", "give a file that 'berth coordinator snapshot save' wrote in this cluster", "%w", err)
	case errors.Is(err, context.DeadlineExceeded):
		return New(rpc.Timeout, "", RepeatStep, "not finished in time: %w", err)
	case errors.Is(err, context.Canceled): // a caller that has hung up hears no answer; to all others it was not they who cancelled
		return New(rpc.Unavailable, "", RepeatStep, "the coordinator has stopped working on it: %w", err)
	default:
		return New(rpc.Internal, "", defectStep, "%w", err)
	}
}

func fromControl(err *lead.Error) *connect.Error {
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
		return New(rpc.Exists, subject, "choose another name", "%s", err.Message)
	case state.InUse:
		return New(rpc.Conflict, subject, "take it out of there first", "%s", err.Message)
	case state.Stale:
		return New(rpc.Stale, subject, "look again, and repeat it if it is still wanted", "%s", err.Message)
	default:
		return New(rpc.Invalid, subject, "see the coordinator's log", "%s", err.Message)
	}
}

var errorWriter = connect.NewErrorWriter()

// Write answers before Connect's handlers have been reached.
func Write(w http.ResponseWriter, r *http.Request, err *connect.Error) {
	// A client that is gone gets nothing; there is nobody to tell.
	_ = errorWriter.Write(w, r, err)
}
