// Package returning tells who counts after a backup was restored, and what each may do. It is pure.
package returning

import (
	"maps"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/shared/domxml/guard"
	"berth/shared/pki"
)

// Identities are those of a backup, brought up to what is known: their present keys, and who was revoked since. One that nothing is known
// of may have been revoked since, and waits to be confirmed: reason says why. Certain tells that what is known is newer than the backup.
// If it may be older, an operator keeps the permissions that both give it: the others may have been taken in between.
func Identities(backup, known []model.Identity, certain bool, reason string) []model.Identity {
	now := make(map[string]model.Identity)
	for _, identity := range known {
		now[identity.ID] = identity
	}
	for _, identity := range backup {
		is, isKnown := now[identity.ID]
		switch {
		case !isKnown && identity.Live():
			identity.Unconfirmed = reason
			identity.Name = free(now, &identity)
			now[identity.ID] = identity
		case !isKnown || !identity.Live():
			now[identity.ID] = identity
		default:
			for _, key := range identity.Keys { // those of a tombstone are not all known
				if !is.Live() && !is.Has(key.Hash) {
					is.Keys = append(is.Keys, key)
				}
			}
			if !certain {
				is.Permit = common(is.Permit, identity.Permit)
			}
			now[identity.ID] = is
		}
	}
	all := make([]model.Identity, 0, len(now))
	for _, id := range slices.Sorted(maps.Keys(now)) {
		all = append(all, now[id])
	}
	return all
}

// free is the name of an identity, or another one if a live one has that: live ones of a kind have different names.
func free(all map[string]model.Identity, of *model.Identity) string {
	taken := func(name string) bool {
		for _, one := range all {
			if one.Live() && one.ID != of.ID && one.Kind == of.Kind && one.Name == name {
				return true
			}
		}
		return false
	}
	if !taken(of.Name) {
		return of.Name
	}
	return model.OtherName(of.Name, of.ID, taken)
}

// Unrecorded are records for nodes that have none, because their state is of a release without records. The first key that each shows is
// written down there, and it waits to be confirmed: it may have been removed since.
func Unrecorded(nodes []model.Node, identities []model.Identity, at time.Time, reason string) (made []model.Identity) {
	all := make(map[string]model.Identity)
	for _, identity := range identities {
		all[identity.ID] = identity
	}
	for i := range nodes {
		if _, known := all[nodes[i].ID]; known {
			continue
		}
		one := model.Identity{
			ID: nodes[i].ID, Kind: model.IdentityNode, Name: nodes[i].Name, Role: string(pki.RoleAgent), CreatedAt: at, Unconfirmed: reason,
		}
		one.Name = free(all, &one)
		all[one.ID] = one
		made = append(made, one)
	}
	return made
}

// common is what two records of one operator both let it do. One that does not say lets it do everything.
func common(a, b string) string {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return guard.Common(a, b)
}

// Coordinators are those of all identities that change because of who the members are. One that only the backup knows and that is no member
// is revoked: its certificate would let it speak as a coordinator. If one member goes on alone, all others are, and the member itself needs
// nobody's word.
func Coordinators(all []model.Identity, members []model.Member, alone bool, at time.Time, by string) (changed []model.Identity) {
	reason := "no coordinator when a backup was restored"
	if alone {
		reason = "one coordinator went on alone"
	}
	for _, identity := range all {
		stays := slices.ContainsFunc(members, func(m model.Member) bool { return m.ID == identity.ID })
		switch {
		case identity.Kind != model.IdentityCoordinator || !identity.Live():
		case !stays && (alone || identity.Unconfirmed != ""):
			changed = append(changed, identity.Revoke(at, by, reason))
		case stays && alone && identity.Unconfirmed != "":
			identity.Unconfirmed = ""
			changed = append(changed, identity)
		}
	}
	return changed
}
