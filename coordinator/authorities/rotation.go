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
	b := open(x, Cluster)
	if err := b.refuses(Own(present), next.ID(), at); err != nil {
		return state.Command{}, err
	}
	endorsement, err := present.Endorse(next, at)
	if err != nil {
		return state.Command{}, err
	}
	one := Own(next)
	one.By, one.Imported, one.Endorsement = by, imported, string(endorsement)
	return b.announce(one, at)
}

// AnnounceHypervisor is Announce for an authority of libvirt or QEMU.
func AnnounceHypervisor(
	x *state.Snapshot, purpose pki.Purpose, present, next *pki.HypervisorAuthority, by string, at time.Time,
) (state.Command, error) {
	b := open(x, Called(purpose))
	if err := b.refuses(OwnHypervisor(present), next.ID(), at); err != nil {
		return state.Command{}, err
	}
	one := OwnHypervisor(next)
	one.By = by
	return b.announce(one, at)
}

// refuses tells why the authority that signs now cannot be replaced now by one with this ID.
func (b *book) refuses(present Authority, next string, at time.Time) error {
	b.list = b.list.OrOwn(present)
	switch began, from := identities.Began(b.x); {
	case b.list.UnderWay():
		return fmt.Errorf("%w, %s", ErrUnderWay, Short(b.list.newest().ID))
	case !began:
		return fmt.Errorf("%w: records of identities have not begun", ErrNotYet)
	case at.Before(from):
		return fmt.Errorf("%w: who has called since the upgrade is written down until %s", ErrNotYet, from.UTC().Format(time.RFC3339))
	case b.list.Named(next) != nil:
		return fmt.Errorf("%w: %s is %s", ErrSame, Short(next), b.list.Named(next).State)
	}
	return nil
}

func (b *book) announce(one Authority, at time.Time) (state.Command, error) {
	one.State, one.Since = Announced, at
	b.list.All, b.list.Passed = append(b.list.All, one), nil
	command, err := b.put("announce authority")
	command.Events = []model.Event{b.event(at, "authority.announced", &one, "is to be trusted by all, and signs once they have said so")}
	return command, err
}

// Cancel is the change that takes the announced authority of a name back. The error is ErrNothing or ErrTooLate.
func Cancel(x *state.Snapshot, name string, at time.Time) (state.Command, error) {
	b := open(x, name)
	announced := b.list.In(Announced)
	switch {
	case announced == nil && b.list.UnderWay():
		return state.Command{}, ErrTooLate
	case announced == nil:
		return state.Command{}, ErrNothing
	}
	events := []model.Event{b.event(at, "authority.cancelled", announced, "was taken back, and has signed nothing")}
	b.list.become(announced, Retired, at)
	b.list.Passed = nil
	command, err := b.put("cancel authority")
	command.Events = events
	return command, err
}

// Pass is the change that goes on without those who are waited for now. The error is ErrNothing.
func Pass(x *state.Snapshot, name string, at time.Time) (state.Command, []string, error) {
	b := open(x, name)
	newest := b.list.newest()
	if newest == nil {
		return state.Command{}, nil, ErrNothing
	}
	waits := b.waiting(at)
	var names []string
	for i := range waits {
		names = append(names, identities.Subject(&waits[i]))
		if !slices.Contains(b.list.Passed, waits[i].ID) {
			b.list.Passed = append(b.list.Passed, waits[i].ID)
		}
	}
	command, err := b.put("go on without some")
	message := "is not held up any more by " + units.Some(names, mostNamed, ", ")
	command.Events = []model.Event{b.event(at, "authority.forced", newest, message)}
	return command, names, err
}

// Advance is the change that is due in the rotation of any authority. False: nothing is due.
func Advance(x *state.Snapshot, at time.Time) (state.Command, bool) {
	for _, name := range Names {
		if command, due := open(x, name).advance(at); due {
			return command, true
		}
	}
	return state.Command{}, false
}

func (b *book) advance(at time.Time) (state.Command, bool) {
	list := &b.list
	waits := b.waitsFor(at)
	switch announced, outgoing := list.In(Announced), list.In(Outgoing); {
	case announced != nil && len(waits) == 0:
		message := "signs from now on: all trust it, as far as they are waited for"
		events := []model.Event{b.event(at, "authority.issuing", announced, message)}
		if before := list.In(Issuing); before != nil {
			list.become(before, Outgoing, at)
		}
		list.become(announced, Issuing, at)
		list.Passed = nil // who was left behind then may be there now
		command, err := b.put("have the new authority sign")
		command.Events = events
		return command, err == nil
	case announced == nil && outgoing != nil && len(waits) == 0 && !b.pinned(at):
		message := "is trusted no more: nobody depends on it, as far as they are waited for"
		events := []model.Event{b.event(at, "authority.retired", outgoing, message)}
		list.become(outgoing, Retired, at)
		list.Passed = nil
		command, err := b.put("retire authority")
		command.Events = events
		return command, err == nil
	}
	return state.Command{}, false
}

// waitsFor are those that hold a rotation up: they have not said that they trust the announced authority, or they depend on the outgoing
// one. Nobody waits for an operator or a node whose last certificate has ended, because they need a token anyway.
func (b *book) waitsFor(at time.Time) []model.Identity {
	return slices.DeleteFunc(b.waiting(at), func(i model.Identity) bool { return slices.Contains(b.list.Passed, i.ID) })
}

// waiting is waitsFor with those that somebody has passed over.
func (b *book) waiting(at time.Time) []model.Identity {
	newest := b.list.newest()
	if newest == nil {
		return nil
	}
	var all []model.Identity
	for _, identity := range b.concerned(at) {
		if b.holdsUp(&identity, newest, at) {
			all = append(all, identity)
		}
	}
	slices.SortFunc(all, func(a, b model.Identity) int { return strings.Compare(identities.Subject(&a), identities.Subject(&b)) })
	return all
}

// holdsUp tells that the rotation does not go on before somebody has followed.
func (b *book) holdsUp(identity *model.Identity, newest *Authority, at time.Time) bool {
	switch {
	case b.name != Cluster:
		return behind(identity, b.name, newest)
	case newest.State == Announced:
		return identity.Trusts != newest.ID
	}
	return depends(identity, newest.ID, at)
}

func (b *book) concerned(at time.Time) []model.Identity {
	if b.name != Cluster {
		return hosts(b.x)
	}
	return concerned(b.x, at)
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

// pinned tells that a token may be in somebody's hands that was made when the outgoing authority was pinned. Tokens pin the cluster's only.
func (b *book) pinned(at time.Time) bool {
	if b.name != Cluster {
		return false
	}
	until := b.list.In(Issuing).Since.Add(tokenLife)
	return slices.ContainsFunc(b.x.Tokens(), func(t model.Token) bool {
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
