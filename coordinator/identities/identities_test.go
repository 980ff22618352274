package identities

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/shared/pki"
)

var noon = statetest.Noon

// site is a state with node n1 and coordinator m1 on record.
type site struct{ *statetest.Site }

func newSite(t testing.TB) *site {
	t.Helper()
	return &site{statetest.New(t)}
}

func (s *site) begin(founders ...pki.Bearer) {
	s.Helper()
	s.Apply(state.RaiseLevel(state.IdentityLevel))
	command, due := Begin(s.Snapshot(), founders, noon)
	if !due {
		s.Fatal("records do not begin")
	}
	s.Apply(command)
}

func (s *site) record(who pki.Bearer) {
	s.Helper()
	command, due := Record(s.Snapshot(), who, noon)
	if !due {
		s.Fatalf("%s is not recorded", who)
	}
	s.Apply(command)
}

func (s *site) want(want Standing, who pki.Bearer, at time.Time) {
	s.Helper()
	if got := Judge(s.Snapshot(), who, at); got != want {
		s.Errorf("%s with key %q %s (%d), want %d", who, who.Key, got.Why(), got, want)
	}
}

func bearer(role pki.Role, id, key string) pki.Bearer {
	return pki.Bearer{
		Identity: pki.Identity{Role: role, ID: id, Name: "name-" + id, ClusterID: "c1"}, Key: key, Until: noon.Add(365 * 24 * time.Hour),
	}
}

func TestACertificateCountsOnlyWithItsKeyOnRecord(t *testing.T) {
	s := newSite(t)
	admin, coordinator := bearer(pki.RoleOperator, "o1", "k-admin"), bearer(pki.RolePeer, "m1", "k-m1")
	s.begin(admin, coordinator)
	s.want(Recorded, admin, noon)
	s.want(Recorded, coordinator, noon)
	// Who can sign may write into a certificate what he likes.
	s.want(Unknown, bearer(pki.RoleOperator, "o1", "forged"), noon)
	s.want(Unknown, bearer(pki.RoleOperator, "o9", "forged"), noon)
	s.want(Unknown, bearer(pki.RolePeer, "m1", "forged"), noon)
	s.want(Unknown, bearer(pki.RolePeer, "m9", "forged"), noon)
	s.want(Unknown, bearer(pki.RoleAgent, "n9", "forged"), noon)
	s.want(Foreign, bearer(pki.RoleOperator, "o1", "k-m1"), noon)
	s.want(Foreign, bearer(pki.RolePeer, "o1", "k-admin"), noon)
	s.want(Expired, admin, admin.Until.Add(time.Second))
	s.want(Unknown, bearer(pki.RoleOperator, "o1", ""), noon)
}

// The first operator has every permission, so that there is one who can give them. Of those of before nobody has said which.
func TestPermissionsBeginWithTheFounder(t *testing.T) {
	s := newSite(t)
	admin, coordinator, late := bearer(pki.RoleOperator, "o1", "k1"), bearer(pki.RolePeer, "m1", "k2"), bearer(pki.RoleOperator, "o2", "k3")
	s.begin(admin, coordinator)
	if command, due := Found(s.Snapshot(), []pki.Bearer{admin, late}, noon); due {
		s.Apply(command)
	}
	for id, want := range map[string]string{"o1": model.PermitAll, "m1": "", "o2": model.PermitAll} {
		if identity, known := s.Snapshot().Identity(id); !known || identity.Permit != want {
			t.Errorf("%s has %q, want %q", id, identity.Permit, want)
		}
	}
	old := newSite(t)
	old.begin()
	old.record(admin)
	if identity, _ := old.Snapshot().Identity("o1"); identity.Permit != "" {
		t.Errorf("one of an earlier release has %q", identity.Permit)
	}
}

func TestARevocationEndsAllRights(t *testing.T) {
	s := newSite(t)
	admin, node := bearer(pki.RoleOperator, "o1", "k-admin"), bearer(pki.RoleAgent, "n1", "k-n1")
	s.begin(admin)
	s.record(node)
	for _, who := range []pki.Bearer{admin, node} {
		identity, _ := s.Snapshot().Identity(who.ID)
		var command state.Command
		Put(&command, identity.Revoke(noon, "operator/x", "lost"))
		s.Apply(command)
		s.want(Revoked, who, noon)
		who.Key = "forged"
		s.want(Revoked, who, noon)
	}
}

