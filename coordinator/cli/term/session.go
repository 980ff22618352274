package term

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
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// How long the coordinators are given, and how often they are asked again.
const (
	CallLimit  = 10 * time.Second       // for one answer, once connected
	callRounds = 3                      // how often all coordinators are asked at most
	RoundPause = 300 * time.Millisecond // between two rounds
)

// Client is the API's client.
type Client = berthv1connect.BerthServiceClient

// Session speaks to the coordinators of one cluster: to the one that answered last, and when that fails to the others.
// It is used by one goroutine.
type Session struct {
	addresses []string
	origin    string // where the addresses come from
	cluster   string // that the operator's certificate is of
	clients   []Client
	preferred int
	patience  time.Duration // to find one that answers, all of them together
	busy      time.Duration // how long overload is waited out
	limit     time.Duration // for one answer, once connected
	hangs     bool          // that was done in vain for coordinators that take connections and get no further
	budget    budget
	tell      func(string) // what it does meanwhile, for people
	traces    *traces      // nil: none are sent
	Close     func()
}

// Ask makes one unary call and returns its answer.
func Ask[Q, A any](
	ctx context.Context, s *Session,
	method func(Client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q,
) (*A, error) {
	return AskFor(ctx, s, s.limit, method, question)
}

// AskOnce makes a session for one call.
func AskOnce[Q, A any](
	a *App, cmd *cobra.Command, method func(Client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q,
) (*A, error) {
	s, err := a.Connect()
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return Ask(cmd.Context(), s, method, question)
}

// AskFor asks what may take longer than other questions.
func AskFor[Q, A any](
	ctx context.Context, s *Session, limit time.Duration,
	method func(Client, context.Context, *connect.Request[Q]) (*connect.Response[A], error), question *Q,
) (*A, error) {
	var answer *A
	begun := s.traces.begin(question)
	err := s.Call(context.WithValue(ctx, limitKey{}, limit), func(ctx context.Context, c Client) error {
		ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %s", limit))
		defer cancel()
		response, err := method(c, ctx, connect.NewRequest(question))
		if err != nil {
			return err
		}
		answer = response.Msg
		return nil
	})
	if err == nil {
		s.traces.note(begun, question, answer)
	}
	return answer, err
}

// limitKey is for how long a call may take, where that is not the session's limit.
type limitKey struct{}

var (
	errSilent = errors.New("no answer")
	// ErrSlow is the cause with which a call ends that took longer than CallLimit.
	ErrSlow = fmt.Errorf("no answer within %s", CallLimit)
)

// Call runs do against one coordinator after the other until one answers. A request whose outcome is not known, because
// the connection broke, is repeated if the traits of its procedure allow it, as long as the budget does. Overload is waited out.
func (s *Session) Call(ctx context.Context, do func(context.Context, Client) error) error {
	began, tries, load := time.Now(), tries{session: s}, overload{session: s, began: time.Now()}
	for round := 1; ; round++ {
		misses, err := s.round(ctx, &tries, do)
		if refused, later := retryAfter(err); later {
			if err := load.waitOut(ctx, refused, err); err != nil {
				return err
			}
			round--
			continue
		}
		if err != nil || misses == nil {
			return err
		}
		if crowded(misses) && tries.left() && load.bear(ctx) {
			round--
			continue
		}
		if round == callRounds || time.Since(began) > CallLimit || !worthRepeating(misses) || !tries.left() {
			return s.unanswered(misses)
		}
		if !pause.For(ctx, jittered(RoundPause)) {
			return ctx.Err()
		}
	}
}

// jittered is a wait of up to half as long again, so that not all come back at once.
func jittered(wait time.Duration) time.Duration { return wait + mathrand.N(wait/2) }

// miss is one coordinator that gave no useful answer.
type miss struct {
	address string
	err     error
	sent    bool // it may have got the request
	slow    bool // it took the connection, and did not get as far as the request
	late    bool // it took the request, and did not answer in time
	limit   time.Duration
}

// round asks every coordinator once, or as many as it may. It returns either the answer's error, nil for a good one, or what
// it missed.
func (s *Session) round(ctx context.Context, tries *tries, do func(context.Context, Client) error) ([]miss, error) {
	var misses []miss
	left := s.patience
	for n := range s.clients {
		if !tries.another() {
			break
		}
		i := (s.preferred + n) % len(s.clients)
		var procedure string
		try := attempt(noting(ctx, &procedure), s.clients[i], s.share(left, n), do)
		err := try.err
		left -= try.waited
		switch {
		case err == nil, Answered(err) && !outOfTime(err):
			s.preferred = i
			if _, later := retryAfter(err); !later {
				s.budget.earn()
			}
			return nil, err
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		}
		m := miss{address: s.addresses[i], err: err, sent: try.sent && !refusedIdentity(err), slow: try.slow, limit: s.limit}
		if limit, own := ctx.Value(limitKey{}).(time.Duration); own {
			m.limit = limit
		}
		m.late = m.sent && outOfTime(err)
		misses = append(misses, m)
		tries.sent = tries.sent || m.sent && rpc.Detail(err).GetCode() != rpc.NoLeader
		if m.sent && !rpc.TraitsOf(procedure).Repeatable() && rpc.Detail(err).GetCode() != rpc.NoLeader {
			what := "the connection to " + m.address + " broke"
			if m.late {
				what = m.address + " is busy"
			}
			return nil, Failf(rpc.Unavailable, "look at what is there before you repeat it",
				"%s: it is not known whether this was done: %s", what, Reason(err))
		}
	}
	return misses, nil
}

// outOfTime tells whether the time for an answer was over, here or at the coordinator, which says so then.
func outOfTime(err error) bool {
	return errors.Is(err, context.DeadlineExceeded) || rpc.Detail(err).GetCode() == rpc.Timeout
}

// share is how long the coordinator at a place of the row is given. The ones before it may have taken longer than their share, on a
// machine that is busy itself, and it is asked all the same.
func (s *Session) share(left time.Duration, place int) time.Duration {
	return max(left/time.Duration(len(s.clients)-place), s.patience/time.Duration(2*len(s.clients)))
}

// tried is what came of asking one coordinator.
type tried struct {
	err    error
	waited time.Duration // until there was a connection
	sent   bool          // it may have got the request
	slow   bool          // it took the connection, and the two have not come to an agreement
}

// attempt runs do against one coordinator. It gives up after patience if there is no connection by then.
func attempt(ctx context.Context, c Client, patience time.Duration, do func(context.Context, Client) error) tried {
	const (
		waiting = iota
		connected
		givenUp
	)
	var state atomic.Int32
	var reached atomic.Bool
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
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { reached.Store(true) },
		GotConn: func(httptrace.GotConnInfo) {
			if state.CompareAndSwap(waiting, connected) {
				connectedAfter.Store(int64(time.Since(began)))
			}
		},
	})
	err := do(ctx, c)
	switch state.Load() {
	case connected:
		return tried{err: err, waited: time.Duration(connectedAfter.Load()), sent: true}
	case givenUp:
		err = fmt.Errorf("%w within %s", errSilent, Span(patience))
	}
	return tried{err: err, waited: time.Since(began), slow: reached.Load() && !refusedIdentity(err) && !otherCertificate(err)}
}

