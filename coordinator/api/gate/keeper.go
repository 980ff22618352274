package gate

import (
	"context"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/refusal"
	"berth/coordinator/authorities"
	"berth/coordinator/identities"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pause"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// lateness is how long a caller waits whose record may be on its way here from the leader.
	lateness = time.Second
	// lookAgain is how often the callers of live calls are looked at: who is revoked is out within a second.
	lookAgain = 250 * time.Millisecond
	// mostNoted bounds the callers that are to be recorded.
	mostNoted = 1024
)

// Keeper asks for each call, and for live ones again whenever identities change, whether its caller counts. It is safe for
// concurrent use.
type Keeper struct {
	records *state.Store
	now     func() time.Time

	mu    sync.Mutex
	live  map[*visit]struct{}
	noted map[string]pki.Bearer // that count without a record, by key

	refused refusals
}

// NewKeeper makes a Keeper that looks identities up in the records of this member.
func NewKeeper(records *state.Store, now func() time.Time) *Keeper {
	return &Keeper{records: records, now: now, live: make(map[*visit]struct{}), noted: make(map[string]pki.Bearer)}
}

// visit is a call that is being answered.
type visit struct {
	who      []pki.Bearer // its caller, and the coordinator that has forwarded it
	standing identities.Standing
	control  *http.ResponseController
	cancel   context.CancelFunc

	mu   sync.Mutex
	over bool
}

// end breaks the call off, unless it is over.
func (v *visit) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.over {
		return
	}
	v.over = true
	v.cancel()
	// What waits for the caller, or for its connection, waits no more. Neither fails on HTTP/2.
	_ = v.control.SetReadDeadline(time.Now())
	_ = v.control.SetWriteDeadline(time.Now().Add(lookAgain))
}

func (k *Keeper) enter(v *visit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.live[v] = struct{}{}
}

func (k *Keeper) leave(v *visit) {
	k.mu.Lock()
	delete(k.live, v)
	k.mu.Unlock()
	v.mu.Lock()
	defer v.mu.Unlock()
	v.over = true
	v.cancel()
}

// Watch ends the calls of those that do not count any more, until the context ends.
func (k *Keeper) Watch(ctx context.Context) {
	looked, changed := k.records.Snapshot(), false
	for pause.For(ctx, lookAgain) {
		x := k.records.Snapshot()
		again := changed // for a call that was judged by what was before, and began in the moment of the change
		changed = !x.SameIdentities(looked.Access)
		if looked = x; changed || again {
			k.sweep(x)
		}
	}
}

func (k *Keeper) sweep(x *state.Snapshot) {
	k.mu.Lock()
	visits := make([]*visit, 0, len(k.live))
	for v := range k.live {
		visits = append(visits, v)
	}
	k.mu.Unlock()
	for _, v := range visits {
		for i, who := range v.who {
			is := identities.Judge(x, who, k.now())
			if is.Counts() || i == 0 && is == identities.Gone && v.standing == identities.Gone {
				continue
			}
			v.end()
		}
	}
}

// judge tells the standing of a caller. One that is not known here may have been recorded a moment ago, by the leader.
func (k *Keeper) judge(ctx context.Context, who pki.Bearer) (identities.Standing, string) {
	ctx, cancel := context.WithTimeout(ctx, lateness)
	defer cancel()
	for {
		x := k.records.Snapshot()
		is := identities.Judge(x, who, k.now())
		if began, _ := identities.Began(x); is != identities.Unknown || !began {
			return is, k.nameOf(x, who)
		}
		select {
		case <-x.Changed():
		case <-ctx.Done():
			return is, who.Name
		}
	}
}

// nameOf is the name on record: what the certificate says may be another one's.
func (k *Keeper) nameOf(x *state.Snapshot, who pki.Bearer) string {
	if identity, known := x.Identity(who.ID); known {
		return identity.Name
	}
	return who.Name
}

// note remembers a caller that counts and has no record.
func (k *Keeper) note(who pki.Bearer) {
	if who.Key == "" || who.Role == Anonymous {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.noted) < mostNoted {
		k.noted[who.Key] = who
	}
}

// Note has somebody recorded that has made no call here: this member itself.
func (k *Keeper) Note(who pki.Bearer) { k.note(who) }

// Noted takes the callers that count and had no record when they called.
func (k *Keeper) Noted() []pki.Bearer {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]pki.Bearer, 0, len(k.noted))
	for _, who := range k.noted {
		all = append(all, who)
	}
	clear(k.noted)
	return all
}

// admit tells whether a caller may go on with a call of a procedure, and how it stands.
func (k *Keeper) admit(r *http.Request, who *pki.Bearer) (identities.Standing, *connect.Error) {
	standing, name := k.judge(r.Context(), *who)
	who.Name = name
	switch {
	case standing == identities.Unrecorded:
		k.note(*who)
		return standing, nil
	case standing.Counts():
		if _, newer := authorities.Seen(k.records.Snapshot(), *who, k.now()); newer {
			k.note(*who)
		}
		return standing, nil
	case standing == identities.Gone && r.URL.Path == berthv1connect.AgentServiceSessionProcedure:
		return standing, nil // it gets no orders there
	}
	return standing, notAdmitted(*who, standing)
}

func notAdmitted(who pki.Bearer, standing identities.Standing) *connect.Error {
	if who.Role == pki.RolePeer && (standing == identities.Unknown || standing == identities.Revoked) {
		return refusal.Removed(rpc.Denied, who.Name)
	}
	next := map[pki.Role]string{
		pki.RoleAgent: "enrol the node again with a new token", pki.RoleOperator: "get a new token and run 'berth login'",
	}[who.Role]
	return rpc.Errorf(connect.CodePermissionDenied, &berthv1.ErrorDetail{
		Code: rpc.Denied, Subject: nounOf(who.Role) + "/" + who.Name, NextStep: next,
	}, "%s %s (ID %s) %s", nounOf(who.Role), who.Name, who.ID, standing.Why())
}

func nounOf(role pki.Role) string {
	switch role {
	case pki.RolePeer:
		return "coordinator"
	case pki.RoleAgent:
		return "node"
	default:
		return string(role)
	}
}
