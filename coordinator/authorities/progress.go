package authorities

import (
	"maps"
	"slices"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// Progress is how far the replacement of an authority is. The zero value: none is under way.
type Progress struct {
	Name    string // of the authority: cluster, libvirt or qemu
	New     string // ID of the authority that is to follow, or follows
	State   State  // of that one
	Waits   []Wait
	Passed  []string // who is not waited for, because somebody has said so
	Tokens  bool     // made while the authority before was pinned, and still good
	Waiting string   // for what, in words; empty: for nothing any more
}

// Wait is somebody who holds it up.
type Wait struct {
	Subject string // KIND/NAME
	Kind    model.IdentityKind
	Name    string
	Since   time.Time
	Until   time.Time // at most: the certificate ends then; zero: for as long as it takes
}

// ProgressOf tells how far the replacement of the authority of a name is.
func ProgressOf(x *state.Snapshot, name string, at time.Time) Progress {
	b := open(x, name)
	newest := b.list.newest()
	if newest == nil {
		return Progress{}
	}
	p := Progress{Name: name, New: newest.ID, State: newest.State}
	for _, identity := range b.waiting(at) {
		if slices.Contains(b.list.Passed, identity.ID) {
			p.Passed = append(p.Passed, identities.Subject(&identity))
			continue
		}
		p.Waits = append(p.Waits, b.waitFor(&identity, newest))
	}
	p.Tokens = newest.State == Issuing && b.pinned(at)
	switch {
	case len(p.Waits) > 0 && newest.State == Announced:
		p.Waiting = UntilTrusted(name)
	case len(p.Waits) > 0 && name == Cluster:
		p.Waiting = "until all have a certificate by it"
	case len(p.Waits) > 0:
		p.Waiting = "until all hosts use certificates by it"
	case p.Tokens:
		p.Waiting = "until the tokens have ended that were made before, an hour at most"
	}
	return p
}

// UntilTrusted is for what an announced authority of a name waits, in words.
func UntilTrusted(name string) string {
	if name == Cluster {
		return "until all have said that they trust it"
	}
	return "until all hosts trust it, and all coordinators have its key"
}

func (b *book) waitFor(identity *model.Identity, newest *Authority) Wait {
	wait := Wait{Subject: identities.Subject(identity), Kind: identity.Kind, Name: identity.Name, Since: newest.Since}
	if identity.CreatedAt.After(wait.Since) {
		wait.Since = identity.CreatedAt
	}
	if b.name == Cluster && identity.Kind != model.IdentityCoordinator {
		wait.Until = identity.ValidUntil()
	}
	return wait
}

// Names are those who are waited for, KIND/NAME.
func (p *Progress) Names() []string {
	var names []string
	for i := range p.Waits {
		names = append(names, p.Waits[i].Subject)
	}
	return names
}

// WouldWait are those whom a replacement that began now would wait for.
func WouldWait(x *state.Snapshot, name string, at time.Time) []string {
	var names []string
	for _, identity := range open(x, name).concerned(at) {
		names = append(names, identities.Subject(&identity))
	}
	slices.Sort(names)
	return names
}

// Dependants counts, by authority, the identities that have a certificate in use by it. Unknown is under the empty ID.
func Dependants(x *state.Snapshot, at time.Time) map[string]int {
	counts := map[string]int{}
	for _, identity := range concerned(x, at) {
		var by []string
		for _, key := range identity.Keys {
			if !slices.Contains(by, key.Authority) {
				by = append(by, key.Authority)
			}
		}
		if len(by) == 0 {
			by = []string{""}
		}
		for _, id := range by {
			counts[id]++
		}
	}
	return counts
}

// Adopt is the change that makes the list what a member's files say, for a state that is older than these: it was restored where the list
// of that day was not at hand. Trusted are the certificates in the files, PEM. False: the list and the files do not contradict each other.
func Adopt(x *state.Snapshot, issuing *pki.Authority, trusted []byte, at time.Time) (state.Command, bool) {
	return open(x, Cluster).adopt(Own(issuing), trusted, at)
}

// AdoptHypervisor is Adopt for the authority of libvirt or QEMU.
func AdoptHypervisor(
	x *state.Snapshot, purpose pki.Purpose, issuing *pki.HypervisorAuthority, trusted []byte, at time.Time,
) (state.Command, bool) {
	return open(x, Called(purpose)).adopt(OwnHypervisor(issuing), trusted, at)
}

func (b *book) adopt(issuing Authority, trusted []byte, at time.Time) (state.Command, bool) {
	list := &b.list
	files, err := pki.SplitAuthorities(trusted)
	if err != nil || b.x.FeatureLevel() < state.IdentityLevel || !contradict(list, issuing.ID, files) {
		return state.Command{}, false
	}
	for i := range list.All {
		one := &list.All[i]
		switch _, trusted := files[one.ID]; {
		case one.State == Retired || one.ID == issuing.ID:
		case trusted:
			list.become(one, Outgoing, at)
		default:
			list.become(one, Retired, at)
		}
	}
	// Who has a certificate by another one that is trusted here needs that until he is renewed. After that it goes as any other.
	var others []Authority
	for _, id := range slices.Sorted(maps.Keys(files)) {
		if id != issuing.ID && list.Named(id) == nil {
			others = append(others, Authority{ID: id, Certificate: string(files[id]), State: Outgoing, Since: at})
		}
	}
	list.All, list.Passed = slices.Concat(others, list.All), nil
	if list.Named(issuing.ID) == nil {
		list.All = append(list.All, issuing)
	}
	own := list.Named(issuing.ID)
	own.State, own.Since = Issuing, at
	command, err := b.put("adopt authority")
	command.Events = []model.Event{b.event(at, "authority.adopted", own,
		"signs here, and the restored state does not know that: what the files of the coordinators say counts")}
	return command, err == nil
}

// contradict tells that the authority that signs here does not by the list, that the list has one outgoing which is trusted no more by the
// files, or that files without a list trust another one beside it.
func contradict(list *List, issuing string, files map[string][]byte) bool {
	if len(list.All) == 0 {
		return len(files) > 1
	}
	if outgoing := list.In(Outgoing); outgoing != nil && files[outgoing.ID] == nil {
		return true // it was retired: files drop nothing before the list does
	}
	own := list.Named(issuing)
	return own == nil || own.State == Announced // nothing signs before the list says so
}
