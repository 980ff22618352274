package state

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/session"
)

func operatorOf(id, name string, hashes ...string) model.Identity {
	identity := model.Identity{ID: id, Kind: model.IdentityOperator, Name: name, Role: "operator", CreatedAt: noon}
	for _, hash := range hashes {
		identity.Keys = append(identity.Keys, model.PublicKey{Hash: hash, ValidUntil: noon.Add(time.Hour), AddedAt: noon})
	}
	return identity
}

func putIdentity(revision uint64, identity model.Identity) Command {
	return Command{Expect: []Expectation{expect(Identities, identity.ID, revision)}, Identities: []model.Identity{identity}}
}

func TestAnIdentityIsFoundByEachOfItsKeys(t *testing.T) {
	m := newMember(t)
	alice := operatorOf("o1", "alice", "aa", "bb")
	m.stored(putIdentity(0, alice))
	for hash, known := range map[string]bool{"aa": true, "bb": true, "a": false, "": false, "cc": false} {
		if found, ok := m.store.Snapshot().IdentityByKey(hash); ok != known || known && found.ID != "o1" {
			t.Errorf("the key %q leads to %+v, %v", hash, found, ok)
		}
	}
	alice.Keys = alice.Keys[1:]
	m.stored(putIdentity(1, alice))
	if found, ok := m.store.Snapshot().IdentityByKey("aa"); ok {
		t.Errorf("a key that was dropped leads to %+v", found)
	}
	m.refused(InUse, putIdentity(0, operatorOf("o2", "bob", "bb")))
	m.refused(NameTaken, putIdentity(0, operatorOf("o2", "alice", "cc")))
}

func TestARevocationIsNeverTakenBack(t *testing.T) {
	m := newMember(t)
	alice := operatorOf("o1", "alice", "aa")
	m.stored(putIdentity(0, alice))
	m.stored(putIdentity(1, alice.Revoke(noon, "operator/admin", "left")))
	m.refused(Invalid, putIdentity(2, alice))
	m.refused(Invalid, Command{Expect: []Expectation{expect(Identities, "o1", 2)}, Delete: []Record{{Identities, "o1"}}})
	m.stored(putIdentity(0, operatorOf("o2", "alice", "bb"))) // the name is free again
	if found, ok := m.store.Snapshot().IdentityByName(model.IdentityOperator, "alice"); !ok || found.ID != "o2" {
		t.Errorf("alice is %+v, %v", found, ok)
	}
}

// The oldest tombstones go, and no other record.
func TestRevokedIdentitiesAreBounded(t *testing.T) {
	m := newMember(t)
	m.stored(putIdentity(0, operatorOf("live", "alice", "aa")))
	const batch = 1000
	for n := 0; n <= MaxRevoked; n += batch {
		var command Command
		for i := n; i < n+batch; i++ {
			gone := operatorOf(fmt.Sprint("o", i), "bob").Revoke(noon.Add(time.Duration(i)*time.Second), "x", "y")
			command.Expect = append(command.Expect, expect(Identities, gone.ID, 0))
			command.Identities = append(command.Identities, gone)
		}
		m.stored(command)
	}
	x := m.store.Snapshot()
	if got := len(x.Identities()); got != MaxRevoked+1 {
		t.Errorf("%d identities are kept", got)
	}
	if _, kept := x.Identity("o0"); kept {
		t.Error("the first one is kept")
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}
}

func restoredOn(t *testing.T, m *member, change func(*member)) *Snapshot {
	t.Helper()
	backup, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if err != nil {
		t.Fatal(err)
	}
	change(m)
	backup.Quarantine(m.store.Snapshot(), noon, "operator/admin")
	x := backup.Snapshot()
	if err := x.verify(); err != nil {
		t.Error(err)
	}
	if _, err := Load(bytes.NewReader(saved(t, x))); err != nil {
		t.Error(err)
	}
	return x
}