// A node that was removed is listened to, if it has its own key; in no other way does it count.
func TestARemovedNodeIsGone(t *testing.T) {
	s := newSite(t)
	s.begin(bearer(pki.RoleOperator, "o1", "k-admin"))
	node := bearer(pki.RoleAgent, "n1", "k-n1")
	s.record(node)
	now, _ := s.Snapshot().Node("n1")
	command := state.Command{
		Expect: []state.Expectation{{Table: state.Nodes, ID: "n1", Revision: now.Revision}},
		Delete: []state.Record{{Table: state.Nodes, ID: "n1"}},
	}
	Remove(s.Snapshot(), &command, node.Identity, noon, "operator/x")
	s.Apply(command)
	s.want(Gone, node, noon)
	if Gone.Counts() {
		t.Error("it counts")
	}
	s.want(Foreign, bearer(pki.RoleOperator, "n1", "k-n1"), noon)
	s.want(Revoked, bearer(pki.RoleAgent, "n1", "forged"), noon)

	// One that was revoked before is not listened to: it may be somebody else's by now.
	other := bearer(pki.RoleAgent, "n9", "k-n9")
	identity := New(other, noon).Revoke(noon, "operator/x", "taken over")
	command = state.Command{Expect: []state.Expectation{{Table: state.Identities, ID: "n9"}}, Identities: []model.Identity{identity}}
	s.Apply(command)
	s.want(Revoked, other, noon)
}

// An upgraded cluster has nodes, coordinators and operators without records.
func TestAfterAnUpgradeTheFirstKeyThatIsSeenCounts(t *testing.T) {
	s := newSite(t)
	node, coordinator, alice := bearer(pki.RoleAgent, "n1", "k-n1"), bearer(pki.RolePeer, "m1", "k-m1"), bearer(pki.RoleOperator, "o1", "k-o1")
	for _, who := range []pki.Bearer{node, coordinator, alice} {
		s.want(Unrecorded, who, noon) // as in the release before
		if _, due := Record(s.Snapshot(), who, noon); due {
			t.Errorf("%s is recorded where a member may not know of records", who)
		}
	}
	s.want(Unknown, bearer(pki.RolePeer, "m9", "x"), noon)
	s.want(Gone, bearer(pki.RoleAgent, "n9", "x"), noon)
	if _, due := Begin(s.Snapshot(), nil, noon); due {
		t.Error("records begin where a member may not know of them")
	}
	s.begin()
	for _, who := range []pki.Bearer{node, coordinator, alice} {
		s.want(Unrecorded, who, noon)
		s.record(who)
		s.want(Recorded, who, noon.Add(2*Grace))
		who.Key = "another"
		s.want(Unknown, who, noon)
	}
	// Whoever has not called by then is out, unless he has a record of another kind.
	late := bearer(pki.RoleOperator, "o2", "k-o2")
	s.want(Unrecorded, late, noon.Add(Grace-time.Minute))
	s.want(Unknown, late, noon.Add(Grace+time.Minute))
	s.want(Unknown, bearer(pki.RoleAgent, "n9", "x"), noon.Add(Grace+time.Minute))
}

func TestTwoOperatorsOfOneNameAreToldApart(t *testing.T) {
	s := newSite(t)
	s.begin()
	first, second := bearer(pki.RoleOperator, "o1", "k-o1"), bearer(pki.RoleOperator, "o2", "k-o2")
	first.Name, second.Name = "admin", "admin"
	s.record(first)
	s.record(second)
	one, _ := s.Snapshot().Identity("o1")
	other, _ := s.Snapshot().Identity("o2")
	if one.Name != "admin" || other.Name == "admin" {
		t.Errorf("they are %q and %q", one.Name, other.Name)
	}
	events := []model.Event{{Caller: "operator/admin"}, {Caller: "operator/" + other.Name}, {Caller: "berth"}, {Caller: "operator/nobody"}}
	Sign(s.Snapshot(), events)
	for i, want := range []string{"o1", "o2", "", ""} {
		if events[i].CallerID != want {
			t.Errorf("%s is the identity %q, want %q", events[i].Caller, events[i].CallerID, want)
		}
	}
}

// An operator who logs in before records begin has a used token and nothing else.
func TestWhoWasLetInJustBeforeRecordsBeganIsKept(t *testing.T) {
	s := newSite(t)
	s.Apply(state.Command{
		Expect: []state.Expectation{{Table: state.Tokens, ID: "h"}},
		Tokens: []model.Token{{Hash: "h", Purpose: model.PurposeOperator, UsedBy: "o2", UsedAt: noon}},
	})
	s.begin(bearer(pki.RoleOperator, "o1", "k-admin"))
	alice := bearer(pki.RoleOperator, "o2", "k-o2")
	s.want(Unrecorded, alice, noon.Add(time.Hour))
	s.record(alice)
	if identity, _ := s.Snapshot().Identity("o2"); identity.Name != alice.Name {
		t.Errorf("alice is %q", identity.Name)
	}
	s.want(Unknown, bearer(pki.RoleOperator, "o2", "another"), noon)
}

