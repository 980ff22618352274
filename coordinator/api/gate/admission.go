package gate

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	"berth/coordinator/api/refusal"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Limits are how much the leader takes on at a time. A call beyond them is refused at once, before anything is read or committed,
// with a time after which to try again. A field that is 0 has its default.
type Limits struct {
	Writes  int     `yaml:"writes,omitempty"`  // calls that change something, at a time; default 256
	Reads   int     `yaml:"reads,omitempty"`   // calls that only look, at a time; default 64
	Waiting int     `yaml:"waiting,omitempty"` // calls of each kind that wait for their turn; default 1000
	Rate    float64 `yaml:"rate,omitempty"`    // calls a second of one caller, in the long run; default 100, negative: any
	Burst   int     `yaml:"burst,omitempty"`   // calls of one caller at once beyond that; default 500
}

// What one address may ask for whose caller has no certificate, if the rate is limited at all: calls a second in the long run,
// and at once. It is enough for a rack of hosts that enrol from behind one address.
const (
	anonymousRate  = 10
	anonymousBurst = 50
)

func (l Limits) complete() Limits {
	l.Writes, l.Reads, l.Waiting = cmp.Or(l.Writes, 256), cmp.Or(l.Reads, 64), cmp.Or(l.Waiting, 1000)
	l.Rate, l.Burst = cmp.Or(l.Rate, 100), cmp.Or(l.Burst, 500)
	return l
}

// maxCallers bounds how many callers' rates are remembered. A caller that was forgotten begins with a whole burst.
const maxCallers = 10_000

// retryHeader says after how many seconds to try again.
const retryHeader = "Retry-After"

// Admission decides whether a call is taken on, before its message is read.
type Admission struct {
	limits        Limits
	now           func() time.Time
	writes, reads *gate

	mu      sync.Mutex
	callers map[string]*rate.Limiter
}

// NewAdmission makes an Admission. Now is the clock that callers' rates are measured by.
func NewAdmission(limits Limits, now func() time.Time) *Admission {
	limits = limits.complete()
	return &Admission{
		limits: limits, now: now, callers: make(map[string]*rate.Limiter),
		writes: &gate{most: limits.Writes, queue: limits.Waiting}, reads: &gate{most: limits.Reads, queue: limits.Waiting},
	}
}

// Wrap lets next see only calls that are taken on.
func (a *Admission) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := CallerOf(r.Context())
		traits := rpc.TraitsOf(r.URL.Path)
		as := rankOf(caller, traits)
		if wait, allowed := a.allow(caller, as); !allowed {
			often, _ := a.pace(as)
			overloaded(w, r, wait, "%s asks for more than %g calls a second", caller, often)
			return
		}
		through := a.gateOf(traits.Class())
		if through == nil {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := withDeadline(r)
		defer cancel()
		queued, leave := inTime(ctx)
		defer leave()
		switch admitted, err := through.enter(queued, as); {
		case err != nil || !admitted: // it was told in time, or nobody waits for an answer any more
			overloaded(
				w, r, time.Second+time.Duration(4*through.fill()*float64(time.Second)),
				"the coordinators have more to do than they can take on",
			)
		default:
			defer through.leave()
			next.ServeHTTP(w, r.WithContext(ctx))
		}
	})
}

// allow takes one call off what a caller may do. If the caller has used that up, wait is how long until the next one. Calls of
// coordinators and calls that bring relief are not counted: they must not wait for those that caused the load.
func (a *Admission) allow(caller Caller, as rank) (wait time.Duration, allowed bool) {
	if a.limits.Rate < 0 || as < rankPeople {
		return 0, true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	often, atOnce := a.pace(as)
	limiter := a.callers[caller.String()]
	if limiter == nil {
		if len(a.callers) >= maxCallers {
			clear(a.callers)
		}
		limiter = rate.NewLimiter(rate.Limit(often), atOnce)
		a.callers[caller.String()] = limiter
	}
	now := a.now()
	if limiter.AllowN(now, 1) {
		return 0, true
	}
	missing := 1 - limiter.TokensAt(now)
	return time.Duration(missing / often * float64(time.Second)), false
}

// pace is how many calls a second a caller may make, and how many at once.
func (a *Admission) pace(as rank) (often float64, atOnce int) {
	if as == rankAnonymous {
		return min(a.limits.Rate, anonymousRate), min(a.limits.Burst, anonymousBurst)
	}
	return a.limits.Rate, a.limits.Burst
}

// WritesWait tells whether calls that change something wait for their turn.
func (a *Admission) WritesWait() bool { return a.writes.fill() > 0 }

func rankOf(caller Caller, traits rpc.Traits) rank {
	switch {
	case caller.Role == pki.RolePeer:
		return rankMembers
	case caller.Role == Anonymous:
		return rankAnonymous
	case traits.Relief():
		return rankRelief
	default:
		return rankPeople
	}
}

// gateOf is the gate that calls of a class pass; nil for streams, which last as long as a caller watches or a file is long.
func (a *Admission) gateOf(class berthv1.Class) *gate {
	switch class {
	case berthv1.Class_CLASS_STREAM:
		return nil
	case berthv1.Class_CLASS_READ:
		return a.reads
	default:
		return a.writes
	}
}

// withDeadline is the call's context with the deadline that its header names. Connect reads that header only when the call's
// turn has come, which may be too late.
func withDeadline(r *http.Request) (context.Context, context.CancelFunc) {
	left, named := timeoutOf(r.Header)
	if !named {
		return context.WithCancel(r.Context())
	}
	return context.WithTimeout(r.Context(), left)
}

// answerTime is how long before a caller's deadline a call leaves the queue, so that the caller still hears why.
const answerTime = time.Second

// inTime is a call's context while it waits for its turn: it ends a little before the caller's time is over, or a tenth of it.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, set := ctx.Deadline()
	if !set {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, deadline.Add(-min(answerTime, time.Until(deadline)/10)))
}

// grpcUnits are the units of a Grpc-Timeout, by the gRPC protocol over HTTP/2.
var grpcUnits = map[byte]time.Duration{
	'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
}

// timeoutOf reads how long a caller waits, by the header of Connect or of gRPC. More than a day counts as not named.
func timeoutOf(header http.Header) (left time.Duration, named bool) {
	const longest = 24 * time.Hour
	number, unit := header.Get("Connect-Timeout-Ms"), time.Millisecond
	if text := header.Get("Grpc-Timeout"); number == "" && text != "" {
		number, unit = text[:len(text)-1], grpcUnits[text[len(text)-1]]
	}
	units, err := strconv.ParseInt(number, 10, 64)
	if err != nil || units <= 0 || unit == 0 || units > int64(longest/unit) {
		return 0, false
	}
	return time.Duration(units) * unit, true
}

// overloaded answers a call that is not taken on.
func overloaded(w http.ResponseWriter, r *http.Request, wait time.Duration, format string, args ...any) {
	seconds := strconv.Itoa(int(max(wait, time.Second).Round(time.Second) / time.Second))
	w.Header().Set(retryHeader, seconds)
	refusal.Write(w, r, rpc.Errorf(connect.CodeResourceExhausted, &berthv1.ErrorDetail{
		Code: rpc.Overloaded, NextStep: "try again in " + seconds + " s: nothing was done",
	}, format, args...))
}
