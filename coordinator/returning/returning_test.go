package returning

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"berth/coordinator/admission"
	"berth/coordinator/model"
	"berth/shared/domxml/guard"
)

var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func operator(id, name, permit string) model.Identity {
	return model.Identity{
		ID: id, Kind: model.IdentityOperator, Name: name, Role: "operator", Permit: permit, Keys: []model.PublicKey{{Hash: id}},
	}
}

func found(t *testing.T, all []model.Identity, id string) model.Identity {
	t.Helper()
	at := slices.IndexFunc(all, func(i model.Identity) bool { return i.ID == id })
	if at < 0 {
		t.Fatalf("%s is gone", id)
	}
	return all[at]
}

// Whoever only the backup knows, and whatever that says, has nothing until somebody has confirmed it.
func TestWhoOnlyABackupKnowsHasNoPermission(t *testing.T) {
	for _, permit := range []string{"", guard.All, guard.None, "host-paths", "of-a-later-release"} {
		all := Identities([]model.Identity{operator("o1", "alice", permit)}, nil, true, "restored")
		alice := found(t, all, "o1")
		if alice.Unconfirmed != "restored" || admission.Held(&alice) != guard.None {
			t.Errorf("%q: %+v has %s", permit, alice, admission.Held(&alice))
		}
		if names := admission.Undecided(all); len(names) > 0 {
			t.Errorf("%q: a word is asked for on %v", permit, names)
		}
		alice.Unconfirmed = ""
		if want, got := admission.OnceConfirmed(&alice), admission.Held(&alice); got != want {
			t.Errorf("%q: confirmed it has %s, want %s", permit, got, want)
		}
	}
}

// What is known may be older than the backup, as the store of a member that was away: a permission may have been taken in either.
func TestWhatIsKnownByAnOlderStoreBringsNoPermissionBack(t *testing.T) {
	for _, c := range []struct{ backup, known, want string }{
		{guard.None, guard.All, guard.None},
		{guard.All, guard.None, guard.None},
		{"", "host-paths", "host-paths"},
		{"host-paths", "", "host-paths"},
		{"", "", ""},
		{"host-devices,host-paths", "host-paths,firmware", "host-paths"},
		{"host-devices", "host-paths", guard.None},
		{guard.All, "host-devices,host-paths", "host-devices,host-paths"},
	} {
		backup, known := []model.Identity{operator("o1", "alice", c.backup)}, []model.Identity{operator("o1", "alice", c.known)}
		if is := found(t, Identities(backup, known, false, "recovered"), "o1"); is.Permit != c.want || is.Unconfirmed != "" {
			t.Errorf("%q and %q: %+v, want %q", c.backup, c.known, is, c.want)
		}
		if is := found(t, Identities(backup, known, true, "restored"), "o1"); is.Permit != c.known {
			t.Errorf("of a cluster that runs: %+v, want %q", is, c.known)
		}
	}
}

func TestTwoOperatorsOfOneNameAreToldApartAfterARestore(t *testing.T) {
	backup, known := []model.Identity{operator("0123456789AB", "alice", "")}, []model.Identity{operator("o2", "alice", guard.All)}
	all := Identities(backup, known, true, "restored")
	if is := found(t, all, "0123456789AB"); is.Name != "alice-456789ab" || is.Unconfirmed == "" {
		t.Errorf("the one of the backup is %+v", is)
	}
	if is := found(t, all, "o2"); is.Name != "alice" {
		t.Errorf("the one of today is %+v", is)
	}
}

func TestACoordinatorThatIsNoMemberComesBackRevoked(t *testing.T) {
	coordinator := func(id string) model.Identity {
		return model.Identity{ID: id, Kind: model.IdentityCoordinator, Name: id, Role: "peer"}
	}
	members := []model.Member{{ID: "m1"}}
	backup, known := []model.Identity{coordinator("m1"), coordinator("m2")}, []model.Identity{coordinator("m1"), coordinator("m3")}
	for alone, gone := range map[bool][]string{false: {"m2"}, true: {"m2", "m3"}} {
		all := Identities(backup, known, !alone, "restored")
		var ids []string
		for _, one := range Coordinators(all, members, alone, noon, "operator/admin") {
			if one.Live() || one.Revoked.By != "operator/admin" {
				t.Errorf("alone %v: %+v", alone, one)
			}
			ids = append(ids, one.ID)
		}
		if !slices.Equal(ids, gone) {
			t.Errorf("alone %v: revoked are %v, want %v", alone, ids, gone)
		}
	}
	changed := Coordinators(Identities(backup[:1], nil, false, "recovered"), members, true, noon, "coordinator/m1")
	if len(changed) != 1 || !changed[0].Live() || changed[0].Unconfirmed != "" {
		t.Errorf("the member that goes on is %+v", changed)
	}
}

