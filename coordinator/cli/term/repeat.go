package term

import (
	"context"
	"strings"

	"connectrpc.com/connect"

	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

const (
	// mostRepeats is how often one request is repeated at most.
	mostRepeats = 3
	// repeatShare is what a request that was answered earns of a repetition, so that in the long run no more than a tenth of the
	// requests are repetitions. Coordinators that fail all requests would else get each of them several times.
	repeatShare = 0.1
	// mostSaved is how many repetitions can be saved up.
	mostSaved = 10
)

// budget is how many requests may still be repeated, after Marc Brooker's token bucket for retries ("Fixing retries with token
// buckets and circuit breakers", 2022). A new one is enough for one request. The command line is the one layer that repeats.
type budget struct{ repeats float64 }

func newBudget() budget { return budget{repeats: mostRepeats} }

// earn counts a request that was answered.
func (b *budget) earn() { b.repeats = min(b.repeats+repeatShare, mostSaved) }

// spend takes a repetition off. It is false when none is left.
func (b *budget) spend() bool {
	if b.repeats < 1 {
		return false
	}
	b.repeats--
	return true
}

// tries are those of one request.
type tries struct {
	session *Session
	sent    bool // a coordinator may have got it
	repeats int
}

// another tells whether the request may be sent now: for the first time, or once more.
func (t *tries) another() bool {
	if !t.left() {
		return false
	}
	if t.sent {
		t.repeats++
		t.session.budget.spend()
	}
	return true
}

// left tells whether the request could be sent once more.
func (t *tries) left() bool {
	return !t.sent || t.repeats < mostRepeats && t.session.budget.repeats >= 1
}

type procedureKey struct{}

// noting gives a context in which the procedure that is called is noted.
func noting(ctx context.Context, procedure *string) context.Context {
	return context.WithValue(ctx, procedureKey{}, procedure)
}

// procedureNotes is the interceptor that notes the procedure of a call. Its traits tell whether the call may be repeated.
type procedureNotes struct {
	trusted func(authorities []string) // told whom the coordinators trust, the one that signs first
}

func (procedureNotes) note(ctx context.Context, spec connect.Spec) {
	if procedure, wanted := ctx.Value(procedureKey{}).(*string); wanted {
		*procedure = spec.Procedure
	}
}

func (n procedureNotes) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		n.note(ctx, request.Spec())
		response, err := next(ctx, request)
		if err == nil {
			renews := request.Spec().Procedure == berthv1connect.BerthServiceRenewCertificateProcedure
			if ids := response.Header().Get(rpc.AuthoritiesHeader); ids != "" && !renews {
				n.trusted(strings.Split(ids, ","))
			}
		}
		return response, err
	}
}

func (n procedureNotes) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		n.note(ctx, spec)
		return next(ctx, spec)
	}
}

func (procedureNotes) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
