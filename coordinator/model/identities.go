package model

import (
	"slices"
	"time"
)

// IdentityKind says what has an identity.
type IdentityKind string

// What has an identity.
const (
	IdentityCoordinator IdentityKind = "coordinator"
	IdentityNode        IdentityKind = "node"
	IdentityOperator    IdentityKind = "operator"
)

// Identity is the replicated record of somebody who may speak to the cluster. A certificate counts only if the record of a live
// identity has its key: who can sign certificates makes nobody.
type Identity struct {
	ID   string       `json:"id"` // of the node or coordinator that it is of, if it is; certificates name it
	Kind IdentityKind `json:"kind"`
	Name string       `json:"name"`
	Role string       `json:"role"`           // that its certificates have to name: peer, agent or operator
	Keys []PublicKey  `json:"keys,omitempty"` // several while a certificate is renewed; none: not seen since records began

	CreatedAt time.Time  `json:"created_at"`
	Revoked   Revocation `json:"revoked,omitzero"`
	// Unconfirmed is why nobody knows that it was not revoked since: it came back with a backup. Empty: it is known.
	Unconfirmed string `json:"unconfirmed,omitempty"`
	// Trusts is the newest authority that it has said to trust, while one follows another. Empty: it has said that of none.
	Trusts   string `json:"trusts,omitempty"`
	Revision uint64 `json:"revision"`
	// Libvirt and QEMU are how far a node or coordinator follows while an authority of libvirt, or of QEMU, is replaced.
	Libvirt AuthorityUse `json:"libvirt,omitzero"`
	QEMU    AuthorityUse `json:"qemu,omitzero"`
	Permit  string       `json:"permit,omitempty"` // an operator's permissions, as SettingPermit; empty: nobody has said which
}

// AuthorityUse is what a node or coordinator has said of the authorities of libvirt, or of QEMU, by their IDs.
type AuthorityUse struct {
	Trusts string `json:"trusts,omitempty"` // the newest that a node trusts, or whose key a coordinator has
	By     string `json:"by,omitempty"`     // which has signed the certificate that a node uses
}

// PublicKey is a key of an identity.
type PublicKey struct {
	Hash       string    `json:"hash"` // hex SHA-256 of its form in a certificate
	ValidUntil time.Time `json:"valid_until"`
	AddedAt    time.Time `json:"added_at"`
	// Authority is which authority signed the certificate for it that was seen last. Empty: not known.
	Authority string `json:"authority,omitempty"`
}

// Revocation is when, by whom and why an identity was revoked. It is never taken back.
type Revocation struct {
	At     time.Time `json:"at,omitzero"`
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
}

// Live tells that the identity was not revoked.
func (i *Identity) Live() bool { return i.Revoked.At.IsZero() }

// Has tells whether one of the identity's keys has this hash.
func (i *Identity) Has(hash string) bool {
	return slices.ContainsFunc(i.Keys, func(k PublicKey) bool { return k.Hash == hash })
}

// ValidUntil is when the last certificate of the identity ends; zero: none is known.
func (i *Identity) ValidUntil() time.Time {
	var last time.Time
	for _, key := range i.Keys {
		if key.ValidUntil.After(last) {
			last = key.ValidUntil
		}
	}
	return last
}

// Revoke is the identity without any right from now on.
func (i Identity) Revoke(at time.Time, by, reason string) Identity {
	if i.Live() {
		i.Revoked = Revocation{At: at, By: by, Reason: reason}
	}
	i.Unconfirmed = ""
	return i
}
