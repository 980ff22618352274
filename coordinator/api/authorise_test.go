package api

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"berth/coordinator/api/gate"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// procedures are all that the protocol has.
func procedures() (all []string) {
	rpc.RangeMethods(func(procedure string, _ protoreflect.MethodDescriptor) { all = append(all, procedure) })
	return all
}

// Every role calls every procedure, and some that do not exist, with a real certificate. The table in this test says what each
// may reach; it is kept apart from the traits, so that a wrong role on a method fails here.
func TestRolesReachOnlyWhatTheyMay(t *testing.T) {
	may := func(role pki.Role, procedure string) bool {
		switch procedure {
		case "/berth.v1.EnrolmentService/Enrol":
			return true
		case "/berth.v1.MemberService/Join", "/berth.v1.MemberService/Report", "/berth.v1.MemberService/TakeAuthorities",
			"/berth.v1.MemberService/FetchHistory", "/berth.v1.MemberService/HandAuthorities",
			"/berth.v1.MemberService/OpenSession": // a browser shows its link to a coordinator, and to nobody else
			return role == pki.RolePeer
		case "/berth.v1.AgentService/Session", "/berth.v1.AgentService/Tunnel", "/berth.v1.AgentService/CertifyHypervisor",
			"/berth.v1.AgentService/Renew":
			return role == pki.RoleAgent
		case "/berth.v1.BerthService/OfferSession", // a session is an operator's
			"/berth.v1.BerthService/RenewCertificate", // coordinators renew their own
			"/berth.v1.BerthService/RotateAuthority":  // and replace no authority by themselves
			return role == pki.RoleOperator
		case "/berth.v1.BerthService/Unheard", "/", "/berth.v1.BerthService/Status/", "/berth.v1.BerthService/status":
			return false
		default:
			return role == pki.RolePeer || role == pki.RoleOperator
		}
	}
	c, address := newGate(t)
	for _, role := range []pki.Role{gate.Anonymous, pki.RoleOperator, pki.RoleAgent, pki.RolePeer} {
		client := c.as(role, "id", "somebody")
		unknown := []string{"/berth.v1.BerthService/Unheard", "/", "/berth.v1.BerthService/Status/", "/berth.v1.BerthService/status"}
		for _, procedure := range append(procedures(), unknown...) {
			response, err := client.Post(address+procedure, "application/json", bytes.NewReader([]byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			reached := response.StatusCode == http.StatusTeapot
			if reached != may(role, procedure) {
				t.Errorf("role %q, %s: reached %v, want %v (status %d)", role, procedure, reached, !reached, response.StatusCode)
			}
		}
	}
}

// newGate serves Authorise alone, in front of something that answers 418.
func newGate(t *testing.T, members ...model.Member) (*cloud, string) {
	t.Helper()
	c := newAuthority(t)
	store := state.NewStore()
	if len(members) > 0 {
		store = storeWith(t, members...)
	}
	settings, err := pki.ServerConfig(c.certify(t.TempDir(), pki.RolePeer, "id", "server"), tls.VerifyClientCertIfGiven)
	c.check(err)
	keeper := gate.NewKeeper(store, time.Now)
	server := httptest.NewUnstartedServer(keeper.Authorise(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Caller", gate.CallerOf(r.Context()).String())
		if gate.CallerOf(r.Context()).Forwarded {
			w.Header().Set("Forwarded", "yes")
		}
		w.WriteHeader(http.StatusTeapot)
	})))
	server.EnableHTTP2 = true
	server.TLS = settings
	server.StartTLS()
	t.Cleanup(server.Close)
	return c, server.URL
}

// forwardedFor is the header by which a coordinator names the caller of a call that it forwards.
func forwardedFor(who pki.Identity) string {
	return url.Values{
		"role": {string(who.Role)}, "id": {who.ID}, "name": {who.Name}, "cluster": {clusterID}, "address": {"192.0.2.1"},
	}.Encode()
}

func TestOnlyCoordinatorsSpeakForOthers(t *testing.T) {
	c, address := newGate(t, model.Member{ID: "id-c1", Name: "c1"})
	original := forwardedFor(pki.Identity{Role: pki.RoleOperator, ID: "op1", Name: "alice"})
	call := func(client *http.Client, procedure, header string) *http.Response {
		request, err := http.NewRequest(http.MethodPost, address+procedure, bytes.NewReader([]byte("{}")))
		c.check(err)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Berth-Forwarded-For", header)
		response, err := client.Do(request)
		c.check(err)
		response.Body.Close()
		return response
	}
	status := berthv1connect.BerthServiceStatusProcedure

	peer := c.as(pki.RolePeer, "id-c1", "c1")
	if answer := call(
		peer, status, original,
	); answer.Header.Get("Caller") != "operator/alice" || answer.Header.Get("Forwarded") != "yes" {
		t.Errorf("a coordinator's word was not taken: status %d, caller %q", answer.StatusCode, answer.Header.Get("Caller"))
	}
	agent := forwardedFor(pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "n1"})
	if answer := call(peer, status, agent); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a forwarded agent got status %d: the role that counts is the original caller's", answer.StatusCode)
	}
	for _, broken := range []string{"nonsense", "role=operator", "%zz", "address=192.0.2.1"} {
		if answer := call(peer, status, broken); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("header %q from a coordinator got status %d, want it refused", broken, answer.StatusCode)
		}
	}

	asPeer := forwardedFor(pki.Identity{Role: pki.RolePeer, ID: "id-c1", Name: "c1"})
	mallory := c.as(pki.RoleOperator, "op2", "mallory")
	if answer := call(mallory, berthv1connect.MemberServiceJoinProcedure, asPeer); answer.StatusCode != http.StatusForbidden {
		t.Errorf("an operator became a coordinator by a header: status %d", answer.StatusCode)
	}
	if answer := call(
		mallory, status, original,
	); answer.Header.Get("Caller") != "operator/mallory" || answer.Header.Get("Forwarded") != "" {
		t.Errorf("an operator spoke for %q", answer.Header.Get("Caller"))
	}
	if answer := call(c.as(gate.Anonymous, "", ""), status, original); answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody became an operator by a header: status %d", answer.StatusCode)
	}
	if answer := call(c.as(pki.RolePeer, "id-gone", "gone"), status, original); answer.StatusCode != http.StatusForbidden {
		t.Errorf("a removed coordinator spoke for others: status %d", answer.StatusCode)
	}
}

func TestRefusalsSayWhatToDo(t *testing.T) {
	c, address := newGate(t, model.Member{ID: "id-c1", Name: "c1"})
	status := func(client *http.Client) error {
		_, err := berthv1connect.NewBerthServiceClient(client, address).Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
		return err
	}
	err := status(c.as(gate.Anonymous, "", ""))
	if connect.CodeOf(err) != connect.CodeUnauthenticated || rpc.Detail(err).GetCode() != rpc.Denied || rpc.Detail(err).GetNextStep() == "" {
		t.Errorf("without a certificate: %v", err)
	}
	wantRefusal(t, status(c.as(pki.RoleAgent, "n1", "n1")), rpc.Denied, "node/n1") // it is not on record
	wantRefusal(t, status(c.as(pki.RolePeer, "id-gone", "gone")), rpc.Denied, "coordinator/gone")
}

// newAuthority is a cloud without members.
func newAuthority(t *testing.T) *cloud {
	t.Helper()
	authority, err := pki.NewAuthority(clusterID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return &cloud{t: t, authority: authority}
}
