package authorities

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// site is a state with a log of its own: coordinator m1, node n1 and operator o1 have certificates by the first authority.
type site struct {
	*testing.T
	store *state.Store
	index uint64
	first *pki.Authority
	next  *pki.Authority
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{T: t, store: state.NewStore()}
	for _, into := range []**pki.Authority{&s.first, &s.next} {
		made, err := pki.NewAuthority("c1", noon)
		if err != nil {
			t.Fatal(err)
		}
		*into = made
	}
	s.apply(state.Command{
		Expect:  []state.Expectation{{Table: state.Nodes, ID: "n1"}, {Table: state.Members, ID: "m1"}},
		Nodes:   []model.Node{{ID: "n1", Name: "n1", Cluster: model.DefaultCluster}},
		Members: []model.Member{{ID: "m1", Name: "m1"}},
	})
	s.apply(state.RaiseLevel(state.IdentityLevel))
	command, due := identities.Begin(s.store.Snapshot(), []pki.Bearer{s.bearer("m1"), s.bearer("o1"), s.bearer("n1")}, noon)
	if !due {
		t.Fatal("records do not begin")
	}
	s.apply(command)
	return s
}

func (s *site) bearer(id string) pki.Bearer {
	role := map[byte]pki.Role{'m': pki.RolePeer, 'n': pki.RoleAgent, 'o': pki.RoleOperator}[id[0]]
	return pki.Bearer{
		Identity: pki.Identity{Role: role, ID: id, Name: id, ClusterID: "c1"}, Key: "key-" + id,
		Until: noon.Add(pki.CertificateLife), Authority: s.first.ID(),
	}
}

func (s *site) apply(command state.Command) {
	s.Helper()
	s.index++
	command.Key, command.At = fmt.Sprint("k", s.index), noon
	data, err := command.Encode()
	if err != nil {
		s.Fatal(err)
	}
	if result := s.store.FSM().Apply(&raft.Log{Index: s.index, Data: data}).(state.Result); result.Refusal != nil {
		s.Fatal(result.Refusal)
	}
}

func (s *site) announce() {
	s.Helper()
	command, err := Announce(s.store.Snapshot(), s.first, s.next, false, "operator/o1", noon)
	if err != nil {
		s.Fatal(err)
	}
	s.apply(command)
}

func (s *site) trust(id string) {
	s.Helper()
	command, due := Confirm(s.store.Snapshot(), s.bearer(id), []string{s.first.ID(), s.next.ID()}, noon)
	if !due {
		s.Fatalf("that %s trusts the new one is not written down", id)
	}
	s.apply(command)
}

// renew has somebody seen with a certificate by the new authority.
func (s *site) renew(id string) {
	s.Helper()
	who := s.bearer(id)
	who.Authority, who.Until = s.next.ID(), who.Until.Add(time.Hour)
	command, due := identities.Renewed(s.store.Snapshot(), who, noon)
	if !due {
		s.Fatalf("%s is not renewed", id)
	}
	s.apply(command)
}

func (s *site) advance(at time.Time, want bool) {
	s.Helper()
	command, due := Advance(s.store.Snapshot(), at)
	if due != want {
		s.Fatalf("something is due: %v, want %v; %+v", due, want, ProgressOf(s.store.Snapshot(), at))
	}
	if due {
		s.apply(command)
	}
}

func (s *site) want(states ...State) {
	s.Helper()
	list := Of(s.store.Snapshot())
	var are []State
	for _, one := range list.All {
		are = append(are, one.State)
	}
	if !slices.Equal(are, states) {
		s.Fatalf("the authorities are %v, want %v", are, states)
	}
}

func (s *site) waits(want ...string) {
	s.Helper()
	if p := ProgressOf(s.store.Snapshot(), noon); !slices.Equal(p.Waits, want) || len(want) > 0 && p.Waiting == "" {
		s.Fatalf("it waits for %v (%s), want %v", p.Waits, p.Waiting, want)
	}
}

// Nobody is left without: the new one signs when all trust it, and the old one goes when nobody has a certificate by it.
func TestAnAuthorityFollowsAnother(t *testing.T) {
	s := newSite(t)
	s.announce()
	s.want(Issuing, Announced)
	s.waits("coordinator/m1", "node/n1", "operator/o1")
	for _, id := range []string{"m1", "n1", "o1"} {
		s.advance(noon, false)
		s.trust(id)
	}
	if _, again := Confirm(s.store.Snapshot(), s.bearer("n1"), []string{s.next.ID()}, noon); again {
		t.Error("what is on record is written down again")
	}
	s.advance(noon, true)
	s.want(Outgoing, Issuing)
	list := Of(s.store.Snapshot())
	if ids := list.IDs(); !slices.Equal(ids, []string{s.next.ID(), s.first.ID()}) {
		t.Errorf("in this order are trusted %v", ids)
	}
	if ids, err := pki.AuthorityIDs(list.Trusted()); err != nil || !slices.Equal(ids, list.IDs()) {
		t.Errorf("the files have %v, %v", ids, err)
	}
	for _, id := range []string{"m1", "n1", "o1"} {
		s.advance(noon, false)
		s.renew(id)
	}
	s.advance(noon, true)
	s.want(Retired, Issuing)
	s.advance(noon, false)
	list = Of(s.store.Snapshot())
	if ids, err := pki.AuthorityIDs(list.Trusted()); err != nil || !slices.Equal(ids, []string{s.next.ID()}) {
		t.Errorf("at the end the files have %v, %v", ids, err)
	}
}

