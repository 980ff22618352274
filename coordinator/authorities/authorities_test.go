package authorities

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/shared/pki"
)

var noon = statetest.Noon

// site is a state in which coordinator m1, node n1 and operator o1 have certificates by the first authority.
type site struct {
	*statetest.Site
	first *pki.Authority
	next  *pki.Authority
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{Site: statetest.New(t)}
	for _, into := range []**pki.Authority{&s.first, &s.next} {
		made, err := pki.NewAuthority("c1", noon)
		if err != nil {
			t.Fatal(err)
		}
		*into = made
	}
	s.Apply(state.RaiseLevel(state.IdentityLevel))
	command, due := identities.Begin(s.Snapshot(), []pki.Bearer{s.bearer("m1"), s.bearer("o1"), s.bearer("n1")}, noon)
	if !due {
		t.Fatal("records do not begin")
	}
	s.Apply(command)
	return s
}

func (s *site) bearer(id string) pki.Bearer {
	role := map[byte]pki.Role{'m': pki.RolePeer, 'n': pki.RoleAgent, 'o': pki.RoleOperator}[id[0]]
	return pki.Bearer{
		Identity: pki.Identity{Role: role, ID: id, Name: id, ClusterID: "c1"}, Key: "key-" + id,
		Until: noon.Add(pki.CertificateLife), Authority: s.first.ID(),
	}
}

func (s *site) announce() {
	s.Helper()
	command, err := Announce(s.Snapshot(), s.first, s.next, false, "operator/o1", noon)
	if err != nil {
		s.Fatal(err)
	}
	s.Apply(command)
}

func (s *site) trust(id string) {
	s.Helper()
	command, due := Confirm(s.Snapshot(), s.bearer(id), []string{s.first.ID(), s.next.ID()}, noon)
	if !due {
		s.Fatalf("that %s trusts the new one is not written down", id)
	}
	s.Apply(command)
}

// renew has somebody seen with a certificate by the new authority.
func (s *site) renew(id string) {
	s.Helper()
	who := s.bearer(id)
	who.Authority, who.Until = s.next.ID(), who.Until.Add(time.Hour)
	command, due := identities.Renewed(s.Snapshot(), who, noon)
	if !due {
		s.Fatalf("%s is not renewed", id)
	}
	s.Apply(command)
}

func (s *site) advance(at time.Time, want bool) {
	s.Helper()
	command, due := Advance(s.Snapshot(), at)
	if due != want {
		s.Fatalf("something is due: %v, want %v; %+v", due, want, ProgressOf(s.Snapshot(), Cluster, at))
	}
	if due {
		s.Apply(command)
	}
}

func (s *site) want(states ...State) {
	s.Helper()
	list := Of(s.Snapshot())
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
	if p := ProgressOf(s.Snapshot(), Cluster, noon); !slices.Equal(p.Names(), want) || len(want) > 0 && p.Waiting == "" {
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
	if _, again := Confirm(s.Snapshot(), s.bearer("n1"), []string{s.next.ID()}, noon); again {
		t.Error("what is on record is written down again")
	}
	s.advance(noon, true)
	s.want(Outgoing, Issuing)
	list := Of(s.Snapshot())
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
	list = Of(s.Snapshot())
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
	s.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Tokens, ID: "t1"}, {Table: state.Tokens, ID: "t2"}},
		Tokens: []model.Token{
			{Hash: "t1", Purpose: model.PurposeAgent, ExpiresAt: noon.Add(10 * time.Minute)},
			{Hash: "t2", Purpose: model.PurposeAgent, ExpiresAt: noon.Add(90 * time.Minute)}, // made later
		},
	})
	s.advance(noon, false)
	if p := ProgressOf(s.Snapshot(), Cluster, noon); !p.Tokens || p.Waiting == "" {
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
	s.waits("coordinator/m1", "node/n1", "operator/o1")
	for i, until := range []time.Time{{}, s.bearer("n1").Until, s.bearer("o1").Until} {
		if wait := ProgressOf(s.Snapshot(), Cluster, noon).Waits[i]; !wait.Until.Equal(until) || !wait.Since.Equal(noon) {
			t.Errorf("%s is waited for from %s until %s, want until %s", wait.Subject, wait.Since, wait.Until, until)
		}
	}
	s.trust("m1")
	s.waits("node/n1", "operator/o1")
	later := noon.Add(pki.CertificateLife + time.Minute)
	s.advance(later, true)
	if p := ProgressOf(s.Snapshot(), Cluster, later); !slices.Equal(p.Names(), []string{"coordinator/m1"}) {
		t.Errorf("it waits for %v", p.Waits)
	}
}

