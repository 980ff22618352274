package api

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// cameBack has an identity be as one that only a backup knows.
func (m *coordinator) cameBack(name string) {
	m.cloud.t.Helper()
	identity, _ := m.store.Snapshot().Identity("id-" + name)
	identity.Unconfirmed = "restored from a backup"
	command := state.Command{Kind: "test"}
	identities.Put(&command, identity)
	m.propose(command)
}

func confirmIdentity(t *testing.T, client berthv1connect.BerthServiceClient, ref string) error {
	_, err := client.ConfirmIdentity(t.Context(), connect.NewRequest(&berthv1.ConfirmIdentityRequest{
		Identity: ref, RequestId: answer.NewID(time.Now()),
	}))
	return err
}

// What an operator had when a backup was made may have been taken since. It counts again by the word of another one who has it.
func TestAnOperatorOutOfABackupHasNothingUntilItIsConfirmed(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.guard("yes")
	m.permits(guard.All)
	m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Stopped, Spec: model.VMSpec{Memory: 64 << 20, VCPUs: 1, XML: someDocument}})
	admin, carol, bob := m.permitted("admin", guard.All), m.permitted("carol", "host-paths"), m.permitted("bob", guard.None)
	for permit, what := range map[string]guard.Permission{"host-devices": guard.HostDevices, guard.All: guard.HostPaths, "": guard.Firmware} {
		name := "alice" + permit
		alice := m.permitted(name, permit)
		if err := edited(t, alice, kinds[what]); err != nil {
			t.Fatalf("%q, before: %v", permit, err)
		}
		m.cameBack(name)
		wantRefusal(t, edited(t, alice, kinds[what]), rpc.Denied, "vm/web")
		wantRefusal(t, setIdentity(t, alice, "bob", string(what)), rpc.Denied, "operator/bob")
		wantRefusal(t, confirmIdentity(t, alice, name), rpc.Denied, "operator/"+name)
		for _, purpose := range []string{"operator", "agent", "coordinator"} {
			_, err := alice.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose}))
			if rpc.Detail(err).GetCode() != rpc.Denied || !strings.Contains(rpc.Detail(err).GetNextStep(), "berth identity confirm operator/"+name) {
				t.Errorf("%q makes a token for a new %s: %v", permit, purpose, err)
			}
		}
		err := confirmIdentity(t, bob, name)
		wantRefusal(t, err, rpc.Denied, "operator/"+name)
		if next := rpc.Detail(err).GetNextStep(); !strings.Contains(next, "'berth identity set operator/"+name+" --permit none' first") {
			t.Errorf("%q: %s", permit, next)
		}
		wantRefusal(t, edited(t, alice, kinds[what]), rpc.Denied, "vm/web")
		m.cloud.check(confirmIdentity(t, admin, name))
		if err := edited(t, alice, kinds[what]); err != nil {
			t.Errorf("%q, confirmed: %v", permit, err)
		}
	}
	last := m.store.Snapshot().Events(1)[0]
	if last.Kind != "identity.confirmed" || !strings.Contains(last.Message, "may put onto hosts: ") || last.Caller != "operator/admin" {
		t.Errorf("the history has %+v", last)
	}
	// Who lacks something confirms what is left after that was taken.
	dave := m.permitted("dave", guard.All)
	m.cameBack("dave")
	wantRefusal(t, confirmIdentity(t, carol, "dave"), rpc.Denied, "operator/dave")
	m.cloud.check(setIdentity(t, carol, "dave", "host-paths"))
	wantRefusal(t, edited(t, dave, kinds[guard.HostPaths]), rpc.Denied, "vm/web")
	m.cloud.check(confirmIdentity(t, carol, "dave"))
	m.cloud.check(edited(t, dave, kinds[guard.HostPaths]))
	wantRefusal(t, edited(t, dave, kinds[guard.Firmware]), rpc.Denied, "vm/web")
}

// One who is out made tokens while he was in. None of them lets anybody in, whoever has his name since.
func TestWhoIsRevokedComesBackByNoTokenOfItsOwn(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	m.beginRecords(m.cloud.bearer(m.cloud.certify(t.TempDir(), pki.RoleOperator, "op9", "founder")))
	admin := m.permitted("admin", guard.All)
	tokenBy := func(by berthv1connect.BerthServiceClient, purpose string) pki.Token {
		made, err := by.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose, Uses: 2}))
		c.check(err)
		token, err := pki.ParseToken(made.Msg.GetToken())
		c.check(err)
		return token
	}
	enrol := func(token pki.Token, name string) error {
		_, err := m.stranger().Enrol(t.Context(), connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: token.Secret, Name: name, CsrPem: c.request(name), HostUuid: "4c4c4544-0000-1000-8000-00000000000" + name[len(name)-1:],
			MachineId: name, RaftAddress: "127.0.0.1:1", ApiAddress: "127.0.0.1:2", AgentAddress: "127.0.0.1:3",
		}))
		return err
	}
	alice := m.permitted("alice", guard.All)
	operator, agent, coordinator := tokenBy(alice, "operator"), tokenBy(alice, "agent"), tokenBy(alice, "coordinator")
	c.check(enrol(operator, "new1"))
	// Whoever is root of a coordinator has all permissions: alice must have them still.
	c.check(setIdentity(t, admin, "alice", "host-paths"))
	wantRefusal(t, enrol(coordinator, "new2"), rpc.Denied, "token")
	if _, err := alice.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: "coordinator"})); !strings.HasPrefix(
		rpc.Detail(err).GetNextStep(), "have an operator do it who has all") {
		t.Errorf("one who has not all makes a coordinator: %v", err)
	}
	c.check(setIdentity(t, admin, "alice", guard.All))
	kept := m.store.Snapshot().Tokens()
	_, err := admin.RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{Identity: "alice", RequestId: "r"}))
	c.check(err)
	if left := m.store.Snapshot().Tokens(); len(left) != 0 {
		t.Errorf("%d tokens of alice are left", len(left))
	}
	// Nor does one that was on its way in that moment.
	for i := range kept {
		kept[i].Revision = 0
		m.propose(state.Command{
			Kind: "test", Expect: []state.Expectation{{Table: state.Tokens, ID: kept[i].Hash}}, Tokens: kept[i : i+1],
		})
	}
	for i, token := range []pki.Token{operator, agent, coordinator} {
		err := enrol(token, "new"+string(rune('3'+i)))
		wantRefusal(t, err, rpc.Denied, "token")
		if !strings.Contains(err.Error(), "operator/alice, who has made the token, was revoked") {
			t.Errorf("%v", err)
		}
	}
}

// A backup may be of a time at which clusters permitted more, and one that is not sealed may be anybody's. The key of an authority makes
// who has it a coordinator to the agents.
func TestARestoreAndAnAuthorityTakeAllPermissions(t *testing.T) {
	m := newCloud(t, 1).members[0]
	for permit, code := range map[string]string{guard.None: rpc.Denied, guard.Join(guard.Permissions()): rpc.Denied, guard.All: rpc.Invalid} {
		client := m.permitted("op-"+permit[:3], permit)
		stream := client.RestoreSnapshot(t.Context())
		_ = stream.Send(&berthv1.RestoreSnapshotRequest{Chunk: []byte("no backup"), Unproved: true}) // the answer tells
		_, err := stream.CloseAndReceive()
		wantRefusal(t, err, code, "snapshot")
		_, err = client.RotateAuthority(t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{
			CertificatePem: []byte("none"), KeyPem: []byte("none"),
		}))
		if rpc.Detail(err).GetCode() != code {
			t.Errorf("%s: an authority from outside: %v", permit, err)
		}
	}
}
