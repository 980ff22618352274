package authorities

import (
	"errors"
	"slices"
	"testing"
	"time"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/pki"
)

// signers is a site where the authorities of libvirt and QEMU may be replaced.
type signers struct {
	*site
	first, next pki.Hypervisors
}

func newSigners(t *testing.T) *signers {
	t.Helper()
	s := &signers{site: newSite(t)}
	for _, into := range []*pki.Hypervisors{&s.first, &s.next} {
		made, err := pki.NewHypervisors("c1", noon)
		if err != nil {
			t.Fatal(err)
		}
		*into = made
	}
	return s
}

func (s *signers) announce(purpose pki.Purpose) {
	s.Helper()
	command, err := AnnounceHypervisor(s.Snapshot(), purpose, s.first[purpose], s.next[purpose], "operator/o1", noon)
	if err != nil {
		s.Fatal(err)
	}
	s.Apply(command)
}

// says has somebody tell what he uses for a purpose, and tells whether that is written down.
func (s *signers) says(who pki.Bearer, purpose pki.Purpose, use Use, want bool) {
	s.Helper()
	command, due := Follow(s.Snapshot(), who, map[string]Use{Called(purpose): use}, noon)
	if due != want {
		s.Fatalf("what %s says of %s is written down: %v, want %v", who, purpose, due, want)
	}
	if due {
		s.Apply(command)
	}
}

// has is what is said by who trusts both authorities of a purpose and has a certificate by one of them.
func (s *signers) has(purpose pki.Purpose, by pki.Hypervisors) Use {
	return Use{Trusts: []string{s.first[purpose].ID(), s.next[purpose].ID()}, By: by[purpose].ID()}
}

func (s *signers) want(purpose pki.Purpose, want ...State) {
	s.Helper()
	var are []State
	for _, one := range OfHypervisors(s.Snapshot()).For(purpose).All {
		are = append(are, one.State)
	}
	if !slices.Equal(are, want) {
		s.Fatalf("the authorities of %s are %v, want %v", purpose, are, want)
	}
}

func (s *signers) waits(purpose pki.Purpose, want ...string) {
	s.Helper()
	p := ProgressOf(s.Snapshot(), Called(purpose), noon)
	if !slices.Equal(p.Names(), want) || len(want) > 0 && p.Waiting == "" || p.Name != Called(purpose) {
		s.Fatalf("%+v is waited for, want %v", p, want)
	}
	for _, wait := range p.Waits {
		if !wait.Until.IsZero() {
			s.Errorf("%s is waited for until %s, and the end of its own certificate is nothing to libvirt", wait.Subject, wait.Until)
		}
	}
}

// The new authority signs for hosts when all of them trust it and all coordinators have its key, and the old one goes when all use
// certificates by the new one. Operators and tokens have no part in it.
func TestAnAuthorityOfLibvirtFollowsAnother(t *testing.T) {
	const purpose = pki.Control
	s := newSigners(t)
	s.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Tokens, ID: "t1"}},
		Tokens: []model.Token{{Hash: "t1", Purpose: model.PurposeAgent, ExpiresAt: noon.Add(10 * time.Minute)}},
	})
	member, node := s.bearer("m1"), s.bearer("n1")
	s.says(node, purpose, s.has(purpose, s.first), false) // nothing is replaced
	s.announce(purpose)
	s.want(purpose, Issuing, Announced)
	s.waits(purpose, "coordinator/m1", "node/n1")
	s.says(node, purpose, Use{Trusts: []string{s.first[purpose].ID()}, By: s.first[purpose].ID()}, false)
	s.says(node, purpose, s.has(purpose, s.next), true) // it trusts; that it has a certificate of one that signs nothing is not believed
	s.waits(purpose, "coordinator/m1")
	s.advance(noon, false)
	s.says(member, purpose, Holding([]string{s.next[purpose].ID()})[Libvirt], true)
	s.advance(noon, true)
	s.want(purpose, Outgoing, Issuing)
	list := OfHypervisors(s.Snapshot()).For(purpose)
	if ids, err := pki.AuthorityIDs(list.Trusted()); err != nil || !slices.Equal(ids, []string{s.next[purpose].ID(), s.first[purpose].ID()}) {
		t.Errorf("hosts trust %v, %v", ids, err)
	}
	s.waits(purpose, "node/n1")
	s.says(node, purpose, s.has(purpose, s.first), false)
	s.advance(noon, false)
	s.says(node, purpose, s.has(purpose, s.next), true)
	s.says(node, purpose, s.has(purpose, s.next), false) // once
	s.says(node, purpose, s.has(purpose, s.first), false)
	s.advance(noon, true)
	s.want(purpose, Retired, Issuing)
	s.advance(noon, false)
	list = OfHypervisors(s.Snapshot()).For(purpose)
	if ids, err := pki.AuthorityIDs(list.Trusted()); err != nil || !slices.Equal(ids, []string{s.next[purpose].ID()}) {
		t.Errorf("at the end hosts trust %v, %v", ids, err)
	}
	if len(Of(s.Snapshot()).All) > 0 {
		t.Error("the cluster's own authority was replaced too")
	}
	s.want(pki.Data)
}

