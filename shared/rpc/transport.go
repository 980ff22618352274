package rpc

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/shared/pki"
)

const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	dialTimeout       = 3 * time.Second
	handshakeTimeout  = 3 * time.Second

	// A peer that neither speaks nor answers a ping for both together is dead. Berth's streams speak every two
	// seconds, so this only finds what a cut cable leaves behind.
	pingAfter   = 5 * time.Second
	pingTimeout = 5 * time.Second

	// How many calls share a connection. Another coordinator or a program that has more opens another connection.
	maxConcurrentStreams = 32
)

// NewServer makes a server for h on addr with the TLS settings t. It has no read or write timeout, because these would
// end streams: a dead client is found by HTTP/2 pings. What net/http complains of (failed handshakes, of port probes too)
// is logged at debug level: the other side gets the reason. Start it with ListenAndServeTLS("", "") or ServeTLS(l, "", "").
func NewServer(addr string, h http.Handler, t *tls.Config, log hclog.Logger) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &http.Server{
		Addr:              addr,
		Handler:           h,
		TLSConfig:         t,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		ErrorLog:          log.StandardLogger(&hclog.StandardLoggerOptions{ForceLevel: hclog.Debug}),
		Protocols:         protocols,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: maxConcurrentStreams,
			SendPingTimeout:      pingAfter,
			PingTimeout:          pingTimeout,
		},
	}
}

// NewHTTPClient makes a client that speaks HTTP/2 only, which streams in both directions need. It has no timeout for
// whole calls: give unary calls a context with a deadline. A connection whose other side is dead fails within ten
// seconds, by pings. It uses no proxy, keeps no cookies and follows no redirects.
func NewHTTPClient(t *tls.Config) *http.Client { return NewNames("").Client(t) }

// Client is NewHTTPClient with remembered names. What is trusted stays as t says: what runs for long takes Following.
func (n *Names) Client(t *tls.Config) *http.Client {
	return overHTTP2(&http.Transport{DialContext: n.DialContext, TLSClientConfig: t, TLSHandshakeTimeout: handshakeTimeout})
}

// Following is Client with settings that are asked for anew for each connection, so that it follows a list of authorities that changes.
func (n *Names) Following(settings func() *tls.Config) *http.Client {
	return overHTTP2(&http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout+handshakeTimeout)
			defer cancel()
			now := settings().Clone()
			now.NextProtos = []string{"h2"} // the transport adds it only where it dials by itself
			return n.DialTLS(ctx, network, address, now)
		},
	})
}

func overHTTP2(transport *http.Transport) *http.Client {
	transport.IdleConnTimeout = idleTimeout
	transport.Protocols = new(http.Protocols)
	transport.Protocols.SetHTTP2(true)
	transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

type callerKey struct{}

// WithIdentity gives next the identity of the verified client certificate, to be had with Caller and Bearer. A request without a
// certificate, or with one that names nobody, passes without an identity: who needs one refuses it.
func WithIdentity(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 {
			if bearer, err := pki.BearerOf(r.TLS.VerifiedChains[0][0]); err == nil {
				r = r.WithContext(context.WithValue(r.Context(), callerKey{}, bearer))
			}
		}
		next.ServeHTTP(w, r)
	})
}

// As is a context of a call that never leaves the process, and that is made for somebody whom the process itself has recognised. A
// request that comes over a connection has no such context: there a certificate alone tells who it is.
func As(ctx context.Context, who pki.Bearer) context.Context {
	return context.WithValue(context.WithValue(ctx, callerKey{}, who), insideKey{}, true)
}

// insideKey tells of a call that it never leaves the process.
type insideKey struct{}

// Unpacked has a call that came from inside answered as it is: to compress what the same process reads at once is work for nothing. It
// changes the request's headers. Where the call goes on to another member, it is not for this.
func Unpacked(r *http.Request) {
	if inside, _ := r.Context().Value(insideKey{}).(bool); inside {
		r.Header.Del("Accept-Encoding")
	}
}

// Caller is who makes the request, by its certificate. It is false when there is none.
func Caller(ctx context.Context) (pki.Identity, bool) {
	bearer, ok := Bearer(ctx)
	return bearer.Identity, ok
}

// Bearer is Caller with what else its certificate says.
func Bearer(ctx context.Context) (pki.Bearer, bool) {
	bearer, ok := ctx.Value(callerKey{}).(pki.Bearer)
	return bearer, ok
}
