package state

import (
	"berth/coordinator/model"
	"berth/coordinator/session"
	"berth/coordinator/state/naming"
)

// Access is who may come in at one moment: tokens, identities, and sessions of the console.
type Access struct{ tables }

// Tokens are all enrolment tokens, by hash.
func (a Access) Tokens() []model.Token {
	return list(a.tables, string(Tokens), byID, "", cloneToken)
}

// Token is the enrolment token whose secret has this hash.
func (a Access) Token(hash string) (model.Token, bool) {
	return one(a.tables, string(Tokens), byID, hash, cloneToken)
}

// Identities are all identities, revoked ones included, by kind and name.
func (a Access) Identities() []model.Identity {
	return list(a.tables, string(Identities), byName, "", cloneIdentity)
}

// Identity is the identity with this ID.
func (a Access) Identity(id string) (model.Identity, bool) {
	return one(a.tables, string(Identities), byID, id, cloneIdentity)
}

// IdentityByName is the live identity of a kind with this name.
func (a Access) IdentityByName(kind model.IdentityKind, name string) (model.Identity, bool) {
	for row := range each[model.Identity](a.tables, string(Identities), byName, text(naming.OfIdentity(kind, name))) {
		if row.Live() {
			return cloneIdentity(row), true
		}
	}
	return model.Identity{}, false
}

// IdentityByKey is the identity whose key has this hash.
func (a Access) IdentityByKey(hash string) (model.Identity, bool) {
	return one(a.tables, string(Identities), byKey, hash, cloneIdentity)
}

// Sessions are all sessions of the console and the links to them, by ID. Some may have ended.
func (a Access) Sessions() []session.Session {
	return list(a.tables, string(Sessions), byID, "", copied[session.Session])
}

// Session is the session with this ID.
func (a Access) Session(id string) (session.Session, bool) {
	return one(a.tables, string(Sessions), byID, id, copied[session.Session])
}

// SameIdentities tells that no identity has changed between two moments of one store. It costs nothing.
func (a Access) SameIdentities(other Access) bool {
	return a.tables[string(Identities)] == other.tables[string(Identities)]
}