func TestKeysOfCoordinatorsAreThoseOfMembers(t *testing.T) {
	s := newSite(t)
	s.begin(bearer(pki.RolePeer, "m1", "k-m1"), bearer(pki.RolePeer, "m2", "k-m2"), bearer(pki.RoleOperator, "o1", "k-o1"))
	if keys := CoordinatorKeys(s.Snapshot(), []string{"m1", "o1"}); len(keys) != 1 || keys[0] != "k-m1" {
		t.Errorf("%v", keys)
	}
}

// A lookup must not be felt in a call.
func BenchmarkJudge(b *testing.B) {
	s := newSite(b)
	s.Apply(state.RaiseLevel(state.IdentityLevel))
	var founders []pki.Bearer
	for i := range 5000 {
		founders = append(founders, bearer(pki.RoleAgent, fmt.Sprint("n", i), fmt.Sprint("k", i)))
	}
	command, _ := Begin(s.Snapshot(), founders, noon)
	s.Apply(command)
	x := s.Snapshot()
	for b.Loop() {
		if !Judge(x, founders[77], noon).Counts() {
			b.Fatal("it does not count")
		}
	}
}

// A later certificate for the same key is written down, and what was opened with the one before goes on when that has ended.
func TestARenewalKeepsWhatIsOpen(t *testing.T) {
	s := newSite(t)
	s.begin(bearer(pki.RoleOperator, "o1", "k-admin"))
	old := bearer(pki.RoleAgent, "n1", "k-n1")
	old.Until, old.Authority = noon.Add(30*24*time.Hour), "first"
	s.record(old)
	if _, due := Renewed(s.Snapshot(), old, noon); due {
		t.Error("what is on record is written down again")
	}
	renewed := old
	renewed.Until, renewed.Authority = noon.Add(50*24*time.Hour), "second"
	command, due := Renewed(s.Snapshot(), renewed, noon.Add(20*24*time.Hour))
	if !due {
		t.Fatal("a later certificate is not written down")
	}
	s.Apply(command)
	identity, _ := s.Snapshot().Identity("n1")
	if len(identity.Keys) != 1 || !identity.ValidUntil().Equal(renewed.Until) || identity.Keys[0].Authority != "second" {
		t.Errorf("on record is %+v", identity.Keys)
	}
	later := old.Until.Add(time.Hour)
	s.want(Recorded, old, later) // its connection was made before
	s.want(Recorded, renewed, later)
	s.want(Expired, renewed, renewed.Until.Add(time.Second))
	if _, due := Renewed(s.Snapshot(), old, later); due {
		t.Error("the older certificate of a copy takes the later one's place")
	}
	forged := renewed
	forged.ID, forged.Until = "n9", renewed.Until.Add(time.Hour)
	if _, due := Renewed(s.Snapshot(), forged, noon); due {
		t.Error("somebody else renews it")
	}
	var revoke state.Command
	Put(&revoke, identity.Revoke(noon, "operator/x", "lost"))
	s.Apply(revoke)
	again := renewed
	again.Until = renewed.Until.Add(time.Hour)
	if _, due := Renewed(s.Snapshot(), again, noon); due {
		t.Error("a revoked one is renewed")
	}
	s.want(Revoked, renewed, noon)
}

// An alarm is raised by these: for whom nobody waits they are late, and one who is out keeps none ringing.
func TestCertificatesEndWithTheFirstOfAKindAndTheLastOperator(t *testing.T) {
	s := newSite(t)
	until := func(who pki.Bearer, days int) pki.Bearer {
		who.Until = noon.AddDate(0, 0, days)
		return who
	}
	s.begin(
		until(bearer(pki.RoleOperator, "o1", "k1"), 3), until(bearer(pki.RoleOperator, "o2", "k2"), 20),
		until(bearer(pki.RoleOperator, "o3", "k3"), 5), until(bearer(pki.RolePeer, "m1", "k4"), 15), until(bearer(pki.RoleAgent, "n1", "k5"), 12),
		until(bearer(pki.RoleAgent, "n2", "k6"), 2), until(bearer(pki.RoleAgent, "n3", "k7"), 7),
	)
	gone, _ := s.Snapshot().Identity("n2")
	var command state.Command
	Put(&command, gone.Revoke(noon, "operator/o1", "removed"))
	s.Apply(command)
	ends := Ends(s.Snapshot())
	for kind, days := range map[model.IdentityKind]int{model.IdentityOperator: 20, model.IdentityCoordinator: 15, model.IdentityNode: 7} {
		if want := noon.AddDate(0, 0, days); !ends[kind].Equal(want) {
			t.Errorf("%s: %v, want %v", kind, ends[kind], want)
		}
	}
}
