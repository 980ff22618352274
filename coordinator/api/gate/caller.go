package gate

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect"

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
	pki.Bearer        // zero without a certificate
	Address    string // without port
	Forwarded  bool   // by another coordinator
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

// identified gives next the caller, if it counts. For a call from another coordinator that is the caller it names; the same header
// from any other caller is dropped unread. A certificate is good for longer than its holder counts: what is on record is asked each time.
func (k *Keeper) identified(next http.Handler) http.Handler {
	return rpc.WithIdentity(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := Caller{Address: hostOf(r.RemoteAddr)}
		bearer, known := rpc.Bearer(r.Context())
		if !known {
			r.Header.Del(forwardedHeader)
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callerKey{}, who)))
			return
		}
		v := &visit{control: http.NewResponseController(w)}
		var refused *connect.Error
		if v.standing, refused = k.admit(r, &bearer); refused != nil {
			k.NoteRefused(Caller{Bearer: bearer, Address: who.Address}, r.URL.Path, refused)
			refusal.Write(w, r, refused)
			return
		}
		v.who, who.Bearer = append(v.who, bearer), bearer
		if text := r.Header.Get(forwardedHeader); text != "" && bearer.Role == pki.RolePeer {
			original, ok := parseForwarded(text)
			if !ok {
				refusal.Write(w, r, refusal.New(rpc.Invalid, "", "run the same release of berth on all coordinators",
					"%s forwarded a call without saying whose it is", who))
				return
			}
			who = original
			if who.Role != Anonymous {
				if v.standing, refused = k.admit(r, &who.Bearer); refused != nil {
					k.NoteRefused(who, r.URL.Path, refused)
					refusal.Write(w, r, refused)
					return
				}
				v.who = append([]pki.Bearer{who.Bearer}, v.who...)
			}
		}
		r.Header.Del(forwardedHeader)
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, who))
		v.cancel = cancel
		k.enter(v)
		defer k.leave(v)
		next.ServeHTTP(w, r.WithContext(ctx))
	}))
}

// IsMember tells whether a coordinator has a record here. A member that has not received the state yet has no records and
// trusts every good certificate.
func IsMember(snapshot *state.Snapshot, id string) bool {
	_, known := snapshot.Member(id)
	return known || len(snapshot.Members()) == 0
}

func (c Caller) header() string {
	values := url.Values{
		"role": {string(c.Role)}, "id": {c.ID}, "name": {c.Name}, "cluster": {c.ClusterID}, "address": {c.Address}, "key": {c.Key},
	}
	if c.Authority != "" {
		values.Set("authority", c.Authority)
	}
	if !c.Until.IsZero() {
		values.Set("until", c.Until.UTC().Format(time.RFC3339))
	}
	return values.Encode()
}

func parseForwarded(text string) (Caller, bool) {
	values, err := url.ParseQuery(text)
	if err != nil || !values.Has("role") || !values.Has("address") {
		return Caller{}, false
	}
	var until time.Time
	if text := values.Get("until"); text != "" {
		if until, err = time.Parse(time.RFC3339, text); err != nil {
			return Caller{}, false
		}
	}
	return Caller{
		Bearer: pki.Bearer{
			Identity: pki.Identity{
				Role: pki.Role(values.Get("role")), ID: values.Get("id"),
				Name: values.Get("name"), ClusterID: values.Get("cluster"),
			},
			Key: values.Get("key"), Until: until, Authority: values.Get("authority"),
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
