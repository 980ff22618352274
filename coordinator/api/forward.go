package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

const (
	// leaderPatience is how long a call waits for a leader. An election takes about a second.
	leaderPatience = 3 * time.Second
	leaderPoll     = 50 * time.Millisecond
)

// answeredAnywhere are the procedures that every member answers itself. Status relays what it has to ask the leader for.
var answeredAnywhere = map[string]bool{berthv1connect.BerthServiceStatusProcedure: true}

// leader is who leads, as far as this member knows.
type leader struct {
	self    bool
	name    string
	address string // of its API
}

var (
	errNoLeader = errors.New("the coordinators have no leader")
	errMoved    = errors.New("the call was forwarded here, and this coordinator does not lead any more")
)

// forwarder sends calls to the leader. It is the only place that does.
type forwarder struct {
	find      func() (leader, bool)
	transport http.RoundTripper // to other members, by mutual TLS
	proxy     *httputil.ReverseProxy
	log       hclog.Logger
}

func newForwarder(find func() (leader, bool), transport http.RoundTripper, log hclog.Logger) *forwarder {
	f := &forwarder{find: find, transport: transport, log: log}
	f.proxy = &httputil.ReverseProxy{
		Rewrite:       rewrite,
		Transport:     transport,
		FlushInterval: -1, // streams pass on every message at once
		ErrorHandler:  f.failed,
		ErrorLog:      log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return f
}

// wrap lets next answer only on the leader.
func (f *forwarder) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answeredAnywhere[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), leaderPatience)
		defer cancel()
		// A transport closes the body of a request that it could not send; this one is tried again.
		body := unclosed{r.Body}
		for {
			lead, err := f.await(ctx)
			switch {
			case err != nil:
				refuse(w, r, noLeader(err))
			case lead.self:
				next.ServeHTTP(w, r)
			case callerOf(r.Context()).forwarded:
				refuse(w, r, refusal(rpc.Unavailable, "", repeatStep, "%w", errMoved))
			default:
				try := &attempt{lead: lead}
				out := r.WithContext(context.WithValue(r.Context(), attemptKey{}, try))
				out.Body = body
				f.proxy.ServeHTTP(w, out)
				if try.unsent == nil {
					return
				}
				if pause(ctx, leaderPoll) {
					continue // the leader may just have died: the next one is being elected
				}
				refuse(w, r, unreachable(lead, try.unsent))
			}
			return
		}
	})
}

// await waits until this member knows a leader. It may be an old one: a member learns late that another one died.
func (f *forwarder) await(ctx context.Context) (leader, error) {
	for {
		if lead, known := f.find(); known {
			return lead, nil
		}
		if !pause(ctx, leaderPoll) {
			return leader{}, errNoLeader
		}
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

// attempt is one try to forward a call.
type attempt struct {
	lead   leader
	sent   atomic.Bool // a connection was there: the leader may have got something
	unsent error       // why it positively did not
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt { return ctx.Value(attemptKey{}).(*attempt) }

type unclosed struct{ io.Reader }

func (unclosed) Close() error { return nil }

func rewrite(r *httputil.ProxyRequest) {
	try := attemptOf(r.In.Context())
	r.SetURL(&url.URL{Scheme: "https", Host: try.lead.address})
	r.Out.Header.Set(forwardedHeader, callerOf(r.In.Context()).header())
	r.Out = r.Out.WithContext(httptrace.WithClientTrace(r.Out.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { try.sent.Store(true) },
	}))
}

// failed is called when the leader's answer did not begin.
func (f *forwarder) failed(w http.ResponseWriter, r *http.Request, err error) {
	try := attemptOf(r.Context())
	if !try.sent.Load() && r.Context().Err() == nil {
		try.unsent = err
		return
	}
	f.log.Debug("a forwarded call got no answer", "procedure", r.URL.Path, "leader", try.lead.name, "error", err)
	refuse(w, r, refusal(rpc.Unavailable, "coordinator/"+try.lead.name, repeatStep,
		"the leader %s went away before it answered", try.lead.name))
}

func unreachable(lead leader, err error) *connect.Error {
	return refusal(rpc.Unreachable, "coordinator/"+lead.name,
		fmt.Sprintf("check that coordinator %s runs and that %s is reachable from the other coordinators", lead.name, lead.address),
		"the leader %s does not answer at %s: %w", lead.name, lead.address, err)
}

// relay asks the leader on behalf of a caller whose call this member has begun to answer itself.
func relay[Q, A any](
	ctx context.Context, f *forwarder, lead leader, question *Q,
	method func(berthv1connect.BerthServiceClient, context.Context, *connect.Request[Q]) (*connect.Response[A], error),
) (*connect.Response[A], error) {
	client := berthv1connect.NewBerthServiceClient(&http.Client{Transport: f.transport}, "https://"+lead.address)
	request := connect.NewRequest(question)
	request.Header().Set(forwardedHeader, callerOf(ctx).header())
	response, err := method(client, ctx, request)
	if err != nil && rpc.Detail(err) == nil {
		return nil, unreachable(lead, err)
	}
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(response.Msg), nil // without the headers of this hop
}
