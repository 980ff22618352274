package gate

import (
	"net/http"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/refusal"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// anonymousTime is how long a caller without a certificate may take to send its message.
const anonymousTime = 10 * time.Second

// Anonymous is the role of a caller without a certificate.
const Anonymous pki.Role = ""

// Authorise lets a call pass only if the caller's role may make it, by the traits of the method. It decides before any message is
// read. The API and the agents' listener both stand behind it.
func (k *Keeper) Authorise(next http.Handler) http.Handler {
	return k.identified(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := CallerOf(r.Context())
		if !rpc.TraitsOf(r.URL.Path).MayCall(caller.Role) {
			refused := denied(caller, r.URL.Path)
			k.NoteRefused(caller, r.URL.Path, refused)
			refusal.Write(w, r, refused)
			return
		}
		if caller.Role == Anonymous {
			// Where the deadline cannot be set, the size of the message is still bounded.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(anonymousTime))
		}
		next.ServeHTTP(w, r)
	}))
}

func denied(caller Caller, procedure string) *connect.Error {
	if caller.Role == Anonymous {
		return rpc.Errorf(connect.CodeUnauthenticated, &berthv1.ErrorDetail{
			Code:     rpc.Denied,
			Subject:  procedure,
			NextStep: "use a client certificate of this cluster: copy the client configuration that 'berth coordinator init' wrote",
		}, "this needs a client certificate, and none was given")
	}
	return rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{
		Code:     rpc.Denied,
		Subject:  procedure,
		NextStep: "use a certificate of another role",
	}, "%s may not call %s", caller.Identity, procedure)
}
