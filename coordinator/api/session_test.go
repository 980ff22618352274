package api

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/gate"
	"berth/coordinator/api/sessions"
	"berth/coordinator/identities"
	"berth/coordinator/model"
	"berth/coordinator/session"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const browser = "192.0.2.7:50000"

// desk is the desk of a member, as its console has it.
func (m *coordinator) desk() *sessions.Desk {
	return &sessions.Desk{
		Records: m.store, Now: m.now, ClusterID: clusterID, API: m.api.Handler(),
		Self: func() (pki.Bearer, error) { return m.cloud.bearer(m.files), nil },
	}
}

// bearer is who has the certificate in these files.
func (c *cloud) bearer(files pki.Files) pki.Bearer {
	text, err := os.ReadFile(files.Certificate)
	c.check(err)
	bearer, err := pki.BearerOfPEM(text)
	c.check(err)
	return bearer
}

// recorded speaks to this member as an operator whose key is on record.
func (m *coordinator) recorded(name string) berthv1connect.BerthServiceClient {
	files := m.cloud.certify(m.cloud.t.TempDir(), pki.RoleOperator, "id-"+name, name)
	command := state.Command{Kind: "test"}
	identities.Put(&command, identities.New(m.cloud.bearer(files), time.Now()))
	m.propose(command)
	return m.with(files)
}

// offered is the secret of a new link of an operator.
func offered(t *testing.T, client berthv1connect.BerthServiceClient, readOnly bool) (link string, made *berthv1.Session) {
	t.Helper()
	answer, err := client.OfferSession(t.Context(), connect.NewRequest(&berthv1.OfferSessionRequest{ReadOnly: readOnly}))
	if err != nil {
		t.Fatal(err)
	}
	at, link, found := strings.Cut(answer.Msg.GetAddress(), "/login/")
	if !found || at != "https://coord:7423" || answer.Msg.GetFingerprint() != "f1" {
		t.Fatalf("the link is %v", answer.Msg)
	}
	return link, answer.Msg.GetSession()
}

func TestALinkOpensOneSessionWithTheRightsOfItsOperator(t *testing.T) {
	m := newCloud(t, 1).members[0]
	alice := m.recorded("alice")
	d := m.desk()
	link, made := offered(t, alice, false)
	if _, known := d.Visitor(link, browser); known {
		t.Fatal("a link is a cookie")
	}
	cookie, until, err := d.Open(t.Context(), link, browser, "Firefox")
	if err != nil || time.Until(until) < session.Life-time.Minute {
		t.Fatalf("until %s, %v", until, err)
	}
	if _, _, err := d.Open(t.Context(), link, browser, "Firefox"); rpc.Detail(err).GetCode() != rpc.Denied {
		t.Errorf("a link is good twice: %v", err)
	}
	for _, wrong := range []string{"", "x", cookie + "A", made.GetId() + cookie[len(made.GetId()):len(cookie)-2] + "AA"} {
		if _, known := d.Visitor(wrong, browser); known {
			t.Errorf("the cookie %q lets somebody in", wrong)
		}
	}
	visitor, known := d.Visitor(cookie, browser)
	if !known || visitor.Operator != "alice" || visitor.Session.Role != session.Operate {
		t.Fatalf("got %+v, %t", visitor, known)
	}
	listed, err := visitor.API.ListSessions(t.Context(), connect.NewRequest(&berthv1.ListSessionsRequest{}))
	if err != nil || len(listed.Msg.GetSessions()) != 1 {
		t.Fatalf("got %v, %v", listed, err)
	}
	if one := listed.Msg.GetSessions()[0]; one.GetOperator() != "alice" || one.GetFrom() != "192.0.2.7" || one.GetBrowser() != "Firefox" ||
		one.GetOpenedAt() == nil {
		t.Errorf("it is listed as %v", one)
	}
	if _, err := visitor.API.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: "agent"})); err != nil {
		t.Errorf("an operator's session may not do what the operator may: %v", err)
	}
	if text := m.store.Snapshot().Events(100); len(text) == 0 || text[len(text)-1].Caller != "operator/alice" {
		t.Errorf("the history names somebody else: %+v", text)
	}
	var kept bytes.Buffer
	if err := m.store.Snapshot().Save(&kept); err != nil || strings.Contains(kept.String(), strings.SplitN(cookie, ".", 2)[1]) {
		t.Error("the records have the secret of a cookie")
	}
	if _, err := alice.RevokeSession(t.Context(), connect.NewRequest(&berthv1.RevokeSessionRequest{
		Id: made.GetId(), RequestId: "r",
	})); err != nil {
		t.Fatal(err)
	}
	if _, known := d.Visitor(cookie, browser); known {
		t.Error("a revoked session goes on")
	}
}

