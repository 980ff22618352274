package api

import (
	"context"
	"net"
	"net/http"
	"net/url"

	"berth/coordinator/state"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// forwardedHeader carries, from one coordinator to another, who made the call in the first place. A call that has it is
// never forwarded again.
const forwardedHeader = "Berth-Forwarded-For"

// caller is who makes a call, wherever it came in.
type caller struct {
	pki.Identity        // zero without a certificate
	address      string // without port
	forwarded    bool   // by another coordinator
}

// String is the name under which the history remembers the caller.
func (c caller) String() string {
	if c.Role == anyone {
		return "anonymous/" + c.address
	}
	return c.Identity.String()
}

type callerKey struct{}

func callerOf(ctx context.Context) caller {
	c, _ := ctx.Value(callerKey{}).(caller)
	return c
}

// identified gives next the caller. From another coordinator that is the one it names; the same header from anybody
// else is dropped unread. A coordinator that was removed has a good certificate and is nobody.
func identified(records *state.Store, next http.Handler) http.Handler {
	return rpc.WithIdentity(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := caller{address: hostOf(r.RemoteAddr)}
		who.Identity, _ = rpc.Caller(r.Context())
		if who.Role == pki.RolePeer && !isMember(records.Snapshot(), who.ID) {
			refuse(w, r, removed(rpc.Denied, who.Name))
			return
		}
		if text := r.Header.Get(forwardedHeader); text != "" && who.Role == pki.RolePeer {
			original, ok := parseForwarded(text)
			if !ok {
				refuse(w, r, refusal(rpc.Invalid, "", "run the same release of berth on all coordinators",
					"%s forwarded a call without saying whose it is", who))
				return
			}
			who = original
		}
		r.Header.Del(forwardedHeader)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
	}))
}

// isMember tells whether a coordinator has a record here. A member that has not been filled with the state yet knows
// nobody and takes every certificate's word.
func isMember(snapshot *state.Snapshot, id string) bool {
	_, known := snapshot.Member(id)
	return known || len(snapshot.Members()) == 0
}

func (c caller) header() string {
	return url.Values{
		"role": {string(c.Role)}, "id": {c.ID}, "name": {c.Name}, "cluster": {c.ClusterID}, "address": {c.address},
	}.Encode()
}

func parseForwarded(text string) (caller, bool) {
	values, err := url.ParseQuery(text)
	if err != nil || !values.Has("role") || !values.Has("address") {
		return caller{}, false
	}
	return caller{
		Identity: pki.Identity{
			Role: pki.Role(values.Get("role")), ID: values.Get("id"),
			Name: values.Get("name"), ClusterID: values.Get("cluster"),
		},
		address:   values.Get("address"),
		forwarded: true,
	}, true
}

func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
