package identities

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// kinds are what has the roles that certificates name.
var kinds = map[pki.Role]model.IdentityKind{
	pki.RolePeer: model.IdentityCoordinator, pki.RoleAgent: model.IdentityNode, pki.RoleOperator: model.IdentityOperator,
}

// Grace is how long operators without a record count after an upgrade from a release that had no records.
const Grace = 14 * 24 * time.Hour

// Begin is the change with which records begin. Founders are who the first coordinator made when it made the cluster: they are all that
// there is, and nobody else is waited for. Without them this is an upgrade. False: records have begun, or cannot yet.
func Begin(x *state.Snapshot, founders []pki.Bearer, at time.Time) (state.Command, bool) {
	if began, _ := Began(x); began || x.FeatureLevel() < state.IdentityLevel {
		return state.Command{}, false
	}
	from, what := at.Add(Grace), "who has no record until "+at.Add(Grace).UTC().Format(time.RFC3339)+" is written down at its next call"
	if len(founders) > 0 {
		from, what = at, "who has none does not count"
	}
	command := state.Command{
		Kind: "begin records of identities",
		Meta: map[string]string{state.MetaRecordsFrom: from.UTC().Format(time.RFC3339)},
		Events: []model.Event{{
			At: at, Kind: "identity.records", Subject: "cluster", Message: "identities are on record from now on: " + what,
		}},
	}
	found(x, &command, founders, at)
	// Operators who were let in a moment ago have no other record.
	for _, token := range x.Tokens() {
		if token.Purpose != model.PurposeOperator {
			continue
		}
		for _, id := range token.UsedIDs() {
			if _, known := x.Identity(id); known {
				continue
			}
			identity := New(pki.Bearer{Identity: pki.Identity{
				Role: pki.RoleOperator, ID: id, Name: id, // its certificate has its name
			}}, at)
			identity.Keys = nil
			Put(&command, identity)
		}
	}
	return command, true
}

// Found is the change that writes down founders who were made after records began. False: there are none.
func Found(x *state.Snapshot, founders []pki.Bearer, at time.Time) (state.Command, bool) {
	command := state.Command{Kind: "record founders"}
	found(x, &command, founders, at)
	return command, len(command.Identities) > 0
}

// found adds the founders that are not on record. The operator among them is root of the first coordinator: it has all permissions, so that
// there is somebody who can give them.
func found(x *state.Snapshot, command *state.Command, founders []pki.Bearer, at time.Time) {
	for _, who := range founders {
		if _, known := x.Identity(who.ID); known {
			continue
		}
		identity := New(who, at)
		if identity.Kind == model.IdentityOperator {
			identity.Permit = model.PermitAll
		}
		Put(command, identity)
	}
}

// New is the record of somebody who has just got a certificate.
func New(who pki.Bearer, at time.Time) model.Identity {
	return model.Identity{
		ID: who.ID, Kind: kinds[who.Role], Name: who.Name, Role: string(who.Role), CreatedAt: at, Keys: []model.PublicKey{key(who, at)},
	}
}

func key(who pki.Bearer, at time.Time) model.PublicKey {
	return model.PublicKey{Hash: who.Key, ValidUntil: who.Until, AddedAt: at, Authority: who.Authority}
}

// Put adds a record to a change, which expects that it is as it was read.
func Put(command *state.Command, identity model.Identity) {
	command.Expect = append(command.Expect, state.Expectation{Table: state.Identities, ID: identity.ID, Revision: identity.Revision})
	command.Identities = append(command.Identities, identity)
}

// Renewed is the change that writes down a later certificate for a key that is on record, or one by another authority. It brings no event:
// certificates are renewed all the time. False: that is on record already, or it is not the bearer's to renew.
func Renewed(x *state.Snapshot, who pki.Bearer, at time.Time) (state.Command, bool) {
	identity, known := x.IdentityByKey(who.Key)
	if !known || Judge(x, who, at) != Recorded {
		return state.Command{}, false
	}
	i := slices.IndexFunc(identity.Keys, func(k model.PublicKey) bool { return k.Hash == who.Key })
	key := identity.Keys[i]
	if who.Until.After(key.ValidUntil) {
		key.ValidUntil = who.Until
	}
	// A certificate that ends before the last one is an older one, of a copy of the files perhaps.
	if who.Authority != "" && !who.Until.Before(key.ValidUntil) {
		key.Authority = who.Authority
	}
	if key == identity.Keys[i] {
		return state.Command{}, false
	}
	identity.Keys[i] = key
	command := state.Command{Kind: "renew identity"}
	Put(&command, identity)
	return command, true
}

// Record is the change that writes somebody down who counts and has no record with a key yet. False: there is nothing to write.
func Record(x *state.Snapshot, who pki.Bearer, at time.Time) (state.Command, bool) {
	if began, _ := Began(x); !began || len(who.Key) == 0 || Judge(x, who, at) != Unrecorded {
		return state.Command{}, false
	}
	identity, known := x.Identity(who.ID)
	if known {
		identity.Keys = append(identity.Keys, key(who, at))
		if identity.Name == identity.ID {
			identity.Name, known = who.Name, false
		}
	} else {
		identity = New(who, at)
	}
	if other, taken := x.IdentityByName(identity.Kind, identity.Name); taken && !known && other.ID != identity.ID {
		identity.Name = model.OtherName(identity.Name, who.ID, func(name string) bool { // two had one name
			_, taken := x.IdentityByName(identity.Kind, name)
			return taken
		})
	}
	command := state.Command{
		Kind: "record identity",
		Events: []model.Event{{
			At: at, Kind: "identity.recorded", Subject: Subject(&identity),
			Message: fmt.Sprintf("its key %s was seen first, and no other counts from now on", Short(who.Key)),
		}},
	}
	Put(&command, identity)
	return command, true
}

// Short is the beginning of a key's hash, as people compare it.
func Short(hash string) string { return hash[:min(len(hash), 12)] }

// Subject is what events about an identity are about.
func Subject(identity *model.Identity) string { return string(identity.Kind) + "/" + identity.Name }

// removed is why an identity is revoked whose coordinator or node was removed.
const removed = "removed"

// Remove adds to a change that a node or coordinator does not count any more. It leaves a record also of one that had none, so that no
// backup brings it back.
func Remove(x *state.Snapshot, command *state.Command, who pki.Identity, at time.Time, by string) {
	if began, _ := Began(x); !began {
		return
	}
	identity, known := x.Identity(who.ID)
	if !known {
		identity = New(pki.Bearer{Identity: who}, at)
		identity.Keys = nil
	}
	if identity.Live() {
		Put(command, identity.Revoke(at, by, removed))
	}
}

// Sign gives events the ID of the identity that their caller is, so that the history names the record: a name may be another one's
// later.
func Sign(x *state.Snapshot, events []model.Event) {
	for i := range events {
		role, name, named := strings.Cut(events[i].Caller, "/")
		if kind, is := kinds[pki.Role(role)]; named && is && events[i].CallerID == "" {
			identity, _ := x.IdentityByName(kind, name)
			events[i].CallerID = identity.ID
		}
	}
}

// CoordinatorKeys are the hashes of the keys of coordinators, by their IDs.
func CoordinatorKeys(x *state.Snapshot, members []string) []string {
	var keys []string
	for _, identity := range x.Identities() {
		if identity.Kind != model.IdentityCoordinator || !identity.Live() || !slices.Contains(members, identity.ID) {
			continue
		}
		for _, key := range identity.Keys {
			keys = append(keys, key.Hash)
		}
	}
	return keys
}
