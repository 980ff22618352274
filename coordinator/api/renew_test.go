package api

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func renewed(t *testing.T, certificate []byte) pki.Bearer {
	t.Helper()
	who, err := pki.BearerOfPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	return who
}

// Somebody renews his own certificate: name and ID come from the record, the key is the one that the call was made with.
func TestACertificateIsRenewedForItsOwnKeyOnly(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	files := c.certify(t.TempDir(), pki.RoleOperator, "op7", "alice")
	alice := bearerOf(t, files)
	m.beginRecords(alice)
	client := m.with(files)
	pair, err := pki.LoadPair(files)
	c.check(err)
	request, err := pair.Request()
	c.check(err)
	answer, err := client.RenewCertificate(t.Context(), connect.NewRequest(&berthv1.RenewCertificateRequest{}))
	if err != nil || len(answer.Msg.GetCertificatePem()) > 0 || answer.Msg.GetAuthority() != c.authority.ID() {
		t.Errorf("asked what is trusted, it answers %v, %v", answer, err)
	}
	answer, err = client.RenewCertificate(t.Context(), connect.NewRequest(&berthv1.RenewCertificateRequest{CsrPem: request}))
	c.check(err)
	who := renewed(t, answer.Msg.GetCertificatePem())
	if who.Identity != alice.Identity || who.Key != alice.Key || who.Until.Before(alice.Until) {
		t.Errorf("renewed as %+v, was %+v", who, alice)
	}
	c.check(pair.Check(answer.Msg.GetCertificatePem(), answer.Msg.GetCaPem()))
	identity, _ := m.store.Snapshot().Identity("op7")
	if len(identity.Keys) != 1 || !identity.ValidUntil().Equal(who.Until) {
		t.Errorf("on record is %+v", identity.Keys)
	}

	another, _, err := pki.NewRequest("alice")
	c.check(err)
	for what, text := range map[string][]byte{"another key": another, "no request": []byte("x"), "a huge one": make([]byte, 1<<14)} {
		_, err := client.RenewCertificate(t.Context(), connect.NewRequest(&berthv1.RenewCertificateRequest{CsrPem: text}))
		if err == nil {
			t.Errorf("%s is signed", what)
		}
		if what == "another key" {
			wantRefusal(t, err, rpc.Denied, "identity/alice")
		}
	}
	bob := c.certify(t.TempDir(), pki.RoleOperator, "op8", "bob") // unrecorded, and never let in
	_, err = m.with(bob).RenewCertificate(t.Context(), connect.NewRequest(&berthv1.RenewCertificateRequest{CsrPem: request}))
	if err == nil {
		t.Error("somebody renews another's certificate")
	}
}

// A certificate by a release that does not renew is good for years; one that is renewed is good for a month.
func TestWhoDoesNotRenewGetsALongCertificate(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	for renews, want := range map[bool]time.Duration{true: pki.CertificateLife, false: pki.UnrenewedLife} {
		request := agentRequest(c, "hv", m.token(&berthv1.CreateTokenRequest{Purpose: "agent"}), 1)
		request.Renews = renews
		if renews {
			request.Name, request.HostUuid, request.MachineId = "hv2", "00000000-0000-4000-8000-000000000002", "machine-2"
		}
		answer, err := m.stranger().Enrol(t.Context(), connect.NewRequest(request))
		c.check(err)
		until := renewed(t, answer.Msg.GetCertificatePem()).Until
		if left := time.Until(until); left > want || left < want-time.Hour {
			t.Errorf("renews %v: good for %s, want %s", renews, left, want)
		}
	}
}

