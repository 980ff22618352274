package authorities

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
	"berth/shared/units"
)

// tokenLife is how long a token may be good that was made while the authority before was pinned.
const tokenLife = time.Hour

// mostNamed bounds the identities that one event or line names.
const mostNamed = 10

// Announce is the change that begins to replace present, which signs now, by next. The error is ErrUnderWay, ErrNotYet or ErrSame.
func Announce(x *state.Snapshot, present, next *pki.Authority, imported bool, by string, at time.Time) (state.Command, error) {
	list := Of(x).OrOwn(present)
	switch began, from := identities.Began(x); {
	case list.UnderWay():
		return state.Command{}, fmt.Errorf("%w, %s", ErrUnderWay, Short(list.newest().ID))
	case !began:
		return state.Command{}, fmt.Errorf("%w: records of identities have not begun", ErrNotYet)
	case at.Before(from):
		return state.Command{}, fmt.Errorf("%w: who has called since the upgrade is written down until %s", ErrNotYet,
			from.UTC().Format(time.RFC3339))
	case list.Named(next.ID()) != nil:
		return state.Command{}, fmt.Errorf("%w: %s is %s", ErrSame, Short(next.ID()), list.Named(next.ID()).State)
	}
	endorsement, err := present.Endorse(next, at)
	if err != nil {
		return state.Command{}, err
	}
	one := Authority{
		ID: next.ID(), Certificate: string(next.CertificatePEM()), State: Announced, Since: at, By: by, Imported: imported,
		Endorsement: string(endorsement),
	}
	list.All, list.Passed = append(list.All, one), nil
	command, err := list.put(x, "announce authority")
	command.Events = []model.Event{event(at, "authority.announced", &one, "is to be trusted by all, and signs once they have said so")}
	return command, err
}

func event(at time.Time, kind string, one *Authority, message string) model.Event {
	return model.Event{At: at, Kind: kind, Subject: one.subject(), Message: message}
}

// Cancel is the change that takes the announced authority back. The error is ErrNothing or ErrTooLate.
func Cancel(x *state.Snapshot, at time.Time) (state.Command, error) {
	list := Of(x)
	announced := list.In(Announced)
	switch {
	case announced == nil && list.UnderWay():
		return state.Command{}, ErrTooLate
	case announced == nil:
		return state.Command{}, ErrNothing
	}
	events := []model.Event{event(at, "authority.cancelled", announced, "was taken back, and has signed nothing")}
	list.become(announced, Retired, at)
	list.Passed = nil
	command, err := list.put(x, "cancel authority")
	command.Events = events
	return command, err
}

// Pass is the change that goes on without those who are waited for now. The error is ErrNothing.
func Pass(x *state.Snapshot, at time.Time) (state.Command, []string, error) {
	list := Of(x)
	newest := list.newest()
	if newest == nil {
		return state.Command{}, nil, ErrNothing
	}
	waits := waiting(x, &list, at)
	var names []string
	for i := range waits {
		names = append(names, identities.Subject(&waits[i]))
		if !slices.Contains(list.Passed, waits[i].ID) {
			list.Passed = append(list.Passed, waits[i].ID)
		}
	}
	command, err := list.put(x, "go on without some")
	message := "is not held up any more by " + units.Some(names, mostNamed, ", ")
	command.Events = []model.Event{event(at, "authority.forced", newest, message)}
	return command, names, err
}

// Advance is the change that is due in a rotation. False: nothing is due.
func Advance(x *state.Snapshot, at time.Time) (state.Command, bool) {
	list := Of(x)
	waits := waitsFor(x, &list, at)
	switch announced, outgoing := list.In(Announced), list.In(Outgoing); {
	case announced != nil && len(waits) == 0:
		message := "signs from now on: all trust it, as far as they are waited for"
		events := []model.Event{event(at, "authority.issuing", announced, message)}
		if before := list.In(Issuing); before != nil {
			list.become(before, Outgoing, at)
		}
		list.become(announced, Issuing, at)
		list.Passed = nil // who was left behind then may be there now
		command, err := list.put(x, "have the new authority sign")
		command.Events = events
		return command, err == nil
	case announced == nil && outgoing != nil && len(waits) == 0 && !pinned(x, &list, at):
		message := "is trusted no more: nobody depends on it, as far as they are waited for"
		events := []model.Event{event(at, "authority.retired", outgoing, message)}
		list.become(outgoing, Retired, at)
		list.Passed = nil
		command, err := list.put(x, "retire authority")
		command.Events = events
		return command, err == nil
	}
	return state.Command{}, false
}

// waitsFor are those that hold a rotation up: they have not said that they trust the announced authority, or they depend on the outgoing
// one. Nobody waits for an operator or a node whose last certificate has ended, because they need a token anyway.
func waitsFor(x *state.Snapshot, list *List, at time.Time) []model.Identity {
	return slices.DeleteFunc(waiting(x, list, at), func(i model.Identity) bool { return slices.Contains(list.Passed, i.ID) })
}