func TestABackupBringsNobodyBackWhoWasRevokedSince(t *testing.T) {
	m := newMember(t)
	m.stored(putIdentity(0, operatorOf("o1", "alice", "aa")))
	m.stored(putIdentity(0, operatorOf("o2", "bob", "bb")))
	x := restoredOn(t, m, func(m *member) {
		bob := operatorOf("o2", "bob", "bb")
		m.stored(putIdentity(2, bob.Revoke(noon, "operator/alice", "left")))
		renewed := operatorOf("o1", "alice", "aa", "a2")
		m.stored(putIdentity(1, renewed))
		m.stored(putIdentity(0, operatorOf("o3", "carol", "cc")))
	})
	if bob, _ := x.Identity("o2"); bob.Live() || bob.Revoked.Reason != "left" {
		t.Errorf("bob is back: %+v", bob)
	}
	if alice, known := x.IdentityByKey("a2"); !known || alice.ID != "o1" || alice.Unconfirmed != "" {
		t.Errorf("alice's new key leads to %+v, %v", alice, known)
	}
	if carol, known := x.IdentityByKey("cc"); !known || !carol.Live() {
		t.Errorf("carol, who came since, is %+v, %v", carol, known)
	}
}

func TestABackupBringsNoPermissionBack(t *testing.T) {
	m := newMember(t)
	alice := operatorOf("o1", "alice", "aa")
	alice.Permit = "host-devices,host-paths"
	m.stored(putIdentity(0, alice))
	x := restoredOn(t, m, func(m *member) {
		alice.Permit = "host-paths"
		m.stored(putIdentity(1, alice))
	})
	if is, _ := x.Identity("o1"); is.Permit != "host-paths" {
		t.Errorf("alice has %s", is.Permit)
	}
}

func TestWhoOnlyABackupKnowsWaitsToBeConfirmed(t *testing.T) {
	m := newMember(t)
	m.stored(Command{
		Expect: []Expectation{expect(Members, "m1", 0), expect(Members, "m2", 0)}, Members: []model.Member{
			{ID: "m1", Name: "one"}, {ID: "m2", Name: "two"},
		},
	})
	m.stored(putIdentity(0, operatorOf("o1", "alice", "aa")))
	m.stored(putIdentity(0, operatorOf("o2", "bob", "bb")))
	for _, id := range []string{"m1", "m2"} {
		m.stored(putIdentity(0, model.Identity{
			ID: id, Kind: model.IdentityCoordinator, Name: id, Role: "peer", Keys: []model.PublicKey{{Hash: id}},
		}))
	}
	backup, err := Load(bytes.NewReader(saved(t, m.store.Snapshot())))
	if err != nil {
		t.Fatal(err)
	}
	// The directory of the member that goes on remembers who was revoked.
	tombstone := operatorOf("o2", "bob").Revoke(noon, "operator/alice", "left")
	backup.QuarantineAlone("m1", []model.Identity{tombstone}, noon, "coordinator/one")
	x := backup.Snapshot()
	if alice, _ := x.Identity("o1"); !alice.Live() || alice.Unconfirmed == "" {
		t.Errorf("alice may have been revoked since, and is %+v", alice)
	}
	if bob, known := x.IdentityByKey("bb"); !known || bob.Live() {
		t.Errorf("bob's key leads to %+v, %v", bob, known)
	}
	if one, _ := x.Identity("m1"); !one.Live() || one.Unconfirmed != "" {
		t.Errorf("the coordinator that goes on is %+v", one)
	}
	if two, _ := x.Identity("m2"); two.Live() {
		t.Errorf("a coordinator that was left behind is %+v", two)
	}
	if err := x.verify(); err != nil {
		t.Error(err)
	}
}