// A host was off until its certificate had ended. A token lets it come back as the node that it was, with its VMs; nobody else.
func TestANodeWhoseCertificateHasEndedComesBackWithAToken(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	m.beginRecords()
	join := func(change func(*berthv1.EnrolRequest)) (*berthv1.EnrolResponse, error) {
		request := agentRequest(c, "hv1", m.token(&berthv1.CreateTokenRequest{Purpose: "agent"}), 1)
		request.Renews = true
		change(request)
		answer, err := m.stranger().Enrol(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	same := func(*berthv1.EnrolRequest) {}
	first, err := join(same)
	c.check(err)
	before, _ := m.store.Snapshot().Node(first.GetId())
	_, err = join(same)
	wantRefusal(t, err, rpc.Exists, "node/hv1")

	m.skew.Add(int64(31 * 24 * time.Hour))
	status, err := m.operator().Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	c.check(err)
	if problems := strings.Join(status.Msg.GetProblems(), "\n"); !strings.Contains(problems, "the certificate of node/hv1 ended at") ||
		!strings.Contains(problems, "berth token add --for agent --name hv1") {
		t.Errorf("the problems are %s", problems)
	}
	_, err = join(func(r *berthv1.EnrolRequest) { r.HostUuid = "00000000-0000-4000-8000-000000000007" })
	wantRefusal(t, err, rpc.Exists, "node/hv1")
	_, err = join(func(r *berthv1.EnrolRequest) { r.MachineId = "other" })
	wantRefusal(t, err, rpc.Exists, "node/hv1")
	again, err := join(same)
	c.check(err)
	node, _ := m.store.Snapshot().Node(first.GetId())
	if again.GetId() != first.GetId() || node.Revision != before.Revision || len(m.store.Snapshot().Nodes()) != 1 {
		t.Errorf("it is %s now and was %s; nodes %+v", again.GetId(), first.GetId(), m.store.Snapshot().Nodes())
	}
	identity, _ := m.store.Snapshot().Identity(first.GetId())
	if key := renewed(t, again.GetCertificatePem()).Key; len(identity.Keys) != 1 || identity.Keys[0].Hash != key {
		t.Errorf("on record is %+v, want %s", identity.Keys, key)
	}
}

// An operator whose certificate has ended logs in again under the same name, with a token and nothing else.
func TestAnOperatorWhoseCertificateHasEndedKeepsTheName(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	m.beginRecords()
	login := func() (*berthv1.EnrolResponse, error) {
		answer, err := m.stranger().Enrol(t.Context(), connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: m.token(&berthv1.CreateTokenRequest{Purpose: "operator"}), Name: "carol", CsrPem: c.request("carol"), Renews: true,
		}))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	first, err := login()
	c.check(err)
	_, err = login()
	wantRefusal(t, err, rpc.Exists, "operator/carol")
	m.skew.Add(int64(31 * 24 * time.Hour))
	second, err := login()
	c.check(err)
	before, _ := m.store.Snapshot().Identity(first.GetId())
	now, _ := m.store.Snapshot().IdentityByName(model.IdentityOperator, "carol")
	if before.Live() || !strings.Contains(before.Revoked.Reason, "ended") || now.ID != second.GetId() {
		t.Errorf("the old one is %+v, and now carol is %+v", before, now)
	}
}

// What should have been renewed is told before it ends, and the status always says what ends first.
func TestTheStatusSaysWhichCertificateEndsFirst(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	m.beginRecords()
	for i, name := range []string{"hv1", "hv2"} {
		request := agentRequest(c, name, m.token(&berthv1.CreateTokenRequest{Purpose: "agent"}), i+1)
		request.Renews = i == 0
		_, err := m.stranger().Enrol(t.Context(), connect.NewRequest(request))
		c.check(err)
	}
	status := func() *berthv1.StatusResponse {
		answer, err := m.operator().Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		c.check(err)
		return answer.Msg
	}
	identity, _ := m.store.Snapshot().IdentityByName(model.IdentityNode, "hv1")
	is := status()
	if is.GetCertificatesFirst() != "node/hv1" || !is.GetCertificatesUntil().AsTime().Equal(identity.ValidUntil()) {
		t.Errorf("first ends %s at %s", is.GetCertificatesFirst(), is.GetCertificatesUntil().AsTime())
	}
	late := func() bool {
		return strings.Contains(strings.Join(status().GetProblems(), "\n"), "node/hv1 should have been renewed")
	}
	m.skew.Add(int64(20 * 24 * time.Hour))
	if late() {
		t.Error("one with a third of its life left is a problem")
	}
	m.skew.Add(int64(2 * 24 * time.Hour))
	if !late() {
		t.Error("one that ends in eight days is no problem")
	}
}
