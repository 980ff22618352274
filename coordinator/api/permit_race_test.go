package api

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/shared/domxml/guard"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// takenFirst has an operator lose what it has between the moment in which its change was made and the entry of that change.
func (m *coordinator) takenFirst(kind, name, left string) {
	m.log.kind, m.log.before = kind, func() {
		identity, known := m.store.Snapshot().IdentityByName(model.IdentityOperator, name)
		if !known {
			m.cloud.t.Fatalf("%s is not on record", name)
		}
		if identity.Permit = left; left == "" {
			identity = identity.Revoke(m.now(), "operator/admin", "left")
		}
		command := state.Command{Kind: "take"}
		identities.Put(&command, identity)
		m.propose(command)
	}
}

// happened tells that the entry was there for which something was to be done first.
func (m *coordinator) happened() {
	m.cloud.t.Helper()
	if m.log.before != nil {
		m.cloud.t.Fatalf("nothing wrote a %q", m.log.kind)
	}
}

// What is taken from an operator while it gives that on is not given: the entry with which it is taken is the earlier one.
func TestWhatIsTakenWhileItIsGivenOnIsNotGiven(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	m.beginRecords(c.bearer(c.certify(t.TempDir(), pki.RoleOperator, "op9", "founder")))
	token := func(by, permit, purpose string) (pki.Token, error) {
		made, err := m.permitted(by, permit).CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{
			Purpose: purpose, Permit: map[string]string{"operator": permit}[purpose],
		}))
		if err != nil {
			return pki.Token{}, err
		}
		return pki.ParseToken(made.Msg.GetToken())
	}
	enrol := func(token pki.Token, name string) (*berthv1.EnrolResponse, error) {
		let, err := m.stranger().Enrol(t.Context(), connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: token.Secret, Name: name, CsrPem: c.request(name), RaftAddress: "127.0.0.1:1", ApiAddress: "127.0.0.1:2",
			AgentAddress: "127.0.0.1:3", HostUuid: "4c4c4544-0000-1000-8000-000000000001", MachineId: name,
		}))
		if err != nil {
			return nil, err
		}
		return let.Msg, nil
	}
	denied := func(what string, err error) {
		t.Helper()
		if m.happened(); rpc.Detail(err).GetCode() != rpc.Denied {
			t.Errorf("%s: %v", what, err)
		}
	}
	permit := func(name string) string {
		identity, _ := m.store.Snapshot().IdentityByName(model.IdentityOperator, name)
		return identity.Permit
	}

	m.permitted("bob", guard.None)
	carol := m.permitted("carol", "host-devices")
	m.takenFirst("set identity", "carol", guard.None)
	denied("a permission", setIdentity(t, carol, "bob", "host-devices"))
	if permit("bob") != guard.None {
		t.Errorf("bob has %s", permit("bob"))
	}

	waiting := identities.New(pki.Bearer{Identity: pki.Identity{Role: pki.RoleOperator, ID: "id-old", Name: "old"}, Key: "k"}, m.now())
	waiting.Unconfirmed, waiting.Permit = "restored", "host-devices"
	var command state.Command
	command.Kind = "test"
	identities.Put(&command, waiting)
	m.propose(command)
	dora := m.permitted("dora", "host-devices")
	m.takenFirst("confirm identity", "dora", guard.None)
	_, err := dora.ConfirmIdentity(t.Context(), connect.NewRequest(&berthv1.ConfirmIdentityRequest{
		Identity: "old", RequestId: answer.NewID(m.now()),
	}))
	denied("a confirmation", err)

	m.takenFirst("create token", "erin", guard.None)
	_, err = token("erin", "host-devices", "operator")
	denied("a token", err)
	m.takenFirst("create token", "frank", "host-devices")
	_, err = token("frank", guard.All, "coordinator")
	denied("a token for a coordinator", err)
	if left := m.store.Snapshot().Tokens(); len(left) > 0 {
		t.Errorf("tokens are left: %+v", left)
	}

	// A token was made in time, and its maker loses all while somebody is let in by it.
	made, err := token("gina", "host-devices,host-paths", "operator")
	c.check(err)
	m.takenFirst("enrol operator", "gina", "host-paths")
	_, err = enrol(made, "new1")
	c.check(err)
	if m.happened(); permit("new1") != "host-paths" {
		t.Errorf("who was let in has %s", permit("new1"))
	}
	made, err = token("hugo", guard.All, "coordinator")
	c.check(err)
	m.takenFirst("enrol coordinator", "hugo", "host-paths")
	_, err = enrol(made, "new2")
	denied("a coordinator", err)
	for _, purpose := range []string{"operator", "agent"} {
		maker := "maker-" + purpose
		made, err = token(maker, guard.All, purpose)
		c.check(err)
		m.takenFirst("enrol "+purpose, maker, "")
		_, err = enrol(made, "new3")
		denied("one of "+purpose, err)
	}
	for _, identity := range m.store.Snapshot().Identities() {
		if slices.Contains([]string{"new2", "new3"}, identity.Name) {
			t.Errorf("let in is %+v", identity)
		}
	}
}

