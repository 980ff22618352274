package identities

import (
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// Standing is what somebody with a good certificate is here.
type Standing int

// The standings. The first two count.
const (
	Recorded   Standing = iota // a live identity has the key
	Unrecorded                 // it counts as in releases without records, and its key is to be recorded
	Gone                       // a node that was removed: it is listened to, and that is all
	Unknown                    // no record has the key, or not yet
	Revoked                    // it was revoked
	Foreign                    // the key is that of somebody else
	Expired                    // the certificate has ended since the connection was made
)

// Counts tells whether somebody of this standing may do what its role may.
func (s Standing) Counts() bool { return s == Recorded || s == Unrecorded }

// Why says what is wrong, as the end of a sentence that names who it is.
func (s Standing) Why() string {
	switch s {
	case Recorded, Unrecorded:
		return "is known here"
	case Gone, Revoked:
		return "was revoked"
	case Foreign:
		return "has the key of somebody else"
	case Expired:
		return "has a certificate that has ended"
	default:
		return "has a key that is not on record here"
	}
}

// Judge tells the standing of somebody at a time.
func Judge(x *state.Snapshot, who pki.Bearer, at time.Time) Standing {
	identity, known := x.IdentityByKey(who.Key)
	if !who.Until.IsZero() && at.After(who.Until) && (!known || !renewed(&identity, who, at)) {
		return Expired
	}
	if known {
		return recorded(x, &identity, who)
	}
	began, from := Began(x)
	own, known := x.Identity(who.ID)
	switch {
	case !began:
		return unrecorded(x, who, true)
	case known && len(own.Keys) > 0 && own.Live():
		return Unknown // whoever can sign may name anybody
	case known && len(own.Keys) > 0:
		return Revoked
	case known && !own.Live():
		return revoked(x, &own)
	default:
		return unrecorded(x, who, known || at.Before(from))
	}
}

// renewed tells that there is a later certificate for a key than the one that a connection was made with. What is open goes on.
func renewed(identity *model.Identity, who pki.Bearer, at time.Time) bool {
	for _, key := range identity.Keys {
		if key.Hash == who.Key {
			return !at.After(key.ValidUntil)
		}
	}
	return false
}

// recorded judges somebody whose key is on record.
func recorded(x *state.Snapshot, identity *model.Identity, who pki.Bearer) Standing {
	switch {
	case identity.ID != who.ID || identity.Role != string(who.Role):
		return Foreign
	case !identity.Live():
		return revoked(x, identity)
	default:
		return Recorded
	}
}

// revoked is the standing of a revoked identity: a node that is not on record any more is listened to, unless somebody has revoked it
// before. Who does that believes it no word: what it says of others' VMs would keep them from being started.
func revoked(x *state.Snapshot, identity *model.Identity) Standing {
	if identity.Kind == model.IdentityNode && identity.Revoked.Reason == removed {
		if _, onRecord := x.Node(identity.ID); !onRecord {
			return Gone
		}
	}
	return Revoked
}

// unrecorded judges somebody without a record, as releases without records did. Operators had no record of any kind there, so they count
// only for as long as they are waited for.
func unrecorded(x *state.Snapshot, who pki.Bearer, waited bool) Standing {
	if len(x.Members()) == 0 {
		return Unrecorded // a member that is joining has received nothing yet
	}
	var counts bool
	switch who.Role {
	case pki.RolePeer:
		_, counts = x.Member(who.ID)
	case pki.RoleAgent:
		if _, counts = x.Node(who.ID); !counts && waited {
			return Gone
		}
	case pki.RoleOperator:
		counts = waited
	}
	if !counts {
		return Unknown
	}
	return Unrecorded
}

// Began tells whether records have begun, and until when somebody without one counts as before.
func Began(x *state.Snapshot) (began bool, from time.Time) {
	text := x.Meta(state.MetaRecordsFrom)
	if text == "" {
		return false, time.Time{}
	}
	from, _ = time.Parse(time.RFC3339, text) // what is no time is long ago
	return true, from
}

// Ends are when certificates end that nobody has renewed: the first of nodes and of coordinators, and the last of operators, who renew
// theirs by calling and are not waited for. A kind without any is left out.
func Ends(x *state.Snapshot) map[model.IdentityKind]time.Time {
	ends := make(map[model.IdentityKind]time.Time)
	for _, identity := range x.Identities() {
		until := identity.ValidUntil()
		if !identity.Live() || until.IsZero() {
			continue
		}
		was, known := ends[identity.Kind]
		if !known || until.Before(was) != (identity.Kind == model.IdentityOperator) {
			ends[identity.Kind] = until
		}
	}
	return ends
}