func TestAReadOnlySessionChangesNothingWhateverItAsks(t *testing.T) {
	m := newCloud(t, 1).members[0]
	d := m.desk()
	link, _ := offered(t, m.recorded("alice"), true)
	cookie, _, err := d.Open(t.Context(), link, browser, "")
	if err != nil {
		t.Fatal(err)
	}
	visitor, _ := d.Visitor(cookie, browser)
	if _, err := visitor.API.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{})); err != nil {
		t.Errorf("it cannot look: %v", err)
	}
	_, err = visitor.API.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: "operator"}))
	if rpc.Detail(err).GetCode() != rpc.Denied || len(m.store.Snapshot().Tokens()) != 0 {
		t.Errorf("it makes a token: %v", err)
	}
	if err := d.Close(t.Context(), cookie, browser); err != nil {
		t.Errorf("it cannot log out: %v", err)
	}
	if _, known := d.Visitor(cookie, browser); known {
		t.Error("it goes on after the logout")
	}
}

func TestSessionsEndWithTheirTimeAndWithTheirOperator(t *testing.T) {
	m := newCloud(t, 1).members[0]
	alice, d := m.recorded("alice"), m.desk()
	link, _ := offered(t, alice, false)
	cookie, _, err := d.Open(t.Context(), link, browser, "")
	if err != nil {
		t.Fatal(err)
	}
	late, _ := offered(t, alice, false)
	m.skew.Store(int64(session.LinkLife + time.Second))
	if _, _, err := d.Open(t.Context(), late, browser, ""); rpc.Detail(err).GetCode() != rpc.Denied {
		t.Errorf("a link outlives its minute: %v", err)
	}
	m.skew.Store(int64(session.Life + time.Minute))
	if _, known := d.Visitor(cookie, browser); known {
		t.Error("a session outlives its time")
	}
	m.skew.Store(0)
	visitor, known := d.Visitor(cookie, browser)
	if !known {
		t.Fatal("the session has ended")
	}
	if _, err := m.recorded("bob").RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{
		Identity: "operator/alice", RequestId: "r",
	})); err != nil {
		t.Fatal(err)
	}
	if _, known := d.Visitor(cookie, browser); known {
		t.Error("the session of a revoked operator goes on")
	}
	if _, err := visitor.API.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{})); rpc.Detail(err).GetCode() != rpc.Denied {
		t.Errorf("a page that was begun before still asks: %v", err)
	}
}

func TestAnOperatorHasOnlySoManySessions(t *testing.T) {
	m := newCloud(t, 1).members[0]
	alice := m.recorded("alice")
	for range session.MostOfOne {
		offered(t, alice, false)
	}
	_, err := alice.OfferSession(t.Context(), connect.NewRequest(&berthv1.OfferSessionRequest{}))
	if rpc.Detail(err).GetCode() != rpc.Busy {
		t.Errorf("got %v", err)
	}
	m.skew.Store(int64(2 * session.LinkLife))
	offered(t, alice, false)
	if all := m.store.Snapshot().Sessions(); len(all) != 1 {
		t.Errorf("%d sessions are kept that have ended", len(all)-1)
	}
}

// A call over the network cannot say that it comes from inside.
func TestOnlyTheProcessItselfSpeaksForAnOperator(t *testing.T) {
	m := newCloud(t, 1).members[0]
	m.recorded("alice")
	identity, _ := m.store.Snapshot().IdentityByName(model.IdentityOperator, "alice")
	who := pki.Bearer{Identity: pki.Identity{Role: pki.RoleOperator, ID: identity.ID, Name: "alice"}, Key: identity.Keys[0].Hash}
	client := berthv1connect.NewBerthServiceClient(m.cloud.as(gate.Anonymous, "", ""), m.url())
	_, err := client.ListSessions(rpc.As(t.Context(), who), connect.NewRequest(&berthv1.ListSessionsRequest{}))
	if connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Errorf("it is let in: %v", err)
	}
}
