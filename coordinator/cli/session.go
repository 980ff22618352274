package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	connectPatience = 5 * time.Second  // to find a coordinator that answers, all of them together
	callLimit       = 10 * time.Second // for one answer, once connected
	callRounds      = 3                // how often all coordinators are asked at most
	roundPause      = 300 * time.Millisecond
)

type client = berthv1connect.BerthServiceClient

// session speaks to the coordinators of one cluster: to the one that answered last, and when that fails to the others.
// It is used by one goroutine.
type session struct {
	addresses []string
	origin    string // where the addresses come from
	clients   []client
	preferred int
	patience  time.Duration
	budget    budget
	tell      func(string) // what it does meanwhile, for people
	close     func()
}

// safety says what may be done about a request whose outcome is not known.
type safety bool

const (
	repeatable safety = true  // reads, and writes with a request ID
	onlyOnce   safety = false // what cannot be told apart from a second one
)

// ask makes one unary call and returns its answer.
func ask[Q, A any](
	ctx context.Context, s *session, safe safety,
	method func(client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q,
) (*A, error) {
	return askFor(ctx, s, safe, callLimit, method, question)
}

// askFor asks what may take longer than other questions.
func askFor[Q, A any](
	ctx context.Context, s *session, safe safety, limit time.Duration,
	method func(client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q,
) (*A, error) {
	var answer *A
	err := s.call(ctx, safe, func(ctx context.Context, c client) error {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
		defer cancel()
		response, err := method(c, ctx, connect.NewRequest(question))
		if err != nil {
			return err
		}
		answer = response.Msg
		return nil
	})
	return answer, err
}

var (
	errSilent = errors.New("no answer")
	errSlow   = fmt.Errorf("no answer within %s", callLimit)
)

// call runs do against one coordinator after the other until one answers. A request whose outcome is not known, because
// the connection broke, is repeated if that is safe, as long as the budget allows it.
func (s *session) call(ctx context.Context, safe safety, do func(context.Context, client) error) error {
	began, tries := time.Now(), tries{session: s}
	for round := 1; ; round++ {
		misses, err := s.round(ctx, safe, &tries, do)
		if wait, later := retryAfter(err); later && round < callRounds && tries.left() {
			s.tell(fmt.Sprintf("the coordinators are busy: asking again in %s", span(wait)))
			if !pause(ctx, wait) {
				return ctx.Err()
			}
			continue
		}
		if err != nil || misses == nil {
			return err
		}
		if round == callRounds || time.Since(began) > callLimit || !worthRepeating(misses) || !tries.left() {
			return s.unanswered(misses)
		}
		if !pause(ctx, jittered(roundPause)) {
			return ctx.Err()
		}
	}
}

// longestWait bounds how long the command line waits because it was told to.
const longestWait = 10 * time.Second

// retryAfter is how long to wait before a request is repeated that was not taken on: as long as the answer says, and up to
// half as long again, so that not all come back at once. It is repeated with the same request ID, and nothing was done.
func retryAfter(err error) (wait time.Duration, later bool) {
	var refused *connect.Error
	if rpc.Detail(err).GetCode() != rpc.Overloaded || !errors.As(err, &refused) {
		return 0, false
	}
	seconds, parsed := strconv.Atoi(refused.Meta().Get("Retry-After"))
	if parsed != nil || seconds < 1 {
		seconds = 1
	}
	return jittered(min(time.Duration(seconds)*time.Second, longestWait)), true
}

// jittered is a wait of up to half as long again, so that not all come back at once.
func jittered(wait time.Duration) time.Duration { return wait + mathrand.N(wait/2) }

// miss is one coordinator that gave no useful answer.
type miss struct {
	address string
	err     error
	sent    bool // it may have got the request
}

// round asks every coordinator once, or as many as it may. It returns either the answer's error, nil for a good one, or what
// it missed.
func (s *session) round(ctx context.Context, safe safety, tries *tries, do func(context.Context, client) error) ([]miss, error) {
	var misses []miss
	left := s.patience
	for n := range s.clients {
		if !tries.another() {
			break
		}
		i := (s.preferred + n) % len(s.clients)
		sent, waited, err := attempt(ctx, s.clients[i], left/time.Duration(len(s.clients)-n), do)
		left -= waited
		switch {
		case err == nil, answered(err):
			s.preferred = i
			if _, later := retryAfter(err); later {
				tries.sent = true
			} else {
				s.budget.earn()
			}
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		m := miss{address: s.addresses[i], err: err, sent: sent && !refusedIdentity(err)}
		misses = append(misses, m)
		tries.sent = tries.sent || m.sent && rpc.Detail(err).GetCode() != rpc.NoLeader
		if m.sent && safe == onlyOnce && rpc.Detail(err).GetCode() != rpc.NoLeader {
			return nil, failf(rpc.Unavailable, "look at what is there before you repeat it",
				"the connection to %s broke: it is not known whether this was done: %s", m.address, reason(err))
		}
	}
	return misses, nil
}

// attempt runs do against one coordinator. It gives up after patience if there is no connection by then; how long it
// waited for one is returned. Sent tells whether the coordinator may have got the request.
func attempt(
	ctx context.Context, c client, patience time.Duration, do func(context.Context, client) error,
) (sent bool, waited time.Duration, err error) {
	const (
		waiting = iota
		connected
		givenUp
	)
	var state atomic.Int32
	var connectedAfter atomic.Int64
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(patience, func() {
		if state.CompareAndSwap(waiting, givenUp) {
			cancel(errSilent)
		}
	})
	defer timer.Stop()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		if state.CompareAndSwap(waiting, connected) {
			connectedAfter.Store(int64(time.Since(began)))
		}
	}})
	err = do(ctx, c)
	switch state.Load() {
	case connected:
		return true, time.Duration(connectedAfter.Load()), err
	case givenUp:
		err = fmt.Errorf("%w within %s", errSilent, span(patience))
	}
	return false, time.Since(began), err
}

