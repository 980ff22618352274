package authorities

import (
	"encoding/json"
	"slices"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// Hypervisors are the authorities of the nodes' libvirt and QEMU, by what they are called. The zero value: there are the first ones alone,
// which every member has in its files.
type Hypervisors map[string]List

// OfHypervisors are those in a state.
func OfHypervisors(x *state.Snapshot) Hypervisors {
	all := Hypervisors{}
	_ = json.Unmarshal([]byte(x.Meta(state.MetaHypervisors)), &all) // as in Of
	return all
}

// For is the list of a purpose.
func (h Hypervisors) For(purpose pki.Purpose) *List {
	list := h[Called(purpose)]
	return &list
}

// PurposeOf is the purpose of the authority of a name. False: it is the cluster's, or there is none of that name.
func PurposeOf(name string) (pki.Purpose, bool) {
	i := slices.IndexFunc(pki.Purposes, func(purpose pki.Purpose) bool { return Called(purpose) == name })
	if i < 0 {
		return "", false
	}
	return pki.Purposes[i], true
}

// book is the list of the authorities of one name, in a moment of the state.
type book struct {
	x    *state.Snapshot
	name string
	list List
}

func open(x *state.Snapshot, name string) *book {
	if name == Cluster {
		return &book{x: x, name: name, list: Of(x)}
	}
	return &book{x: x, name: name, list: OfHypervisors(x)[name]}
}

// put is the change that stores the list in place of the one that the state has.
func (b *book) put(kind string) (state.Command, error) {
	var stored any = &b.list
	key := state.MetaAuthorities
	if b.name != Cluster {
		all := OfHypervisors(b.x)
		all[b.name] = b.list
		stored, key = all, state.MetaHypervisors
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return state.Command{}, err
	}
	return state.Command{
		Kind: kind, Level: state.IdentityLevel, Meta: map[string]string{key: string(text)},
		Expect: []state.Expectation{{Table: state.Meta, ID: key, Revision: b.x.MetaRevision(key)}},
	}, nil
}

func (b *book) event(at time.Time, kind string, one *Authority, message string) model.Event {
	if b.name != Cluster {
		message = "the authority " + b.name + " " + message
	}
	return model.Event{At: at, Kind: kind, Subject: one.subject(), Message: message}
}

// hosts are those who follow when an authority of libvirt or QEMU is replaced: nodes trust it and use its certificates, and coordinators
// have its key, because whichever leads signs.
func hosts(x *state.Snapshot) []model.Identity {
	var all []model.Identity
	add := func(id, name string, kind model.IdentityKind) {
		identity, known := x.Identity(id)
		if !known {
			identity = model.Identity{ID: id, Name: name, Kind: kind}
		}
		if identity.Live() {
			all = append(all, identity)
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

// behind tells that a node or coordinator has not said that it follows.
func behind(identity *model.Identity, name string, newest *Authority) bool {
	use := useOf(identity, name)
	if newest.State == Issuing && identity.Kind == model.IdentityNode {
		return use.By != newest.ID
	}
	return use.Trusts != newest.ID
}

func useOf(identity *model.Identity, name string) *model.AuthorityUse {
	if name == Libvirt {
		return &identity.Libvirt
	}
	return &identity.QEMU
}

// Use is what somebody says of the authorities of one name.
type Use struct {
	Trusts []string // IDs of those that its files trust; of a coordinator: whose keys it holds
	By     string   // ID of the one that has signed the certificate in use
}

// Follow is the change that writes down how far a node or coordinator follows the replacement of an authority of libvirt or QEMU. Nothing
// is written twice, and nothing while none is replaced, so that nobody fills the log by what he says. False: there is nothing to write.
func Follow(x *state.Snapshot, who pki.Bearer, says map[string]Use, at time.Time) (state.Command, bool) {
	identity, known := x.IdentityByKey(who.Key)
	if !known || identities.Judge(x, who, at) != identities.Recorded {
		return state.Command{}, false
	}
	var changed bool
	lists := OfHypervisors(x)
	for _, purpose := range pki.Purposes {
		newest := lists.For(purpose).newest()
		if newest == nil {
			continue
		}
		said, use := says[Called(purpose)], useOf(&identity, Called(purpose))
		if use.Trusts != newest.ID && slices.Contains(said.Trusts, newest.ID) {
			use.Trusts, changed = newest.ID, true
		}
		if newest.State == Issuing && use.By != newest.ID && said.By == newest.ID {
			use.By, changed = newest.ID, true
		}
	}
	command := state.Command{Kind: "follow authority of hypervisors"}
	identities.Put(&command, identity)
	return command, changed
}

// Holding is what a coordinator says that has the keys of these authorities.
func Holding(ids []string) map[string]Use {
	return map[string]Use{Libvirt: {Trusts: ids}, QEMU: {Trusts: ids}}
}