// What changes of somebody else in that moment keeps nobody from giving.
func TestWhatChangesOfOthersKeepsNobodyFromGiving(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.permitted("bob", guard.None)
	m.permitted("dave", "host-devices")
	carol := m.permitted("carol", "host-devices")
	m.takenFirst("set identity", "dave", guard.None)
	m.cloud.check(setIdentity(t, carol, "bob", "host-devices"))
	m.happened()
	if bob, _ := m.store.Snapshot().IdentityByName(model.IdentityOperator, "bob"); bob.Permit != "host-devices" {
		t.Errorf("bob has %s", bob.Permit)
	}
}

// An authority from outside is imported by one who has all permissions when that is written down.
func TestAnAuthorityIsNotImportedByOneWhoLosesAllMeanwhile(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.beginRecords(m.cloud.bearer(m.cloud.certify(t.TempDir(), pki.RoleOperator, "op9", "founder")))
	outside, err := pki.NewAuthority(clusterID, m.now())
	m.cloud.check(err)
	key, err := outside.KeyPEM()
	m.cloud.check(err)
	client := m.permitted("alice", guard.All)
	m.takenFirst("announce authority", "alice", guard.Join(guard.Permissions()))
	_, err = client.RotateAuthority(t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{
		CertificatePem: outside.CertificatePEM(), KeyPem: key,
	}))
	m.happened()
	wantRefusal(t, err, rpc.Denied, "authority")
}

// Replacing an authority gives its key to nobody, makes nobody, and shuts out nobody whom every operator could not revoke by name. So it
// takes no permission; the history says who did it. An authority from outside is another thing: who brings it has its key.
func TestAnAuthorityIsReplacedByAnOperatorWithoutPermissions(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.beginRecords(m.cloud.bearer(m.cloud.certify(t.TempDir(), pki.RoleOperator, "op9", "founder")))
	client := m.permitted("bob", guard.None)
	rotate := func(request *berthv1.RotateAuthorityRequest) {
		t.Helper()
		told, err := client.RotateAuthority(t.Context(), connect.NewRequest(request))
		m.cloud.check(err)
		if text := told.Msg.String(); strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("%+v is answered with a key", request)
		}
	}
	before := m.store.Snapshot().Identities()
	rotate(&berthv1.RotateAuthorityRequest{DryRun: true})
	rotate(&berthv1.RotateAuthorityRequest{})
	rotate(&berthv1.RotateAuthorityRequest{Cancel: true})
	rotate(&berthv1.RotateAuthorityRequest{})
	rotate(&berthv1.RotateAuthorityRequest{Force: true})
	x := m.store.Snapshot()
	if got := x.Identities(); len(got) != len(before) {
		t.Errorf("there were %d identities, and are %d", len(before), len(got))
	}
	for _, was := range before {
		if is, _ := x.Identity(was.ID); is.Permit != was.Permit || is.Live() != was.Live() || len(is.Keys) != len(was.Keys) {
			t.Errorf("%+v became %+v", was, is)
		}
	}
	for _, event := range x.Events(4) {
		if !strings.HasPrefix(event.Kind, "authority.") || event.Caller != "operator/bob" || event.CallerID != "id-bob" {
			t.Errorf("the history has %+v", event)
		}
	}
	for _, meta := range []string{state.MetaAuthorities, state.MetaHypervisors} {
		if strings.Contains(x.Meta(meta), "PRIVATE KEY") {
			t.Errorf("%s has a key", meta)
		}
	}
	_, err := client.RotateAuthority(t.Context(), connect.NewRequest(&berthv1.RotateAuthorityRequest{
		CertificatePem: m.cloud.authority.CertificatePEM(), KeyPem: []byte("none"),
	}))
	wantRefusal(t, err, rpc.Denied, "authority")
}