// Answered tells whether the cluster gave its answer, so that asking another coordinator would give the same.
func Answered(err error) bool {
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
func (s *Session) unanswered(misses []miss) error {
	if late(misses) {
		return s.tooLate(misses)
	}
	identity, replaced := false, false
	lines := make([]string, 0, len(misses))
	for _, m := range misses {
		if rpc.Detail(m.err) != nil {
			return m.err // somebody is there, and knows better what is wrong
		}
		identity = identity || refusedIdentity(m.err)
		why := Reason(m.err)
		if s.replaced(m.err) {
			replaced, why = true, "its certificate is by an authority that is not known here: this cluster has replaced its authority since "+
				"you called last"
		}
		if m.slow {
			why += ", though it takes the connection: it is busy, or it hangs"
		}
		lines = append(lines, fmt.Sprintf("  %s: %s", m.address, why))
	}
	list := strings.Join(lines, "\n")
	if replaced {
		return Failf(rpc.Denied, LoginStep, "this machine was left behind when the authority was replaced:\n%s", list)
	}
	if identity {
		return Failf(rpc.Denied, fmt.Sprintf("check that the addresses and the certificate of %s belong to the same cluster, or %s",
			s.origin, LoginStep), "no coordinator of this cluster:\n%s", list)
	}
	return Failf(rpc.Unreachable, fmt.Sprintf("check that the coordinators run ('systemctl status berth-coordinator' there) and that "+
		"their API port can be reached from here; the addresses come from %s", s.origin), "no coordinator answers:\n%s", list)
}

// replaced tells whether a coordinator says that it is of the operator's own cluster, by a certificate of an authority that is not known
// here. It may be somebody else who says so: a token settles that.
func (s *Session) replaced(err error) bool {
	var refused *tls.CertificateVerificationError
	if !errors.As(err, new(x509.UnknownAuthorityError)) || !errors.As(err, &refused) || len(refused.UnverifiedCertificates) == 0 {
		return false
	}
	who, err := pki.IdentityOf(refused.UnverifiedCertificates[0])
	return err == nil && who.Role == pki.RolePeer && who.ClusterID == s.cluster
}

// refusedIdentity tells whether one side did not accept the other's certificate.
func refusedIdentity(err error) bool {
	return errors.Is(err, pki.ErrPeer) || errors.As(err, new(*tls.CertificateVerificationError)) || remoteAlert(err) != ""
}

// otherCertificate tells whether the certificate that was shown is that of another host.
func otherCertificate(err error) bool { return errors.As(err, new(x509.HostnameError)) }

// remoteAlert is what the other side's TLS says it refuses for. It comes as text only.
func remoteAlert(err error) string {
	_, alert, _ := strings.Cut(fmt.Sprint(err), "remote error: tls: ")
	return alert
}

// Reason says shortly why a coordinator did not answer.
func Reason(err error) string {
	var (
		name *net.DNSError
		host x509.HostnameError
	)
	switch {
	case errors.Is(err, errSilent):
		return err.Error()
	case errors.Is(err, ErrSlow), errors.Is(err, context.DeadlineExceeded):
		return ErrSlow.Error()
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

// RequestID makes the key under which the cluster recognises a repeated write.
func RequestID() string {
	raw := make([]byte, 16)
	_, _ = rand.Read(raw) // never fails: it ends the program instead
	return hex.EncodeToString(raw)
}
