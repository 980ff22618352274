package sessions

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/refusal"
	"berth/coordinator/identities"
	"berth/coordinator/session"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// lateness is how long a session may be on its way here from the leader that has opened it.
	lateness = time.Second
	// callLimit is how long one call of a page may take.
	callLimit = 20 * time.Second
)

// Desk knows who is behind a cookie. It reads the records of its member, so that a page needs no leader to know whom it is shown to.
type Desk struct {
	Records   *state.Store
	Now       func() time.Time
	ClusterID string
	API       http.Handler               // with all that a call from outside has to pass
	Self      func() (pki.Bearer, error) // this member, as which links are used
}

// Visitor is somebody with a good cookie.
type Visitor struct {
	Session  session.Session
	Operator string // name
	API      berthv1connect.BerthServiceClient
}

// Open uses a link, and gives the text of the cookie of the session.
func (d *Desk) Open(ctx context.Context, link, address, browser string) (cookie string, until time.Time, err error) {
	id, linkHash, whole := session.Parse(link)
	if !whole {
		return "", time.Time{}, refusal.New(rpc.Denied, "", "run 'berth console' again", "the address of the link is not whole")
	}
	// Whoever guesses is refused by this member alone: the leader is asked only about a link that is on record.
	if !d.await(ctx, id, func(one session.Session) bool { return session.Same(linkHash, one.Link) }) {
		return "", time.Time{}, refusal.New(rpc.Denied, "session/"+id, "run 'berth console' again",
			"this link was used, or has ended: it is good once, for %s", session.LinkLife)
	}
	self, err := d.Self()
	if err != nil {
		return "", time.Time{}, err
	}
	cookie, secretHash := session.Draw(id, func(raw []byte) { _, _ = rand.Read(raw) })
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	client := berthv1connect.NewMemberServiceClient(d.inside(self, address, func(string) bool { return true }), inside)
	answered, err := client.OpenSession(ctx, connect.NewRequest(&berthv1.OpenSessionRequest{
		Id: id, LinkHash: linkHash, SecretHash: secretHash, From: hostOf(address), Browser: browser, RequestId: answer.NewID(d.Now()),
	}))
	if err != nil {
		return "", time.Time{}, err
	}
	d.await(ctx, id, func(one session.Session) bool { return session.Same(secretHash, one.Secret) })
	return cookie, answered.Msg.GetSession().GetUntil().AsTime(), nil
}

// await waits until this member has a session as it is wanted: the leader may have it already.
func (d *Desk) await(ctx context.Context, id string, wanted func(session.Session) bool) bool {
	ctx, cancel := context.WithTimeout(ctx, lateness)
	defer cancel()
	for {
		x := d.Records.Snapshot()
		if one, known := x.Session(id); known && wanted(one) {
			return true
		}
		select {
		case <-x.Changed():
		case <-ctx.Done():
			return false
		}
	}
}

// Visitor finds who is behind a cookie. False: nobody who counts now.
func (d *Desk) Visitor(cookie, address string) (Visitor, bool) {
	id, hash, whole := session.Parse(cookie)
	if !whole {
		return Visitor{}, false
	}
	x, now := d.Records.Snapshot(), d.Now()
	one, known := x.Session(id)
	if !known || !session.Same(hash, one.Secret) || !one.Good(now) {
		return Visitor{}, false
	}
	identity, known := x.Identity(one.Operator)
	if !known {
		return Visitor{}, false
	}
	bearer := pki.Bearer{
		Identity: pki.Identity{Role: pki.RoleOperator, ID: identity.ID, Name: identity.Name, ClusterID: d.ClusterID},
		Key:      one.Key,
	}
	for _, key := range identity.Keys {
		if key.Hash == one.Key {
			bearer.Until, bearer.Authority = key.ValidUntil, key.Authority
		}
	}
	if identities.Judge(x, bearer, now) != identities.Recorded {
		return Visitor{}, false
	}
	may := func(string) bool { return true }
	if one.Role != session.Operate {
		may = func(procedure string) bool { return rpc.TraitsOf(procedure).Class() == berthv1.Class_CLASS_READ }
	}
	return Visitor{
		Session: one, Operator: identity.Name, API: berthv1connect.NewBerthServiceClient(d.inside(bearer, address, may), inside),
	}, true
}

// Close ends the session of a visitor, which those who only look may, too.
func (d *Desk) Close(ctx context.Context, cookie, address string) error {
	visitor, known := d.Visitor(cookie, address)
	if !known {
		return nil
	}
	self, err := d.Self()
	if err != nil {
		return err
	}
	client := berthv1connect.NewBerthServiceClient(d.inside(self, address, func(string) bool { return true }), inside)
	_, err = client.RevokeSession(ctx, connect.NewRequest(&berthv1.RevokeSessionRequest{
		Id: visitor.Session.ID, RequestId: answer.NewID(d.Now()),
	}))
	return err
}

// inside is the address of calls that never leave the process.
const inside = "https://coordinator.inside"

func (d *Desk) inside(who pki.Bearer, address string, may func(procedure string) bool) *http.Client {
	return &http.Client{Transport: within{desk: d, who: who, address: address, may: may}}
}

// within carries a call to the API of this process: as it is, it stands before the same gates as one from outside, which look at whose
// the key is for each call, and which forward it to the leader.
type within struct {
	desk    *Desk
	who     pki.Bearer
	address string
	may     func(procedure string) bool
}

// errBroken reports a call that its handler has broken off.
var errBroken = errors.New("the coordinator broke the call off")

// RoundTrip answers one call. A handler that breaks off ends one connection of a server. Here it would end the process, because a client
// may wait for its answer in a goroutine that nobody else guards.
func (w within) RoundTrip(r *http.Request) (answer *http.Response, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			answer, err = nil, fmt.Errorf("%w: %v", errBroken, reason)
		}
	}()
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }()
	}
	in := r.Clone(rpc.As(r.Context(), w.who))
	in.RemoteAddr, in.RequestURI, in.TLS = w.address, r.URL.RequestURI(), nil
	out := &recorded{header: http.Header{}}
	if !w.may(r.URL.Path) {
		refusal.Write(out, in, refusal.New(rpc.Denied, "operator/"+w.who.Name, "open another session with 'berth console'",
			"this session is read-only"))
		return out.response(r), nil
	}
	w.desk.API.ServeHTTP(out, in)
	if err := r.Context().Err(); err != nil && out.code == 0 {
		return nil, err
	}
	return out.response(r), nil
}

// recorded is an answer in memory. Answers of one page are bounded, as pages of lists are.
type recorded struct {
	header, sent http.Header // sent are the headers as they were when the answer began
	code         int
	body         bytes.Buffer
}

func (r *recorded) Header() http.Header { return r.header }

func (r *recorded) WriteHeader(code int) {
	if r.code == 0 {
		r.code, r.sent = code, r.header.Clone()
	}
}

func (r *recorded) Write(data []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(data)
}

func (r *recorded) Flush() { r.WriteHeader(http.StatusOK) }

func (r *recorded) response(to *http.Request) *http.Response {
	r.WriteHeader(http.StatusOK)
	trailer := http.Header{}
	for name, values := range r.header {
		if bare, is := strings.CutPrefix(name, http.TrailerPrefix); is {
			trailer[bare] = values
		}
	}
	return &http.Response{
		Status: http.StatusText(r.code), StatusCode: r.code, Proto: "HTTP/2.0", ProtoMajor: 2, Header: r.sent, Trailer: trailer,
		Body: io.NopCloser(&r.body), ContentLength: int64(r.body.Len()), Request: to,
	}
}

func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}
