package api

import (
	"bytes"
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
	removed bool // this member is not one any more: it will never know a leader
	name    string
	address string // of its API
}

var (
	errNoLeader = errors.New("the coordinators have no leader")
	errMoved    = errors.New("the call was forwarded here, and this coordinator does not lead any more")
)

// notLeaderHeader marks the answer of a coordinator that a call was forwarded to in vain.
const notLeaderHeader = "Berth-Not-Leader"

// forwarder sends calls to the leader. It is the only place that does.
type forwarder struct {
	find      func() (leader, bool)
	leads     func(context.Context) error // waits until this member's election has proved good, which it may not
	transport http.RoundTripper           // to other members, by mutual TLS
	proxy     *httputil.ReverseProxy
	log       hclog.Logger
}

func newForwarder(
	find func() (leader, bool), leads func(context.Context) error, transport http.RoundTripper, log hclog.Logger,
) *forwarder {
	f := &forwarder{find: find, leads: leads, transport: transport, log: log}
	f.proxy = &httputil.ReverseProxy{
		Rewrite:        rewrite,
		Transport:      transport,
		FlushInterval:  -1, // streams pass on every message at once
		ModifyResponse: accept,
		ErrorHandler:   f.failed,
		ErrorLog:       log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
	}
	return f
}

// wrap lets next answer only on the leader. A call that surely was not taken up, because the leader could not be reached
// or turned out to be none, is tried again as long as a call waits for a leader.
func (f *forwarder) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if answeredAnywhere[r.URL.Path] {
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), leaderPatience)
		defer cancel()
		var held *held
		for {
			lead, lost := f.await(ctx)
			switch {
			case lost != nil:
				refuse(w, r, lost)
				return
			case lead.self:
				if f.leads(ctx) != nil { // it was elected, and another one after it: nobody has begun with the call
					if pause(ctx, leaderPoll) {
						continue
					}
					refuse(w, r, noLeader(errNoLeader))
					return
				}
				if held != nil {
					r.Body = held.again()
				}
				next.ServeHTTP(w, r)
				return
			case callerOf(r.Context()).forwarded:
				w.Header().Set(notLeaderHeader, "1")
				refuse(w, r, moved())
				return
			}
			if held == nil {
				held = hold(r)
			}
			try := &attempt{lead: lead, again: held.whole}
			if !held.whole {
				try.answered = func() { _ = http.NewResponseController(w).SetReadDeadline(time.Now()) } // HTTP/2 can, and HTTP/1 need not
			}
			out := r.WithContext(context.WithValue(r.Context(), attemptKey{}, try))
			out.Body = held.again()
			f.proxy.ServeHTTP(w, out)
			if try.failed == nil {
				return
			}
			if !pause(ctx, leaderPoll) {
				refuse(w, r, lead.lost(try.failed))
				return
			}
		}
	})
}

// held is the body of a call, kept so that it can be sent more than once. A stream, and what does not say how long it is,
// is not kept: it can be sent again only if none of it was read.
type held struct {
	whole bool
	data  []byte
	rest  io.Reader
}

func hold(r *http.Request) *held {
	limit := int64(messageLimit(r.URL.Path))
	if r.ContentLength < 0 || r.ContentLength > limit {
		return &held{rest: r.Body}
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limit))
	if err != nil {
		return &held{rest: io.MultiReader(bytes.NewReader(data), failing{err})} // the caller's fault, and told to him by the leader
	}
	return &held{whole: true, data: data}
}

