package api

import (
	"os"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// beginRecords makes records begin with the operator that the harness has, who is recorded under its present key.
func (m *coordinator) beginRecords(founders ...pki.Bearer) {
	m.cloud.t.Helper()
	command, due := identities.Begin(m.store.Snapshot(), founders, time.Now())
	if !due {
		m.cloud.t.Fatal("records do not begin")
	}
	m.propose(command)
}

func TestIdentitiesAreListedConfirmedAndRevoked(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	client := m.operator()
	m.beginRecords() // an upgrade: who is there is recorded when he calls
	for _, name := range []string{"alice", "bob", "bob"} {
		id := "id-" + name
		for _, taken := m.store.Snapshot().Identity(id); taken; _, taken = m.store.Snapshot().Identity(id) {
			id += "2"
		}
		identity := identities.New(pki.Bearer{
			Identity: pki.Identity{Role: pki.RoleOperator, ID: id, Name: name}, Key: "key-" + id, Until: time.Now().Add(time.Hour),
		}, time.Now())
		if id == "id-bob2" {
			identity.Kind, identity.Role = model.IdentityNode, string(pki.RoleAgent)
		}
		if id == "id-alice" {
			identity.Unconfirmed = "restored"
		}
		var command state.Command
		command.Kind = "test"
		identities.Put(&command, identity)
		m.propose(command)
	}
	revoke := func(ref string) error {
		_, err := client.RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{
			Identity: ref, Reason: "left", RequestId: "r-" + ref,
		}))
		return err
	}
	wantRefusal(t, revoke("carol"), rpc.NotFound, "identity/carol")
	wantRefusal(t, revoke("bob"), rpc.Invalid, "identity/bob") // which of the two
	c.check(revoke("operator/bob"))
	c.check(revoke("operator/bob")) // once more has no effect
	confirmed, err := client.ConfirmIdentity(t.Context(), connect.NewRequest(&berthv1.ConfirmIdentityRequest{
		Identity: "alice", RequestId: "r",
	}))
	if err != nil || confirmed.Msg.GetIdentity().GetUnconfirmed() != "" {
		t.Errorf("confirmed: %v, %v", confirmed, err)
	}
	shown, err := client.GetIdentity(t.Context(), connect.NewRequest(&berthv1.GetIdentityRequest{Identity: "operator/bob"}))
	if err != nil || shown.Msg.GetIdentity().GetRevokedReason() != "left" || shown.Msg.GetIdentity().GetRevokedBy() == "" {
		t.Errorf("shown: %v, %v", shown, err)
	}
	for all, want := range map[bool]int{false: 2, true: 3} {
		answer, err := client.ListIdentities(t.Context(), connect.NewRequest(&berthv1.ListIdentitiesRequest{All: all}))
		if err != nil || len(answer.Msg.GetIdentities()) != want {
			t.Errorf("all %v: %v, %v", all, answer, err)
		}
	}
	wantRefusal(t, revoke("alice"), rpc.Conflict, "operator/alice") // the last one
	history := m.store.Snapshot().Events(10)
	if last := history[len(history)-1]; last.Caller != "operator/alice" || last.CallerID != "op1" { // not the other alice
		t.Errorf("the history: %+v", history)
	}
}

func bearerOf(t *testing.T, files pki.Files) pki.Bearer {
	t.Helper()
	text, err := os.ReadFile(files.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	who, err := pki.BearerOfPEM(text)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// with speaks to this member with a certificate.
func (m *coordinator) with(files pki.Files) berthv1connect.BerthServiceClient {
	settings, err := pki.ClientConfig(files, pki.RolePeer)
	m.cloud.check(err)
	client := rpc.NewHTTPClient(settings)
	m.cloud.t.Cleanup(client.CloseIdleConnections)
	return berthv1connect.NewBerthServiceClient(client, m.url())
}

// Every member acts on what is on record there, and needs no leader for it.
func TestFollowersRefuseWhoIsRevokedWithoutALeader(t *testing.T) {
	c := newCloud(t, 3)
	lead, follower := c.leader(), c.follower()
	who := pki.Identity{Role: pki.RoleOperator, ID: "op7", Name: "alice", ClusterID: clusterID}
	files := c.certify(t.TempDir(), who.Role, who.ID, who.Name)
	bearer := bearerOf(t, files)
	lead.beginRecords(bearer)
	c.eventually("all have the record", func() bool {
		_, known := follower.store.Snapshot().IdentityByKey(bearer.Key)
		return known
	})
	status := func() error {
		_, err := follower.with(files).Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{Stale: true}))
		return err
	}
	c.check(status())
	identity, _ := lead.store.Snapshot().Identity("op7")
	command := state.Command{Kind: "test"}
	identities.Put(&command, identity.Revoke(time.Now(), "operator/admin", "left"))
	lead.propose(command)
	c.eventually("all know of it", func() bool {
		identity, _ := follower.store.Snapshot().Identity("op7")
		return !identity.Live()
	})
	for _, m := range c.members {
		if m != follower {
			m.kill()
		}
	}
	wantRefusal(t, status(), rpc.Denied, "operator/alice")
}