// answered tells whether the cluster gave its answer, so that asking another coordinator would give the same.
func answered(err error) bool {
	switch rpc.Detail(err).GetCode() {
	case rpc.NoLeader, rpc.Unreachable, rpc.Unavailable:
		return false
	case "":
		return connect.IsWireError(err) && connect.CodeOf(err) != connect.CodeUnavailable
	}
	return true
}

// worthRepeating tells whether a coordinator was there and went away, which is what the death of a leader looks like.
func worthRepeating(misses []miss) bool {
	for _, m := range misses {
		if m.sent && rpc.Detail(m.err).GetCode() != rpc.NoLeader {
			return true
		}
	}
	return false
}

// unanswered says what is wrong with every coordinator and what to check.
func (s *session) unanswered(misses []miss) error {
	identity := false
	lines := make([]string, 0, len(misses))
	for _, m := range misses {
		if rpc.Detail(m.err) != nil {
			return m.err // somebody is there, and knows better what is wrong
		}
		identity = identity || refusedIdentity(m.err)
		lines = append(lines, fmt.Sprintf("  %s: %s", m.address, reason(m.err)))
	}
	list := strings.Join(lines, "\n")
	if identity {
		return failf(rpc.Denied, fmt.Sprintf("check that the addresses and the certificate of %s belong to the same cluster, or %s",
			s.origin, loginStep), "no coordinator of this cluster:\n%s", list)
	}
	return failf(rpc.Unreachable, fmt.Sprintf("check that the coordinators run ('systemctl status berth-coordinator' there) and that "+
		"their API port can be reached from here; the addresses come from %s", s.origin), "no coordinator answers:\n%s", list)
}

// refusedIdentity tells whether one side did not accept the other's certificate.
func refusedIdentity(err error) bool {
	return errors.Is(err, pki.ErrPeer) || errors.As(err, new(*tls.CertificateVerificationError)) || remoteAlert(err) != ""
}

// remoteAlert is what the other side's TLS says it refuses for. It comes as text only.
func remoteAlert(err error) string {
	_, alert, _ := strings.Cut(fmt.Sprint(err), "remote error: tls: ")
	return alert
}

// reason says shortly why a coordinator did not answer.
func reason(err error) string {
	var (
		name *net.DNSError
		host x509.HostnameError
	)
	switch {
	case errors.Is(err, errSilent):
		return err.Error()
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded):
		return errSlow.Error()
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &name) && name.IsNotFound:
		return "no such host"
	case errors.As(err, &name):
		return "its name cannot be looked up: " + name.Err
	case errors.As(err, &host):
		return "its certificate is for other addresses (" + strings.Join(names(host.Certificate), ", ") + ")"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "its certificate comes from another cluster"
	case remoteAlert(err) != "":
		return "it refuses our certificate: " + remoteAlert(err)
	case errors.Is(err, pki.ErrPeer):
		_, why, _ := strings.Cut(err.Error(), pki.ErrPeer.Error()+": ")
		return "it is not who it should be: " + why
	}
	return deepest(err).Error()
}

func names(certificate *x509.Certificate) []string {
	all := append([]string{}, certificate.DNSNames...)
	for _, address := range certificate.IPAddresses {
		all = append(all, address.String())
	}
	return all
}

// deepest is the error at the end of the chain: the others only say where it passed.
func deepest(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// pause reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// requestID makes the key under which the cluster recognises a repeated write.
func requestID() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails: it ends the program instead
	return hex.EncodeToString(raw)
}