func TestSomebodyMaySayThatItGoesOn(t *testing.T) {
	s := newSite(t)
	if _, _, err := Pass(s.Snapshot(), Cluster, noon); !errors.Is(err, ErrNothing) {
		t.Errorf("without a rotation: %v", err)
	}
	s.announce()
	s.trust("m1")
	s.trust("o1")
	command, names, err := Pass(s.Snapshot(), Cluster, noon)
	if err != nil || !slices.Equal(names, []string{"node/n1"}) {
		t.Fatalf("left behind are %v, %v", names, err)
	}
	s.Apply(command)
	s.advance(noon, true)
	s.want(Outgoing, Issuing)
	s.renew("m1")
	s.renew("o1")
	s.advance(noon, false) // it may be there now
	node, _ := s.Snapshot().Identity("n1")
	if Lost(s.Snapshot(), &node) {
		t.Error("a node is given up whose authority is trusted")
	}
	command, _, err = Pass(s.Snapshot(), Cluster, noon)
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(command)
	s.advance(noon, true)
	s.want(Retired, Issuing)
	if !Lost(s.Snapshot(), &node) {
		t.Error("a node that was left behind needs no token")
	}
}

func TestAnAnnouncementCanBeTakenBack(t *testing.T) {
	s := newSite(t)
	if _, err := Cancel(s.Snapshot(), Cluster, noon); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing to take back: %v", err)
	}
	s.announce()
	if _, err := Announce(s.Snapshot(), s.first, s.next, false, "", noon); !errors.Is(err, ErrUnderWay) {
		t.Errorf("two at once: %v", err)
	}
	command, err := Cancel(s.Snapshot(), Cluster, noon)
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(command)
	s.want(Issuing, Retired)
	if _, err := Announce(s.Snapshot(), s.first, s.next, false, "", noon); !errors.Is(err, ErrSame) {
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
	if _, err := Cancel(s.Snapshot(), Cluster, noon); !errors.Is(err, ErrTooLate) {
		t.Errorf("taken back when it signs: %v", err)
	}
}

// A state that was restored where nobody knew of the rotation goes by the files of its coordinators.
func TestFilesThatAreNewerThanTheStateCount(t *testing.T) {
	third, err := pki.NewAuthority("c1", noon)
	if err != nil {
		t.Fatal(err)
	}
	files := func(all ...*pki.Authority) (text []byte) {
		for _, one := range all {
			text = append(text, one.CertificatePEM()...)
		}
		return text
	}
	for name, is := range map[string]struct {
		announced bool // in the restored state
		issuing   bool // and it signs there
		signs     func(*site) *pki.Authority
		trusted   func(*site) []byte
		want      []State // nil: nothing is due
	}{
		"as the list says": {
			true, false, func(s *site) *pki.Authority { return s.first }, func(s *site) []byte { return files(s.first) }, nil,
		},
		"one that nobody knows": {
			true, false, func(*site) *pki.Authority { return third }, func(*site) []byte { return files(third) }, []State{Retired, Retired, Issuing},
		},
		"one whose end was later": {
			true, true, func(s *site) *pki.Authority { return s.next }, func(s *site) []byte { return files(s.next) }, []State{Retired, Issuing},
		},
		"one that goes on": {
			true, true, func(s *site) *pki.Authority { return s.next }, func(s *site) []byte { return files(s.next, s.first) }, nil,
		},
		"one that only followed later": {
			true, false, func(s *site) *pki.Authority { return s.next }, func(s *site) []byte { return files(s.next) }, []State{Retired, Issuing},
		},
		"one that was following": {
			true, false, func(s *site) *pki.Authority { return s.next }, func(s *site) []byte { return files(s.next, s.first) },
			[]State{Outgoing, Issuing},
		},
		"no list, and one": {false, false, func(s *site) *pki.Authority { return s.first }, func(s *site) []byte { return files(s.first) }, nil},
		"no list, and one that was following": {
			false, false, func(s *site) *pki.Authority { return s.next }, func(s *site) []byte { return files(s.next, s.first) },
			[]State{Outgoing, Issuing},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			if is.announced {
				s.announce()
			}
			for _, id := range []string{"m1", "n1", "o1"} {
				if is.issuing {
					s.trust(id)
				}
			}
			if is.issuing {
				s.advance(noon, true)
			}
			command, due := Adopt(s.Snapshot(), is.signs(s), is.trusted(s), noon)
			if due != (is.want != nil) {
				t.Fatalf("something is due: %v", due)
			}
			if !due {
				return
			}
			s.Apply(command)
			s.want(is.want...)
			if _, again := Adopt(s.Snapshot(), is.signs(s), is.trusted(s), noon); again {
				t.Error("it is adopted again and again")
			}
			list := Of(s.Snapshot())
			here, _ := pki.AuthorityIDs(is.trusted(s))
			if ids := list.IDs(); !slices.Equal(ids, here) {
				t.Errorf("trusted are %v, and the files have %v", ids, here)
			}
		})
	}
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