// again is the body from its beginning. Closing it does nothing: a transport closes what it could not send.
func (h *held) again() io.ReadCloser {
	if h.whole {
		return io.NopCloser(bytes.NewReader(h.data))
	}
	return io.NopCloser(h.rest)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// await waits until this member knows a leader. It may be an old one: a member learns late that another one died.
func (f *forwarder) await(ctx context.Context) (leader, *connect.Error) {
	for {
		lead, known := f.find()
		switch {
		case known:
			return lead, nil
		case lead.removed:
			return lead, removed(rpc.Unavailable, lead.name)
		case !pause(ctx, leaderPoll):
			return lead, noLeader(errNoLeader)
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
	again  bool        // the body can be sent again
	sent   atomic.Bool // a connection was there: the leader may have got something
	failed error       // why the leader surely did not take it up

	// answered, of a stream, ends the reading of what the caller still sends: the transport waits for that.
	answered func()
}

// answerBody is the body of a leader's answer.
type answerBody struct {
	io.ReadCloser
	answered func()
}

// Close is called when the answer has been passed on to its end.
func (b answerBody) Close() error {
	b.answered()
	return b.ReadCloser.Close()
}

type attemptKey struct{}

func attemptOf(ctx context.Context) *attempt { return ctx.Value(attemptKey{}).(*attempt) }

func rewrite(r *httputil.ProxyRequest) {
	try := attemptOf(r.In.Context())
	r.SetURL(&url.URL{Scheme: "https", Host: try.lead.address})
	r.Out.Header.Set(forwardedHeader, callerOf(r.In.Context()).header())
	r.Out = r.Out.WithContext(try.traced(r.Out.Context()))
}

// traced notes when a connection was there to send on.
func (a *attempt) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.sent.Store(true) },
	})
}

// accept looks at the beginning of an answer. One that says that the call came to the wrong member is none.
func accept(response *http.Response) error {
	if response.Header.Get(notLeaderHeader) != "" && attemptOf(response.Request.Context()).again {
		return errMoved
	}
	if try := attemptOf(response.Request.Context()); try.answered != nil {
		response.Body = answerBody{response.Body, try.answered}
	}
	return nil
}

// failed is called when there was no answer.
func (f *forwarder) failed(w http.ResponseWriter, r *http.Request, err error) {
	try := attemptOf(r.Context())
	if r.Context().Err() == nil && (!try.sent.Load() || errors.Is(err, errMoved)) {
		try.failed = err
		return
	}
	f.log.Debug("a forwarded call got no answer", "procedure", r.URL.Path, "leader", try.lead.name, "error", err)
	refuse(w, r, refusal(rpc.Unavailable, "coordinator/"+try.lead.name, repeatStep,
		"the leader %s went away before it answered", try.lead.name))
}

func moved() *connect.Error { return refusal(rpc.Unavailable, "", repeatStep, "%w", errMoved) }

// lost says why the leader did not answer.
func (l leader) lost(err error) *connect.Error {
	if errors.Is(err, errMoved) {
		return noLeader(errNoLeader)
	}
	return refusal(rpc.Unreachable, "coordinator/"+l.name,
		fmt.Sprintf("check that coordinator %s runs and that %s is reachable from the other coordinators", l.name, l.address),
		"the leader %s does not answer at %s: %w", l.name, l.address, err)
}

// relay asks the leader on behalf of a caller whose call this member has begun to answer itself.
func relay[Q, A any](
	ctx context.Context, f *forwarder, question *Q,
	method func(berthv1connect.BerthServiceClient, context.Context, *connect.Request[Q]) (*connect.Response[A], error),
) (*connect.Response[A], error) {
	waiting, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	for {
		lead, lost := f.await(waiting)
		switch {
		case lost != nil:
			return nil, lost
		case lead.self:
			return nil, moved() // it has just come here
		}
		try := &attempt{lead: lead}
		client := berthv1connect.NewBerthServiceClient(&http.Client{Transport: f.transport}, "https://"+lead.address)
		request := connect.NewRequest(question)
		request.Header().Set(forwardedHeader, callerOf(ctx).header())
		response, err := method(client, try.traced(ctx), request)
		if err == nil {
			return connect.NewResponse(response.Msg), nil // without the headers of this hop
		}
		var answered *connect.Error
		switch {
		case errors.As(err, &answered) && answered.Meta().Get(notLeaderHeader) != "":
			err = errMoved
		case rpc.Detail(err) != nil:
			return nil, err
		case try.sent.Load():
			return nil, refusal(rpc.Unavailable, "coordinator/"+lead.name, repeatStep, "the leader %s went away before it answered", lead.name)
		}
		if !pause(waiting, leaderPoll) {
			return nil, lead.lost(err)
		}
	}
}
