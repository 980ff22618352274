package fence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"berth/coordinator/model"
)

// request is one call of a fence agent, as the service is asked for it.
type request struct {
	Device model.FenceDevice `json:"device"`
	Action string            `json:"action"` // what the fence agent is told to do, or actionIdentity
}

// actionIdentity asks which machine a device switches.
const actionIdentity = "identity"

// answer is what came of a request. Error is empty, or says why nothing is known, and then Kind is of which of this package's errors it is.
type answer struct {
	Code     int    `json:"code,omitempty"`     // that the fence agent has ended with
	Said     string `json:"said,omitempty"`     // by it, to be put after a sentence
	Identity string `json:"identity,omitempty"` // of actionIdentity
	Error    string `json:"error,omitempty"`
	Kind     string `json:"kind,omitempty"`
}

// kinds are the errors that the other side is told apart.
var kinds = map[string]error{"unknown": ErrUnknown, "missing": ErrNoAgent}

// Bounds of what is read from the other side, in bytes. A request has at most 64 arguments of 4096 bytes.
const (
	maxRequest = 4 << 20
	maxAnswer  = 64 << 10
)

// fail is the answer that says why nothing is known.
func fail(err error) answer {
	for kind, is := range kinds {
		if errors.Is(err, is) {
			return answer{Error: err.Error(), Kind: kind}
		}
	}
	return answer{Error: err.Error()}
}

// err is the error that an answer tells of.
func (a answer) err() error {
	if a.Error == "" {
		return nil
	}
	return &toldError{a.Error, kinds[a.Kind]}
}

// toldError is an error of the other side.
type toldError struct {
	text string
	kind error // nil: no one in particular
}

func (e *toldError) Error() string { return e.text }
func (e *toldError) Unwrap() error { return e.kind }

// ask has the service run one fence agent, and waits for the answer. The service itself ends what takes longer than within. When the
// context ends before that, ask returns when the service has ended all that it had started, or after killGrace.
func (r *Runner) ask(ctx context.Context, what request, within time.Duration) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within+2*killGrace, fmt.Errorf("no answer within %s", within))
	defer cancel()
	plain, err := (&net.Dialer{}).DialContext(ctx, "unix", r.Socket)
	if err != nil {
		return answer{}, fmt.Errorf("%w: what runs fence agents cannot be reached: %w: 'systemctl status %s' tells why", ErrUnknown, err, unit)
	}
	defer plain.Close()
	conn, _ := plain.(*net.UnixConn) // which a connection to a socket of this kind is
	stop := context.AfterFunc(ctx, func() {
		_ = conn.CloseWrite() // by which the service knows that nobody waits
		_ = conn.SetDeadline(time.Now().Add(killGrace))
	})
	defer stop()
	var got answer
	err = json.NewEncoder(conn).Encode(what)
	if err == nil {
		err = json.NewDecoder(io.LimitReader(conn, maxAnswer)).Decode(&got)
	}
	switch {
	case ctx.Err() != nil:
		return answer{}, fmt.Errorf("%w: %s: %w", ErrUnknown, what.Device.Program, context.Cause(ctx))
	case err != nil:
		return answer{}, fmt.Errorf("%w: %s: what runs it has ended without an answer (%w): 'journalctl -u %s' tells why",
			ErrUnknown, what.Device.Program, err, instances)
	}
	return got, got.err()
}
