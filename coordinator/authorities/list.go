package authorities

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"berth/coordinator/state"
	"berth/shared/pki"
)

// State is what an authority is to the cluster.
type State string

// The states, in the order of an authority's life.
const (
	Announced State = "announced" // it is to be trusted, and signs nothing yet
	Issuing   State = "issuing"   // it signs
	Outgoing  State = "outgoing"  // it is trusted, and signs no more
	Retired   State = "retired"   // it is trusted no more, or never was
)

// MostRetired is how many retired authorities are remembered.
const MostRetired = 8

// Authority is one of those that the cluster trusts, is to trust or has trusted. Its key is not here: only coordinators have that.
type Authority struct {
	ID          string    `json:"id"`          // of its key, as pki tells it
	Certificate string    `json:"certificate"` // PEM
	State       State     `json:"state"`
	Since       time.Time `json:"since"` // it has this state
	By          string    `json:"by,omitempty"`
	Imported    bool      `json:"imported,omitempty"` // it comes from outside
	// Endorsement is its key signed by the authority before it, PEM, for who has pinned that one.
	Endorsement string `json:"endorsement,omitempty"`
}

// List is the authorities of a cluster, the newest last. The zero value: there is the first alone, which every member has in its files.
type List struct {
	All []Authority `json:"authorities"`
	// Passed are the IDs of identities that are not waited for any more, because somebody has said so.
	Passed []string `json:"passed,omitempty"`
	// Told are the ends of authorities of which there was an event: ID and days before.
	Told []string `json:"told,omitempty"`
}

// The causes for which a rotation is refused.
var (
	ErrUnderWay = errors.New("another authority is being put in place already")
	ErrNothing  = errors.New("no authority is being replaced")
	ErrTooLate  = errors.New("the new authority signs already")
	ErrNotYet   = errors.New("not all who speak to the cluster are on record yet")
	ErrSame     = errors.New("the cluster has this authority, or had it")
)

// Of is the list in a state.
func Of(x *state.Snapshot) List {
	var list List
	// What this release cannot read is of a later one, which has raised the feature level: this member would not have started.
	_ = json.Unmarshal([]byte(x.Meta(state.MetaAuthorities)), &list)
	return list
}

// In is the authority in a state; nil: there is none. There is at most one announced, one issuing and one outgoing.
func (l *List) In(is State) *Authority {
	for i := range l.All {
		if l.All[i].State == is {
			return &l.All[i]
		}
	}
	return nil
}

// Named is the authority with an ID; nil: it is not in the list.
func (l *List) Named(id string) *Authority {
	for i := range l.All {
		if l.All[i].ID == id {
			return &l.All[i]
		}
	}
	return nil
}

// UnderWay tells that one authority is on its way to follow another.
func (l *List) UnderWay() bool { return l.In(Announced) != nil || l.In(Outgoing) != nil }

// newest is the one that everybody is to trust, or has to renew by; nil: nothing is under way.
func (l *List) newest() *Authority {
	if announced := l.In(Announced); announced != nil {
		return announced
	}
	if l.In(Outgoing) != nil {
		return l.In(Issuing)
	}
	return nil
}

// Trusted are the certificates of all that are trusted, PEM, in the order in which files have them: the one that signs is the first. After
// them come endorsements, for who has pinned an earlier one. Empty: the list is empty.
func (l *List) Trusted() []byte {
	var text, endorsed strings.Builder
	for _, is := range []State{Issuing, Outgoing, Announced} {
		if one := l.In(is); one != nil {
			text.WriteString(one.Certificate)
			endorsed.WriteString(one.Endorsement)
		}
	}
	if !l.UnderWay() { // nobody is trusted by whom an endorsement could be
		return []byte(text.String())
	}
	return []byte(text.String() + endorsed.String())
}

// IDs are those of the trusted authorities in the order of Trusted.
func (l *List) IDs() []string {
	var ids []string
	for _, is := range []State{Issuing, Outgoing, Announced} {
		if one := l.In(is); one != nil {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

// OlderThan tells that a list is older than the files of a member, by which one authority signs and these are trusted: the member's state
// is not up to date yet, or was restored, and then the leader makes the list what the files say.
func (l *List) OlderThan(issuing string, trusted []string) bool {
	if len(l.All) == 0 {
		return false
	}
	own := l.Named(issuing)
	if own == nil || own.State == Announced || l.In(Issuing) == nil {
		return true
	}
	outgoing := l.In(Outgoing)
	return own.State == Issuing && outgoing != nil && !slices.Contains(trusted, outgoing.ID)
}

// Lacking are the IDs of those that sign, or are to, and whose keys a member does not have.
func (l *List) Lacking(has func(id string) bool) []string {
	var ids []string
	for _, is := range []State{Announced, Issuing} {
		if one := l.In(is); one != nil && !has(one.ID) {
			ids = append(ids, one.ID)
		}
	}
	return ids
}

// become puts one into a state.
func (l *List) become(one *Authority, is State, at time.Time) {
	one.State, one.Since = is, at
	if is == Retired {
		one.Endorsement = ""
	}
	retired := 0
	for _, other := range l.All {
		if other.State == Retired {
			retired++
		}
	}
	l.All = slices.DeleteFunc(l.All, func(a Authority) bool {
		if a.State == Retired && retired > MostRetired {
			retired--
			return true
		}
		return false
	})
}

// Own is what a member's files say of the authority that signs, for a cluster whose list is empty.
func Own(authority *pki.Authority) Authority {
	return Authority{
		ID: authority.ID(), Certificate: string(authority.CertificatePEM()), State: Issuing, Since: authority.Begins(),
	}
}

// OrOwn is the list, or the one that an empty list stands for.
func (l List) OrOwn(own Authority) List {
	if len(l.All) == 0 {
		l.All = []Authority{own}
	}
	return l
}

// OwnHypervisor is Own for an authority of libvirt or QEMU.
func OwnHypervisor(authority *pki.HypervisorAuthority) Authority {
	return Authority{
		ID: authority.ID(), Certificate: string(authority.CertificatePEM()), State: Issuing, Since: authority.Begins(),
	}
}

// Short is the beginning of an ID, as people compare it.
func Short(id string) string { return id[:min(len(id), 12)] }

func (a *Authority) subject() string { return "authority/" + Short(a.ID) }