// The history has an event long before an authority ends, one more at each of the later times, and none twice.
func TestTheEndOfAnAuthorityIsToldLongBefore(t *testing.T) {
	s := newSite(t)
	hypervisors, err := pki.NewHypervisors("c1", noon.AddDate(0, 0, 100))
	if err != nil {
		t.Fatal(err)
	}
	end := s.first.Ends()
	day := 24 * time.Hour
	for _, is := range []struct {
		before time.Duration
		events []string // beginnings of their messages
	}{
		{pki.AuthorityNotice + day, nil},
		{pki.AuthorityNotice - day, []string{"the authority cluster"}},
		{pki.AuthorityNotice - 2*day, nil},
		{75 * day, []string{"the authority libvirt", "the authority qemu"}}, // 175 days before their own ends
		{59 * day, []string{"the authority cluster"}},
		{58 * day, nil},
		{13 * day, []string{"the authority cluster"}},
		{-day, nil},
	} {
		command, due := Remind(s.Snapshot(), s.first, hypervisors, end.Add(-is.before))
		if due != (len(is.events) > 0) || len(command.Events) != len(is.events) {
			t.Fatalf("%s before: %v", is.before, command.Events)
		}
		for i, want := range is.events {
			if told := command.Events[i]; !strings.HasPrefix(told.Message, want) || told.Kind != "authority.ending" {
				t.Errorf("%s before: %v", is.before, told)
			}
		}
		if due {
			s.Apply(command)
		}
	}
	s.want(Issuing)
	if ends := Ends(s.first, hypervisors); ends[0].Name != Cluster || !ends[0].Soon(end.Add(-day)) || ends[0].Soon(noon) {
		t.Errorf("the first to end is %+v", ends[0])
	}
}

// A certificate of a release that renewed nothing is good for years, and what follows it for a month: the later one counts all the same, as
// soon as the authority signs that it is by.
func TestACertificateForYearsHoldsNothingUpOnceItIsRenewed(t *testing.T) {
	s := newSite(t)
	long := s.bearer("o1")
	long.Until = noon.Add(pki.UnrenewedLife)
	command, due := Seen(s.Snapshot(), long, noon)
	if !due {
		t.Fatal("a later end is not written down")
	}
	s.Apply(command)
	s.announce()
	renewed := s.bearer("o1")
	renewed.Authority = s.next.ID()
	if _, due := Seen(s.Snapshot(), renewed, noon); due {
		t.Error("an authority that signs nothing yet counts")
	}
	for _, id := range []string{"m1", "n1", "o1"} {
		s.trust(id)
	}
	s.advance(noon, true)
	s.renew("m1")
	s.renew("n1")
	s.waits("operator/o1")
	forged := renewed
	forged.ID = "o9"
	if _, due := Seen(s.Snapshot(), forged, noon); due {
		t.Error("somebody else renews it")
	}
	if command, due = Seen(s.Snapshot(), renewed, noon); !due {
		t.Fatal("the new authority is not written down")
	}
	s.Apply(command)
	if _, due := Seen(s.Snapshot(), renewed, noon); due {
		t.Error("what is on record is written down again")
	}
	s.advance(noon, true)
	s.want(Retired, Issuing)
}