// Whatever was in a backup and is known, nobody has more than what is known says, and nobody lives who is known to be revoked.
func TestNoRestoreGivesAnythingToAnybody(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 15))
	permissions := guard.Permissions()
	some := func(from int) (all []model.Identity) {
		for n := range 6 {
			if r.IntN(3) == 0 {
				continue
			}
			var list []guard.Permission
			for _, one := range permissions {
				if r.IntN(2) == 0 {
					list = append(list, one)
				}
			}
			permit := []string{"", guard.All, guard.None, guard.Join(list)}[r.IntN(4)]
			if permit == "" && r.IntN(2) == 0 {
				permit = guard.None
			}
			one := operator(fmt.Sprint("o", n), fmt.Sprint("op", r.IntN(3), "-", from, n), permit)
			if r.IntN(4) == 0 {
				one = one.Revoke(noon, "x", "")
			}
			all = append(all, one)
		}
		return all
	}
	for range 2000 {
		backup, known, certain := some(0), some(1), r.IntN(2) == 0
		for _, is := range Identities(backup, known, certain, "restored") {
			at := slices.IndexFunc(known, func(i model.Identity) bool { return i.ID == is.ID })
			had := guard.None
			if at >= 0 {
				had = admission.Held(&known[at])
			}
			if !certain && had != guard.None {
				if in := slices.IndexFunc(backup, func(i model.Identity) bool { return i.ID == is.ID }); in >= 0 {
					had = guard.Common(had, admission.Held(&backup[in]))
				}
			}
			has, _ := guard.Split(admission.Held(&is))
			if more := admission.Without(has, had); len(more) > 0 {
				t.Fatalf("seed %d: %+v has %v more than %s", seed, is, more, had)
			}
			if at >= 0 && !known[at].Live() && is.Live() {
				t.Fatalf("seed %d: %+v is back", seed, is)
			}
		}
	}
}

// However names are chosen, live ones of a kind have different ones, and each is a name: also where somebody has taken the obvious one.
func TestNoTwoHaveOneNameAfterARestore(t *testing.T) {
	long := strings.Repeat("a", model.MaxNameLength)
	known := []model.Identity{
		operator("0000000000001", "alice", ""), operator("0000000000002", "alice-00000009", ""), operator("0000000000003", long, ""),
	}
	backup := []model.Identity{
		operator("0000100000009", "alice", ""), operator("0000000000005", long, ""), operator("0000000000006", "alice-000000009", ""),
	}
	names := make(map[string]string)
	for _, is := range Identities(backup, known, true, "restored") {
		if other, taken := names[is.Name]; taken {
			t.Errorf("%s and %s are both %s", is.ID, other, is.Name)
		}
		names[is.Name] = is.ID
		if err := model.ValidateName("operator", is.Name); err != nil {
			t.Errorf("%s: %v", is.ID, err)
		}
	}
	if len(names) != 6 || names["alice"] != "0000000000001" {
		t.Errorf("they are %v", names)
	}
}

// A node that a state without records has on record may have been removed since.
func TestANodeOfAStateWithoutRecordsWaitsToBeConfirmed(t *testing.T) {
	removed := model.Identity{ID: "n2", Kind: model.IdentityNode, Name: "hv2"}.Revoke(noon, "operator/admin", "removed")
	of := model.Identity{ID: "n4", Kind: model.IdentityNode, Name: "hv3"}
	nodes := []model.Node{{ID: "n1", Name: "hv1"}, {ID: "n2", Name: "hv2"}, {ID: "0000000000003", Name: "hv3"}}
	made := Unrecorded(nodes, []model.Identity{removed, of}, noon, "recovered")
	if len(made) != 2 || made[0].ID != "n1" || made[0].Name != "hv1" || made[1].Name != "hv3-00000003" {
		t.Fatalf("records are made for %+v", made)
	}
	for _, one := range made {
		if one.Unconfirmed != "recovered" || one.Role != "agent" || len(one.Keys) > 0 || !one.Live() {
			t.Errorf("%+v", one)
		}
	}
}
