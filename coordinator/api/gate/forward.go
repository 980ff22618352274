package gate

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

	"berth/coordinator/api/refusal"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
	"berth/shared/rpc"
)

const (
	// LeaderPatience is how long a call waits for a leader. An election takes about a second.
	LeaderPatience = 3 * time.Second
	// LeaderPoll is how long to wait before looking for a leader again.
	LeaderPoll = 50 * time.Millisecond
)

// Leader is who leads, as far as this member knows.
type Leader struct {
	Self    bool
	Removed bool // this member is not one any more: it will never know a leader
	Name    string
	Address string // of its API
}

var (
	errNoLeader = errors.New("the coordinators have no leader")
	errMoved    = errors.New("the call was forwarded here, and this coordinator does not lead any more")
)

// notLeaderHeader marks the answer of a coordinator that a call was forwarded to in vain.
const notLeaderHeader = "Berth-Not-Leader"

// Forwarder sends calls to the leader. It is the only place that does.
type Forwarder struct {
	find      func() (Leader, bool)
	leads     func(context.Context) error // waits until this member's election has proved good; fails if it did not
	transport http.RoundTripper           // to other members, by mutual TLS
	proxy     *httputil.ReverseProxy
	log       hclog.Logger
}

// NewForwarder makes a Forwarder. Find says who leads, and leads waits until this member's election has proved good.
func NewForwarder(
	find func() (Leader, bool), leads func(context.Context) error, transport http.RoundTripper, log hclog.Logger,
) *Forwarder {
	f := &Forwarder{find: find, leads: leads, transport: transport, log: log}
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

// Wrap lets next answer only on the leader. A call that certainly was not begun, because the leader could not be reached or
// no longer leads, is tried again for as long as a call waits for a leader.
func (f *Forwarder) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rpc.TraitsOf(r.URL.Path).AnyMember() {
			rpc.Unpacked(r)
			next.ServeHTTP(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), LeaderPatience)
		defer cancel()
		var held *held
		for {
			lead, lost := f.Await(ctx)
			switch {
			case lost != nil:
				refusal.Write(w, r, lost)
				return
			case lead.Self:
				if f.leads(ctx) != nil { // it was elected, and another one after it: nobody has begun with the call
					if pause.For(ctx, LeaderPoll) {
						continue
					}
					refusal.Write(w, r, refusal.NoLeader(errNoLeader))
					return
				}
				if held != nil {
					r.Body = held.again()
				}
				rpc.Unpacked(r)
				next.ServeHTTP(w, r)
				return
			case CallerOf(r.Context()).Forwarded:
				w.Header().Set(notLeaderHeader, "1")
				refusal.Write(w, r, moved())
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
			if !pause.For(ctx, LeaderPoll) {
				refusal.Write(w, r, lead.lost(try.failed))
				return
			}
		}
	})
}

// held is the body of a call, kept so that it can be sent more than once. The body of a stream, or of a call that does not say
// how long it is, is not kept: it can be sent again only if none of it was read.
type held struct {
	whole bool
	data  []byte
	rest  io.Reader
}

func hold(r *http.Request) *held {
	limit := int64(rpc.TraitsOf(r.URL.Path).MaxMessage())
	if r.ContentLength < 0 || r.ContentLength > limit {
		return &held{rest: r.Body}
	}
	data, err := io.ReadAll(io.LimitReader(r.Body, limit))
	if err != nil {
		return &held{rest: io.MultiReader(bytes.NewReader(data), failing{err})} // the caller's fault: the leader says so
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

// Await waits until this member knows a leader. It may be an old one: a member learns late that another one died.
func (f *Forwarder) Await(ctx context.Context) (Leader, *connect.Error) {
	for {
		lead, known := f.find()
		switch {
		case known:
			return lead, nil
		case lead.Removed:
			return lead, refusal.Removed(rpc.Unavailable, lead.Name)
		case !pause.For(ctx, LeaderPoll):
			return lead, refusal.NoLeader(errNoLeader)
		}
	}
}

// attempt is one try to forward a call.
type attempt struct {
	lead   Leader
	again  bool        // the body can be sent again
	sent   atomic.Bool // a connection was there: the leader may have got something
	failed error       // why the leader certainly did not begin with it

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
	r.SetURL(&url.URL{Scheme: "https", Host: try.lead.Address})
	r.Out.Header.Set(forwardedHeader, CallerOf(r.In.Context()).header())
	r.Out = r.Out.WithContext(try.traced(r.Out.Context()))
}

// traced notes when a connection was there to send on.
func (a *attempt) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.sent.Store(true) },
	})
}

// accept looks at the headers of an answer. An answer that says that the call came to the wrong member does not count.
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
func (f *Forwarder) failed(w http.ResponseWriter, r *http.Request, err error) {
	try := attemptOf(r.Context())
	if r.Context().Err() == nil && (!try.sent.Load() || errors.Is(err, errMoved)) {
		try.failed = err
		return
	}
	f.log.Debug("a forwarded call got no answer", "procedure", r.URL.Path, "leader", try.lead.Name, "error", err)
	refusal.Write(w, r, refusal.New(rpc.Unavailable, "coordinator/"+try.lead.Name, refusal.RepeatStep,
		"the leader %s went away before it answered", try.lead.Name))
}

// NotLeader refuses a call that was forwarded to a coordinator that does not lead any more. The one that forwarded it tries again.
func NotLeader() *connect.Error {
	refused := moved()
	refused.Meta().Set(notLeaderHeader, "1")
	return refused
}

func moved() *connect.Error {
	return refusal.New(rpc.Unavailable, "", refusal.RepeatStep, "%w", errMoved)
}

// lost says why the leader did not answer.
func (l Leader) lost(err error) *connect.Error {
	if errors.Is(err, errMoved) {
		return refusal.NoLeader(errNoLeader)
	}
	return refusal.New(rpc.Unreachable, "coordinator/"+l.Name,
		fmt.Sprintf("check that coordinator %s runs and that %s is reachable from the other coordinators", l.Name, l.Address),
		"the leader %s does not answer at %s: %w", l.Name, l.Address, err)
}

// Relay asks the leader on behalf of a caller whose call this member has begun to answer itself.
func Relay[Q, A any](
	ctx context.Context, f *Forwarder, question *Q,
	method func(berthv1connect.BerthServiceClient, context.Context, *connect.Request[Q]) (*connect.Response[A], error),
) (*connect.Response[A], error) {
	waiting, cancel := context.WithTimeout(ctx, LeaderPatience)
	defer cancel()
	for {
		lead, lost := f.Await(waiting)
		switch {
		case lost != nil:
			return nil, lost
		case lead.Self:
			return nil, moved() // it has just come here
		}
		try := &attempt{lead: lead}
		client := berthv1connect.NewBerthServiceClient(&http.Client{Transport: f.transport}, "https://"+lead.Address)
		request := connect.NewRequest(question)
		request.Header().Set(forwardedHeader, CallerOf(ctx).header())
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
			return nil, refusal.New(
				rpc.Unavailable, "coordinator/"+lead.Name, refusal.RepeatStep, "the leader %s went away before it answered", lead.Name,
			)
		}
		if !pause.For(waiting, LeaderPoll) {
			return nil, lead.lost(err)
		}
	}
}
