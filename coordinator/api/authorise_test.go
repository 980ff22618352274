package api

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
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

// permitted says which roles may reach each procedure. It is kept apart from the traits, so that a wrong role on a method fails, and has no
// default, so that nobody adds a method without saying here who may call it.
var permitted = func() map[string][]pki.Role {
	all := map[string][]pki.Role{}
	for _, list := range []struct {
		service, methods string
		roles            []pki.Role
	}{
		{"EnrolmentService", "Enrol", []pki.Role{gate.Anonymous, pki.RoleOperator, pki.RoleAgent, pki.RolePeer}},
		// A browser shows its link (OpenSession) to a coordinator, and to nobody else.
		{"MemberService", "FetchHistory HandAuthorities Join OpenSession Report TakeAuthorities", []pki.Role{pki.RolePeer}},
		{"AgentService", "CertifyHypervisor Renew Session Tunnel", []pki.Role{pki.RoleAgent}},
		// A session is an operator's. Coordinators renew their own certificates, and replace no authority by themselves.
		{"BerthService", "OfferSession RenewCertificate RotateAuthority", []pki.Role{pki.RoleOperator}},
		{"BerthService", `
			AcceptDrift ActOnVMs AddResource AddVM AddWebhook AdoptVMs ApplyEstate ApplyPlan CancelOperation CancelPlan Capacity ChangeGroup
			ChangeResource ChangeVM CheckGroups CompiledKeys ConfirmIdentity Console CreateGroup CreateToken DeclareNodeKey DeleteGroup
			DeleteResource DeleteVM DeleteWebhook DiscardPlan DrainNode DropNodeKey ExportEstate FenceNode GetDecision GetGroup GetIdentity
			GetNode GetOperation GetPlan GetResource GetVM GetVMDocument GetWebhook GrowDisk ImportImage LastKnownNodes LastKnownVMs
			ListAuthorities ListDecisions ListGroups ListHistory ListIdentities ListKeys ListMembers ListNodes ListOperations ListPlans
			ListPools ListResources ListSessions ListTokens ListVMs ListWebhooks MigrateVM PauseHA Profile ProposePlan RebootVM ReleaseVM
			RemoveMember RemoveNode ReplayDecision ResolveOperation RestoreSnapshot RetryDeliveries RevertDrift RevokeIdentity RevokeSession
			RevokeToken SaveSnapshot SetIdentity SetKey SetNode SetNodeMaintenance SetVMDocument Spread StartVM StartVMs Status StopVM
			TestWebhook UndrainNode UnsetKey VMHistory WatchEvents WatchOperation WatchPlan WhyNot WhyNotStarted WhyVM
		`, []pki.Role{pki.RoleOperator, pki.RolePeer}},
	} {
		for _, method := range strings.Fields(list.methods) {
			all["/berth.v1."+list.service+"/"+method] = list.roles
		}
	}
	return all
}()

func TestEachProcedureIsPermittedByName(t *testing.T) {
	there := procedures()
	for _, procedure := range there {
		if permitted[procedure] == nil {
			t.Errorf("%s: add to this test who may call it", procedure)
		}
	}
	for procedure := range permitted {
		if !slices.Contains(there, procedure) {
			t.Errorf("%s is listed, and not in the protocol", procedure)
		}
	}
}

// Every role calls every procedure, and some that do not exist, with a real certificate.
func TestRolesReachOnlyWhatTheyMay(t *testing.T) {
	c, address := newGate(t)
	roles := []pki.Role{gate.Anonymous, pki.RoleOperator, pki.RoleAgent, pki.RolePeer}
	unknown := []string{"/berth.v1.BerthService/Unheard", "/", "/berth.v1.BerthService/Status/", "/berth.v1.BerthService/status"}
	all, calls, wrong := append(procedures(), unknown...), 0, 0
	for _, role := range roles {
		client := c.as(role, "id", "somebody")
		for _, procedure := range all {
			response, err := client.Post(address+procedure, "application/json", bytes.NewReader([]byte("{}")))
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			calls++
			reached := response.StatusCode == http.StatusTeapot
			if reached != slices.Contains(permitted[procedure], role) {
				wrong++
				t.Errorf("role %q, %s: reached %v, want %v (status %d)", role, procedure, reached, !reached, response.StatusCode)
			}
		}
	}
	verdict := "met"
	if wrong > 0 {
		verdict = "not met"
	}
	t.Logf("GOAL G17: %d calls, of %d procedures and %d that there are not in %d roles, %d not as the table says | wanted 0 | %s",
		calls, len(all)-len(unknown), len(unknown), len(roles), wrong, verdict)
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