// Who has a token from before may use it: it pins the authority of then.
func TestATokenOfBeforeIsWaitedFor(t *testing.T) {
	s := newSite(t)
	s.announce()
	for _, id := range []string{"m1", "n1", "o1"} {
		s.trust(id)
	}
	s.advance(noon, true)
	for _, id := range []string{"m1", "n1", "o1"} {
		s.renew(id)
	}
	s.apply(state.Command{
		Expect: []state.Expectation{{Table: state.Tokens, ID: "t1"}, {Table: state.Tokens, ID: "t2"}},
		Tokens: []model.Token{
			{Hash: "t1", Purpose: model.PurposeAgent, ExpiresAt: noon.Add(10 * time.Minute)},
			{Hash: "t2", Purpose: model.PurposeAgent, ExpiresAt: noon.Add(90 * time.Minute)}, // made later
		},
	})
	s.advance(noon, false)
	if p := ProgressOf(s.store.Snapshot(), noon); !p.Tokens || p.Waiting == "" {
		t.Errorf("it says %+v", p)
	}
	s.advance(noon.Add(11*time.Minute), true)
	s.want(Retired, Issuing)
}

// An operator who is on holiday, or a node that is off, holds it up until his certificate has ended. A coordinator is waited for longer: it
// signs for itself when it comes back.
func TestWhoseCertificateHasEndedIsNotWaitedFor(t *testing.T) {
	s := newSite(t)
	s.announce()
	s.trust("m1")
	s.waits("node/n1", "operator/o1")
	later := noon.Add(pki.CertificateLife + time.Minute)
	s.advance(later, true)
	if p := ProgressOf(s.store.Snapshot(), later); !slices.Equal(p.Waits, []string{"coordinator/m1"}) {
		t.Errorf("it waits for %v", p.Waits)
	}
}

func TestSomebodyMaySayThatItGoesOn(t *testing.T) {
	s := newSite(t)
	if _, _, err := Pass(s.store.Snapshot(), noon); !errors.Is(err, ErrNothing) {
		t.Errorf("without a rotation: %v", err)
	}
	s.announce()
	s.trust("m1")
	s.trust("o1")
	command, names, err := Pass(s.store.Snapshot(), noon)
	if err != nil || !slices.Equal(names, []string{"node/n1"}) {
		t.Fatalf("left behind are %v, %v", names, err)
	}
	s.apply(command)
	s.advance(noon, true)
	s.want(Outgoing, Issuing)
	s.renew("m1")
	s.renew("o1")
	s.advance(noon, false) // it may be there now
	node, _ := s.store.Snapshot().Identity("n1")
	if Lost(s.store.Snapshot(), &node) {
		t.Error("a node is given up whose authority is trusted")
	}
	command, _, err = Pass(s.store.Snapshot(), noon)
	if err != nil {
		t.Fatal(err)
	}
	s.apply(command)
	s.advance(noon, true)
	s.want(Retired, Issuing)
	if !Lost(s.store.Snapshot(), &node) {
		t.Error("a node that was left behind needs no token")
	}
}

func TestAnAnnouncementCanBeTakenBack(t *testing.T) {
	s := newSite(t)
	if _, err := Cancel(s.store.Snapshot(), noon); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing to take back: %v", err)
	}
	s.announce()
	if _, err := Announce(s.store.Snapshot(), s.first, s.next, false, "", noon); !errors.Is(err, ErrUnderWay) {
		t.Errorf("two at once: %v", err)
	}
	command, err := Cancel(s.store.Snapshot(), noon)
	if err != nil {
		t.Fatal(err)
	}
	s.apply(command)
	s.want(Issuing, Retired)
	if _, err := Announce(s.store.Snapshot(), s.first, s.next, false, "", noon); !errors.Is(err, ErrSame) {
		t.Errorf("the same again: %v", err)
	}
	if s.next, err = pki.NewAuthority("c1", noon); err != nil {
		t.Fatal(err)
	}
	s.announce()
	for _, id := range []string{"m1", "n1", "o1"} {
		s.trust(id)
	}
	s.advance(noon, true)
	if _, err := Cancel(s.store.Snapshot(), noon); !errors.Is(err, ErrTooLate) {
		t.Errorf("taken back when it signs: %v", err)
	}
}

// A state that was restored where nobody knew of the rotation goes by the files of its coordinators.
func TestFilesThatAreNewerThanTheStateCount(t *testing.T) {
	s := newSite(t)
	s.announce()
	if _, due := Adopt(s.store.Snapshot(), s.first, []string{s.first.ID()}, noon); due {
		t.Error("what the list knows is adopted")
	}
	third, err := pki.NewAuthority("c1", noon)
	if err != nil {
		t.Fatal(err)
	}
	command, due := Adopt(s.store.Snapshot(), third, []string{third.ID()}, noon)
	if !due {
		t.Fatal("an authority that signs here is not known")
	}
	s.apply(command)
	s.want(Retired, Retired, Issuing)
}

func TestNobodyStartsBeforeAllAreOnRecord(t *testing.T) {
	authority, err := pki.NewAuthority("c1", noon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Announce(state.NewStore().Snapshot(), authority, authority, false, "", noon); !errors.Is(err, ErrNotYet) {
		t.Errorf("without records: %v", err)
	}
}
