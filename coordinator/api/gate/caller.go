package gate

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"berth/coordinator/api/refusal"
	"berth/coordinator/state"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// forwardedHeader names the original caller when one coordinator forwards a call to another. A call that has it is never
// forwarded again.
const forwardedHeader = "Berth-Forwarded-For"

// Caller is who makes a call, wherever it came in.
type Caller struct {
	pki.Identity        // zero without a certificate
	Address      string // without port
	Forwarded    bool   // by another coordinator
}

// String is the name under which the history remembers the caller.
func (c Caller) String() string {
	if c.Role == Anonymous {
		return "anonymous/" + c.Address
	}
	return c.Identity.String()
}

type callerKey struct{}

// CallerOf is who makes the call that a handler answers.
func CallerOf(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// identified gives next the caller. For a call from another coordinator that is the caller it names; the same header from
// any other caller is dropped unread. A coordinator that was removed still has a good certificate, and is refused.
func identified(records *state.Store, next http.Handler) http.Handler {
	return rpc.WithIdentity(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := Caller{Address: hostOf(r.RemoteAddr)}
		who.Identity, _ = rpc.Caller(r.Context())
		if who.Role == pki.RolePeer && !IsMember(records.Snapshot(), who.ID) {
			refusal.Write(w, r, refusal.Removed(rpc.Denied, who.Name))
			return
		}
		if text := r.Header.Get(forwardedHeader); text != "" && who.Role == pki.RolePeer {
			original, ok := parseForwarded(text)
			if !ok {
				refusal.Write(w, r, refusal.New(rpc.Invalid, "", "run the same release of berth on all coordinators",
					"%s forwarded a call without saying whose it is", who))
				return
			}
			who = original
		}
		r.Header.Del(forwardedHeader)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	}))
}

// IsMember tells whether a coordinator has a record here. A member that has not received the state yet has no records and
// trusts every good certificate.
func IsMember(snapshot *state.Snapshot, id string) bool {
	_, known := snapshot.Member(id)
	return known || len(snapshot.Members()) == 0
}

func (c Caller) header() string {
	return url.Values{
		"role": {string(c.Role)}, "id": {c.ID}, "name": {c.Name}, "cluster": {c.ClusterID}, "address": {c.Address},
	}.Encode()
}

func parseForwarded(text string) (Caller, bool) {
	values, err := url.ParseQuery(text)
	if err != nil || !values.Has("role") || !values.Has("address") {
		return Caller{}, false
	}
	return Caller{
		Identity: pki.Identity{
			Role: pki.Role(values.Get("role")), ID: values.Get("id"),
			Name: values.Get("name"), ClusterID: values.Get("cluster"),
		},
		Address:   values.Get("address"),
		Forwarded: true,
	}, true
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