// Whoever was let in by a browser is not let in again by a backup, and a session is changed only by who has read it.
func TestSessionsAreGuardedAndDoNotComeBackWithABackup(t *testing.T) {
	m := newMember(t)
	put := func(revision uint64, secret string) Command {
		return Command{
			Expect:   []Expectation{expect(Sessions, "s1", revision)},
			Sessions: []session.Session{{ID: "s1", Operator: "o1", Link: "aa", Secret: secret, Until: noon}},
		}
	}
	first := put(0, "")
	if _, err := first.For(IdentityLevel - 1); err == nil || first.needed() != IdentityLevel {
		t.Error("one is proposed to a member that cannot read it")
	}
	m.stored(put(0, ""))
	offered, known := m.store.Snapshot().Session("s1")
	if !known || offered.Open() {
		t.Fatalf("got %+v, %t", offered, known)
	}
	m.stored(put(offered.Revision, "bb"))
	m.refused(Stale, put(offered.Revision, "cc"))
	if all := m.store.Snapshot().Sessions(); len(all) != 1 || all[0].Secret != "bb" {
		t.Errorf("a link is good twice: %+v", all)
	}
	m.store.Quarantine(m.store.Snapshot(), noon, "operator/admin")
	if all := m.store.Snapshot().Sessions(); len(all) != 0 {
		t.Errorf("a backup brings back %+v", all)
	}
}

// A member of an earlier release reads no section that it does not know.
func TestASnapshotWithoutIdentitiesHasNoSectionForThem(t *testing.T) {
	m := newMember(t)
	m.stored(putNode(0, node("n1", "alpha")))
	if bytes.Contains(saved(t, m.store.Snapshot()), []byte("\x00\x08identity")) {
		t.Error("it has one")
	}
	m.stored(putIdentity(0, operatorOf("o1", "alice", "aa")))
	if !bytes.Contains(saved(t, m.store.Snapshot()), []byte("\x00\x08identity")) {
		t.Error("with an identity it has none")
	}
	command := putIdentity(0, operatorOf("o2", "bob", "bb"))
	if _, err := command.For(IdentityLevel - 1); err == nil {
		t.Error("one is proposed to a member that cannot read it")
	}
	if command.needed() != IdentityLevel {
		t.Errorf("it needs level %d", command.needed())
	}
}

// A state of a release without records opens no second time in which a certificate alone counts: its bearer may have been revoked since.
func TestRecordsBeginWithARecoveryAndNobodyIsWaitedFor(t *testing.T) {
	m := newMember(t)
	m.stored(Command{Expect: []Expectation{expect(Members, "m1", 0)}, Members: []model.Member{{ID: "m1", Name: "one"}}})
	m.stored(putNode(0, node("n1", "alpha")))
	m.stored(putNode(0, node("n2", "beta")))
	recovered := func(x *Snapshot, known ...model.Identity) *Snapshot {
		alone, err := Load(bytes.NewReader(saved(t, x)))
		if err != nil {
			t.Fatal(err)
		}
		alone.QuarantineAlone("m1", known, noon, "coordinator/one")
		if err := alone.Snapshot().verify(); err != nil {
			t.Error(err)
		}
		return alone.Snapshot()
	}
	removed := model.Identity{ID: "n2", Kind: model.IdentityNode, Name: "beta", Role: "agent"}.Revoke(noon, "operator/admin", "removed")
	x := recovered(m.store.Snapshot(), removed)
	if from := x.Meta(MetaRecordsFrom); from != noon.UTC().Format(time.RFC3339) || x.FeatureLevel() < IdentityLevel {
		t.Errorf("certificates count without a record until %q, at level %d", from, x.FeatureLevel())
	}
	if is, known := x.Identity("n1"); !known || !is.Live() || is.Unconfirmed == "" {
		t.Errorf("a node that only that state knows is %+v, %v", is, known)
	}
	if is, _ := x.Identity("n2"); is.Live() {
		t.Errorf("a node that was removed since is %+v", is)
	}
	// Where records had begun, the recovery leaves the time as it is, also one that has not come.
	for _, from := range []string{"2026-11-25T12:00:00Z", "2025-01-01T00:00:00Z"} {
		m.stored(Command{Meta: map[string]string{MetaRecordsFrom: from}})
		x := recovered(m.store.Snapshot())
		if got := x.Meta(MetaRecordsFrom); got != from {
			t.Errorf("it was %s, and is %s", from, got)
		}
		if is, known := x.Identity("n1"); known {
			t.Errorf("a node of a site with records has got one: %+v", is)
		}
	}
}