// Each is replaced by itself, also at the same time, and one report tells of both.
func TestLibvirtsAndQEMUsAuthoritiesAreReplacedApart(t *testing.T) {
	s := newSigners(t)
	s.announce(pki.Control)
	s.announce(pki.Data)
	if _, err := AnnounceHypervisor(s.Snapshot(), pki.Data, s.first[pki.Data], s.next[pki.Data], "", noon); !errors.Is(err, ErrUnderWay) {
		t.Errorf("two at once: %v", err)
	}
	for _, id := range []string{"m1", "n1"} {
		command, due := Follow(s.Snapshot(), s.bearer(id), map[string]Use{
			Libvirt: s.has(pki.Control, s.first), QEMU: s.has(pki.Data, s.first),
		}, noon)
		if !due {
			t.Fatalf("%s is not heard", id)
		}
		s.Apply(command)
	}
	s.advance(noon, true)
	s.want(pki.Control, Outgoing, Issuing)
	s.want(pki.Data, Issuing, Announced)
	s.advance(noon, true)
	s.want(pki.Data, Outgoing, Issuing)
	s.says(s.bearer("n1"), pki.Data, s.has(pki.Data, s.next), true)
	s.advance(noon, true)
	s.want(pki.Control, Outgoing, Issuing)
	s.want(pki.Data, Retired, Issuing)
	s.waits(pki.Control, "node/n1")
}

// A node that is down is named, and passed over when somebody says so: once for each of the two steps, because it may be there by then.
func TestANodeThatIsDownIsNamedAndPassedOver(t *testing.T) {
	const purpose = pki.Data
	s := newSigners(t)
	s.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Nodes, ID: "n2"}, {Table: state.Nodes, ID: "n3"}},
		Nodes: []model.Node{
			{ID: "n2", Name: "never-seen", Cluster: model.DefaultCluster}, {ID: "n3", Name: "revoked", Cluster: model.DefaultCluster},
		},
	})
	var revoke state.Command
	gone := identities.New(s.bearer("n3"), noon)
	identities.Put(&revoke, gone.Revoke(noon, "operator/o1", "lost"))
	s.Apply(revoke)
	if would := WouldWait(s.Snapshot(), QEMU, noon); !slices.Equal(would, []string{"coordinator/m1", "node/n1", "node/never-seen"}) {
		t.Errorf("it would wait for %v", would)
	}
	s.announce(purpose)
	for _, id := range []string{"m1", "n1"} {
		s.says(s.bearer(id), purpose, s.has(purpose, s.first), true)
	}
	s.waits(purpose, "node/never-seen")
	s.advance(noon, false)
	pass := func() {
		t.Helper()
		command, names, err := Pass(s.Snapshot(), QEMU, noon)
		if err != nil || !slices.Equal(names, []string{"node/never-seen"}) {
			t.Fatalf("left behind are %v, %v", names, err)
		}
		s.Apply(command)
		if p := ProgressOf(s.Snapshot(), QEMU, noon); !slices.Equal(p.Passed, names) {
			t.Errorf("it tells that %v are left behind", p.Passed)
		}
	}
	pass()
	s.advance(noon, true)
	s.want(purpose, Outgoing, Issuing)
	s.waits(purpose, "node/n1", "node/never-seen")
	s.says(s.bearer("n1"), purpose, s.has(purpose, s.next), true)
	s.advance(noon, false)
	pass()
	s.advance(noon, true)
	s.want(purpose, Retired, Issuing)
}

// Nobody speaks for another, and who is revoked or not on record is not heard.
func TestOnlyTheOwnKeySaysWhatANodeUses(t *testing.T) {
	const purpose = pki.Control
	s := newSigners(t)
	s.announce(purpose)
	forged, other := s.bearer("n1"), s.bearer("n1")
	forged.Key = "forged"
	other.ID = "n2"
	s.says(forged, purpose, s.has(purpose, s.first), false)
	s.says(other, purpose, s.has(purpose, s.first), false)
	s.waits(purpose, "coordinator/m1", "node/n1")
	identity, _ := s.Snapshot().Identity("n1")
	var revoke state.Command
	identities.Put(&revoke, identity.Revoke(noon, "operator/o1", "lost"))
	s.Apply(revoke)
	s.says(s.bearer("n1"), purpose, s.has(purpose, s.first), false)
	s.waits(purpose, "coordinator/m1")
}

func TestAnAnnouncementForHostsCanBeTakenBack(t *testing.T) {
	const purpose = pki.Control
	s := newSigners(t)
	if _, err := Cancel(s.Snapshot(), Libvirt, noon); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing to take back: %v", err)
	}
	s.announce(purpose)
	command, err := Cancel(s.Snapshot(), Libvirt, noon)
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(command)
	s.want(purpose, Issuing, Retired)
	if _, err := AnnounceHypervisor(s.Snapshot(), purpose, s.first[purpose], s.next[purpose], "", noon); !errors.Is(err, ErrSame) {
		t.Errorf("the same again: %v", err)
	}
	if _, _, err := Pass(s.Snapshot(), Libvirt, noon); !errors.Is(err, ErrNothing) {
		t.Errorf("nothing to pass over: %v", err)
	}
}

// A restored state that knows nothing of a replacement goes by the files of its leader.
func TestFilesForHostsThatAreNewerThanTheStateCount(t *testing.T) {
	const purpose = pki.Control
	s := newSigners(t)
	first, next := s.first[purpose], s.next[purpose]
	both := slices.Concat(next.CertificatePEM(), first.CertificatePEM())
	if _, due := AdoptHypervisor(s.Snapshot(), purpose, first, first.CertificatePEM(), noon); due {
		t.Error("one alone is adopted")
	}
	command, due := AdoptHypervisor(s.Snapshot(), purpose, next, both, noon)
	if !due {
		t.Fatal("that another is trusted too is not taken over")
	}
	s.Apply(command)
	s.want(purpose, Outgoing, Issuing)
	command, due = AdoptHypervisor(s.Snapshot(), purpose, next, next.CertificatePEM(), noon)
	if !due {
		t.Fatal("a retired one is trusted again")
	}
	s.Apply(command)
	s.want(purpose, Retired, Issuing)
	if _, due := AdoptHypervisor(s.Snapshot(), purpose, next, next.CertificatePEM(), noon); due {
		t.Error("it is adopted again and again")
	}
}