// waiting is waitsFor with those that somebody has passed over.
func waiting(x *state.Snapshot, list *List, at time.Time) []model.Identity {
	newest := list.newest()
	if newest == nil {
		return nil
	}
	var all []model.Identity
	for _, identity := range concerned(x, at) {
		if newest.State == Announced && identity.Trusts != newest.ID || newest.State == Issuing && depends(&identity, newest.ID, at) {
			all = append(all, identity)
		}
	}
	slices.SortFunc(all, func(a, b model.Identity) int { return strings.Compare(identities.Subject(&a), identities.Subject(&b)) })
	return all
}

// concerned are those who speak to the cluster by certificates, coordinators and nodes that have not been seen since records began as well.
func concerned(x *state.Snapshot, at time.Time) []model.Identity {
	var all []model.Identity
	for _, identity := range x.Identities() {
		until := identity.ValidUntil()
		switch {
		case !identity.Live():
		case identity.Kind == model.IdentityCoordinator: // it signs for itself when it comes back, with the authority that it has then
			all = append(all, identity)
		case !until.IsZero() && !at.After(until):
			all = append(all, identity)
		}
	}
	add := func(id, name string, kind model.IdentityKind) {
		if identity, known := x.Identity(id); !known || len(identity.Keys) == 0 && identity.Live() && kind == model.IdentityNode {
			all = append(all, model.Identity{ID: id, Name: name, Kind: kind})
		}
	}
	for _, member := range x.Members() {
		add(member.ID, member.Name, model.IdentityCoordinator)
	}
	for _, node := range x.Nodes() {
		add(node.ID, node.Name, model.IdentityNode)
	}
	return all
}

// depends tells that an identity has a certificate in use that another authority has signed, or nobody knows which one.
func depends(identity *model.Identity, issuing string, at time.Time) bool {
	if len(identity.Keys) == 0 {
		return true
	}
	return slices.ContainsFunc(identity.Keys, func(k model.PublicKey) bool {
		ended := !k.ValidUntil.IsZero() && at.After(k.ValidUntil) && identity.Kind != model.IdentityCoordinator
		return !ended && k.Authority != issuing
	})
}

// pinned tells that a token may be in somebody's hands that was made when the outgoing authority was pinned.
func pinned(x *state.Snapshot, list *List, at time.Time) bool {
	until := list.In(Issuing).Since.Add(tokenLife)
	return slices.ContainsFunc(x.Tokens(), func(t model.Token) bool {
		return t.Left() > 0 && at.Before(t.ExpiresAt) && !t.ExpiresAt.After(until)
	})
}

// Confirm is the change that writes down that somebody has said to trust the newest authority. False: that is on record, or it has not.
func Confirm(x *state.Snapshot, who pki.Bearer, trusts []string, at time.Time) (state.Command, bool) {
	list := Of(x)
	newest := list.newest()
	identity, known := x.IdentityByKey(who.Key)
	if newest == nil || !known || !slices.Contains(trusts, newest.ID) || identity.Trusts == newest.ID ||
		identities.Judge(x, who, at) != identities.Recorded {
		return state.Command{}, false
	}
	identity.Trusts = newest.ID
	command := state.Command{Kind: "trust authority"}
	identities.Put(&command, identity)
	return command, true
}

// Seen is the change that writes down with which certificate somebody is seen: a later one, or one by the authority that signs now. That
// one may end before the certificate of before: releases that renewed nothing gave them for years. False: it is on record already.
func Seen(x *state.Snapshot, who pki.Bearer, at time.Time) (state.Command, bool) {
	if command, due := identities.Renewed(x, who, at); due {
		return command, true
	}
	identity, known := x.IdentityByKey(who.Key)
	i := slices.IndexFunc(identity.Keys, func(k model.PublicKey) bool { return k.Hash == who.Key })
	if !known || who.Authority == "" || identity.Keys[i].Authority == who.Authority || identities.Judge(x, who, at) != identities.Recorded {
		return state.Command{}, false
	}
	list := Of(x)
	if issuing := list.In(Issuing); issuing == nil || issuing.ID != who.Authority {
		return state.Command{}, false
	}
	identity.Keys[i].Authority = who.Authority
	command := state.Command{Kind: "renew identity"}
	identities.Put(&command, identity)
	return command, true
}

// Lost tells that an identity has nothing but certificates by authorities that are retired: it needs a token to come back.
func Lost(x *state.Snapshot, identity *model.Identity) bool {
	list := Of(x)
	return len(identity.Keys) > 0 && !slices.ContainsFunc(identity.Keys, func(k model.PublicKey) bool {
		by := list.Named(k.Authority)
		return by == nil || by.State != Retired
	})
}
