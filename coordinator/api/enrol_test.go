package api

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/api/members"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// token makes a token and returns its secret.
func (m *coordinator) token(request *berthv1.CreateTokenRequest) string {
	m.cloud.t.Helper()
	answer, err := m.operator().CreateToken(m.cloud.t.Context(), connect.NewRequest(request))
	m.cloud.check(err)
	token, err := pki.ParseToken(answer.Msg.GetToken())
	m.cloud.check(err)
	return token.Secret
}

func (c *cloud) request(name string) []byte {
	c.t.Helper()
	request, _, err := pki.NewRequest(name)
	c.check(err)
	return request
}

func agentRequest(c *cloud, name, secret string, number int) *berthv1.EnrolRequest {
	return &berthv1.EnrolRequest{
		TokenSecret: secret, Name: name, CsrPem: c.request(name),
		HostUuid: fmt.Sprintf("00000000-0000-4000-8000-%012d", number), MachineId: fmt.Sprintf("machine-%d", number),
		Addresses: []string{"evil.example.com"},
	}
}

func TestEnrolAgent(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	stranger := m.stranger()
	enrol := func(request *berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
		answer, err := stranger.Enrol(t.Context(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	// Every refusal here counts as a failed try.
	lull := func() { m.skew.Add(int64(5 * time.Minute)) }
	token := func() string { return m.token(&berthv1.CreateTokenRequest{Purpose: "agent"}) }

	first := agentRequest(c, "hv1", token(), 1)
	answer, err := enrol(first)
	if err != nil {
		t.Fatal(err)
	}
	node, known := m.store.Snapshot().Node(answer.GetId())
	if !known || node.Name != "hv1" || node.HostUUID != first.GetHostUuid() || node.MachineID != "machine-1" ||
		node.Cluster != model.DefaultCluster {
		t.Errorf("recorded %+v", node)
	}
	if answer.CaKeyPem != nil {
		t.Error("an agent got the authority's key")
	}
	if answer.GetClusterId() != clusterID || !slices.Equal(answer.GetAgentAddresses(), []string{m.record.AgentAddress}) {
		t.Errorf("answered %v", answer)
	}
	certificate := parse(t, answer.GetCertificatePem())
	identity, err := pki.IdentityOf(certificate)
	if err != nil || identity != (pki.Identity{Role: pki.RoleAgent, ID: answer.GetId(), Name: "hv1", ClusterID: clusterID}) {
		t.Errorf("the certificate is for %+v, %v", identity, err)
	}
	if len(certificate.DNSNames)+len(certificate.IPAddresses) > 0 {
		t.Errorf("an agent's certificate is good for a server: %v", certificate.DNSNames)
	}

	t.Run("a used token", func(t *testing.T) {
		lull()
		_, err := enrol(agentRequest(c, "hv2", first.GetTokenSecret(), 2))
		wantRefusal(t, err, rpc.Denied, "token")
	})
	t.Run("a wrong token", func(t *testing.T) {
		lull()
		_, err := enrol(agentRequest(c, "hv2", "guessed", 2))
		wantRefusal(t, err, rpc.Denied, "token")
	})
	t.Run("an expired token", func(t *testing.T) {
		lull()
		secret := m.token(&berthv1.CreateTokenRequest{Purpose: "agent", TtlSeconds: 60})
		m.skew.Add(int64(61 * time.Second))
		_, err := enrol(agentRequest(c, "hv2", secret, 2))
		wantRefusal(t, err, rpc.Denied, "token")
		if !strings.Contains(err.Error(), "expired") {
			t.Errorf("refused as %v", err)
		}
	})
	t.Run("a token for another name", func(t *testing.T) {
		lull()
		secret := m.token(&berthv1.CreateTokenRequest{Purpose: "agent", Name: "hv3"})
		_, err := enrol(agentRequest(c, "hv2", secret, 2))
		wantRefusal(t, err, rpc.Denied, "token")
		if _, err := enrol(agentRequest(c, "hv3", secret, 3)); err != nil {
			t.Errorf("under the right name: %v", err)
		}
	})
	t.Run("a token for several uses and names of a pattern", func(t *testing.T) {
		lull()
		secret := m.token(&berthv1.CreateTokenRequest{Purpose: "agent", Name: "row-*", Uses: 3})
		_, err := enrol(agentRequest(c, "hv30", secret, 30))
		wantRefusal(t, err, rpc.Denied, "token")
		for i := range 3 {
			if _, err := enrol(agentRequest(c, fmt.Sprintf("row-%d", i), secret, 30+i)); err != nil {
				t.Errorf("use %d: %v", i+1, err)
			}
		}
		_, err = enrol(agentRequest(c, "row-3", secret, 33))
		wantRefusal(t, err, rpc.Denied, "token")
		list, err := m.operator().ListTokens(t.Context(), connect.NewRequest(&berthv1.ListTokensRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, token := range list.Msg.GetTokens() {
			if token.GetName() == "row-*" {
				found = true
				if token.GetUses() != 3 || token.GetUsesLeft() != 0 || !slices.Equal(token.GetUsedBy(), []string{"row-0", "row-1", "row-2"}) {
					t.Errorf("listed as %v", token)
				}
			}
		}
		if !found {
			t.Errorf("it is not listed: %v", list.Msg.GetTokens())
		}
	})
	t.Run("many uses at once", func(t *testing.T) {
		lull()
		const uses, tries = 3, 5 // as many wrong ones as an address may have in a minute at most
		secret := m.token(&berthv1.CreateTokenRequest{Purpose: "agent", Uses: uses})
		var group sync.WaitGroup
		var in atomic.Int32
		for i := range tries {
			request := agentRequest(c, fmt.Sprintf("once-%d", i), secret, 50+i)
			group.Go(func() {
				if _, err := enrol(request); err == nil {
					in.Add(1)
				}
			})
		}
		group.Wait()
		if in.Load() != uses {
			t.Errorf("%d came in with a token for %d", in.Load(), uses)
		}
	})
	t.Run("what is there already", func(t *testing.T) {
		lull()
		secret := token()
		name := agentRequest(c, "hv1", secret, 9)
		_, err := enrol(name)
		wantRefusal(t, err, rpc.Exists, "node/hv1")
		host := agentRequest(c, "hv9", secret, 9)
		host.HostUuid = strings.ToUpper(first.GetHostUuid())
		_, err = enrol(host)
		wantRefusal(t, err, rpc.Conflict, "node/hv1")
		machine := agentRequest(c, "hv9", secret, 9)
		machine.MachineId = first.GetMachineId()
		_, err = enrol(machine)
		wantRefusal(t, err, rpc.Conflict, "node/hv1")
		if _, err := enrol(agentRequest(c, "hv9", secret, 9)); err != nil {
			t.Errorf("refusals used the token up: %v", err)
		}
	})
	t.Run("what makes no sense costs no token", func(t *testing.T) {
		lull()
		secret := token()
		for what, spoil := range map[string]func(*berthv1.EnrolRequest){
			"name":     func(r *berthv1.EnrolRequest) { r.Name = "a b" },
			"UUID":     func(r *berthv1.EnrolRequest) { r.HostUuid = "" },
			"request":  func(r *berthv1.EnrolRequest) { r.CsrPem = []byte("nonsense") },
			"too long": func(r *berthv1.EnrolRequest) { r.CsrPem = make([]byte, members.MaxRequest+1) },
		} {
			request := agentRequest(c, "hv7", secret, 7)
			spoil(request)
			_, err := enrol(request)
			if rpc.Detail(err).GetCode() != rpc.Invalid {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := enrol(agentRequest(c, "hv7", secret, 7)); err != nil {
			t.Errorf("the token was used up: %v", err)
		}
	})
	t.Run("the same machine after it was removed", func(t *testing.T) {
		lull()
		if _, err := m.operator().RemoveNode(t.Context(), connect.NewRequest(&berthv1.RemoveNodeRequest{Node: "hv1"})); err != nil {
			t.Fatal(err)
		}
		again, err := enrol(agentRequest(c, "hv1", token(), 1))
		if err != nil {
			t.Fatal(err)
		}
		if again.GetId() == answer.GetId() {
			t.Error("a node ID came back: the old certificate is good again")
		}
	})
	t.Run("guessing", func(t *testing.T) {
		lull()
		secret := token()
		for range members.TriesPerMinute {
			_, err := enrol(agentRequest(c, "hv8", "guessed", 8))
			wantRefusal(t, err, rpc.Denied, "token")
		}
		_, err := enrol(agentRequest(c, "hv8", secret, 8))
		if connect.CodeOf(err) != connect.CodeResourceExhausted || rpc.Detail(err).GetNextStep() == "" {
			t.Errorf("the sixth try in a minute: %v", err)
		}
		m.skew.Add(int64(time.Minute))
		if _, err := enrol(agentRequest(c, "hv8", secret, 8)); err != nil {
			t.Errorf("a minute later: %v", err)
		}
	})
	t.Run("many good ones from one address", func(t *testing.T) {
		lull()
		for i := range 2 * members.TriesPerMinute {
			if _, err := enrol(agentRequest(c, fmt.Sprintf("rack-%d", i), token(), 100+i)); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("a revoked token", func(t *testing.T) {
		lull()
		secret := m.token(&berthv1.CreateTokenRequest{Purpose: "agent", Name: "late-*", Uses: 3})
		if _, err := enrol(agentRequest(c, "late-1", secret, 60)); err != nil {
			t.Fatal(err)
		}
		backup := save(t, m)
		list, err := m.operator().ListTokens(t.Context(), connect.NewRequest(&berthv1.ListTokensRequest{}))
		c.check(err)
		at := slices.IndexFunc(list.Msg.GetTokens(), func(k *berthv1.Token) bool { return k.GetName() == "late-*" })
		id := list.Msg.GetTokens()[at].GetId()
		answer, err := m.operator().RevokeToken(t.Context(), connect.NewRequest(&berthv1.RevokeTokenRequest{Id: id, RequestId: "revoke"}))
		if err != nil || answer.Msg.GetToken().GetUsesLeft() != 2 || answer.Msg.GetToken().GetName() != "late-*" {
			t.Errorf("revoked is %v, %v", answer, err)
		}
		_, err = enrol(agentRequest(c, "late-2", secret, 61))
		wantRefusal(t, err, rpc.Denied, "token")
		_, err = m.operator().RevokeToken(t.Context(), connect.NewRequest(&berthv1.RevokeTokenRequest{Id: id, RequestId: "again"}))
		wantRefusal(t, err, rpc.NotFound, "token/"+id)
		if _, known := m.store.Snapshot().NodeByName("late-1"); !known {
			t.Error("who came in before is gone")
		}
		if _, err := restore(t, m, backup, members.ChunkSize); err != nil {
			t.Fatal(err)
		}
		_, err = enrol(agentRequest(c, "late-2", secret, 61))
		wantRefusal(t, err, rpc.Denied, "token")
	})
}

func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil {
		t.Fatalf("no certificate: %q", text)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestEnrolCoordinatorAndOperator(t *testing.T) {
	c := newCloud(t, 1)
	m := c.members[0]
	stranger := m.stranger()
	coordinatorRequest := func(name, secret string) *berthv1.EnrolRequest {
		return &berthv1.EnrolRequest{
			TokenSecret: secret, Name: name, CsrPem: c.request(name), Addresses: []string{"127.0.0.1"},
			ApiAddress: name + ":7420", AgentAddress: name + ":7421", RaftAddress: name + ":7422",
		}
	}
	enrol := func(request *berthv1.EnrolRequest) (*berthv1.EnrolResponse, error) {
		answer, err := stranger.Enrol(context.Background(), connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}

	answer, err := enrol(coordinatorRequest("c2", m.token(&berthv1.CreateTokenRequest{Purpose: "coordinator"})))
	if err != nil {
		t.Fatal(err)
	}
	member, known := m.store.Snapshot().Member(answer.GetId())
	if !known || member.Name != "c2" || member.APIAddress != "c2:7420" || member.RaftAddress != "c2:7422" {
		t.Errorf("recorded %+v", member)
	}
	if _, err := pki.LoadAuthority(answer.GetCaPem(), answer.GetCaKeyPem()); err != nil {
		t.Errorf("a coordinator cannot sign: %v", err)
	}
	if certificate := parse(t, answer.GetCertificatePem()); !slices.Contains(certificate.DNSNames, "c2") || len(certificate.IPAddresses) != 1 {
		t.Errorf("the certificate is for %v and %v", certificate.DNSNames, certificate.IPAddresses)
	}
	if !slices.Contains(answer.GetApiAddresses(), m.record.APIAddress) || len(answer.GetApiAddresses()) != 2 {
		t.Errorf("it was told of %v", answer.GetApiAddresses())
	}

	secret := m.token(&berthv1.CreateTokenRequest{Purpose: "coordinator"})
	_, err = enrol(coordinatorRequest("c2", secret))
	wantRefusal(t, err, rpc.Exists, "coordinator/c2")
	same := coordinatorRequest("c3", secret)
	same.RaftAddress = "c2:7422"
	_, err = enrol(same)
	wantRefusal(t, err, rpc.Conflict, "coordinator/c2")
	portless := coordinatorRequest("c3", secret)
	portless.RaftAddress = "c3"
	_, err = enrol(portless)
	wantRefusal(t, err, rpc.Invalid, "enrolment/c3")
	odd := coordinatorRequest("c3", secret)
	odd.Addresses = []string{"*.example.com"}
	_, err = enrol(odd)
	wantRefusal(t, err, rpc.Invalid, "enrolment/c3")

	answer, err = enrol(&berthv1.EnrolRequest{
		TokenSecret: m.token(&berthv1.CreateTokenRequest{Purpose: "operator", Name: "bob"}), Name: "bob", CsrPem: c.request("bob"),
	})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := pki.IdentityOf(parse(t, answer.GetCertificatePem()))
	if err != nil || identity.Role != pki.RoleOperator || identity.Name != "bob" || answer.CaKeyPem != nil {
		t.Errorf("bob is %+v (%v), and got a key: %v", identity, err, answer.CaKeyPem != nil)
	}
}

func TestCreateToken(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client := m.operator()
	for name, request := range map[string]*berthv1.CreateTokenRequest{
		"for nothing":          {},
		"for a tenant":         {Purpose: "tenant"},
		"for a day":            {Purpose: "agent", TtlSeconds: 86400},
		"of negative life":     {Purpose: "agent", TtlSeconds: -5},
		"for a broken name":    {Purpose: "agent", Name: "a/b"},
		"for a broken pattern": {Purpose: "agent", Name: "a/*"},
		"for no uses":          {Purpose: "agent", Uses: -1},
		"for too many uses":    {Purpose: "agent", Uses: model.MaxTokenUses + 1},
		"for one name often":   {Purpose: "agent", Name: "hv1", Uses: 2},
	} {
		_, err := client.CreateToken(t.Context(), connect.NewRequest(request))
		if rpc.Detail(err).GetCode() != rpc.Invalid {
			t.Errorf("a token %s: %v", name, err)
		}
	}
	for purpose, line := range map[string]string{
		"agent": "berth-agent join", "coordinator": "berth coordinator join", "operator": "berth login",
	} {
		answer, err := client.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose, TtlSeconds: 120}))
		if err != nil {
			t.Fatal(err)
		}
		if want := "echo " + answer.Msg.GetToken() + " | " + line + " " + m.record.APIAddress + " -"; answer.Msg.GetCommand() != want {
			t.Errorf("the line is %q, want %q", answer.Msg.GetCommand(), want)
		}
		if life := time.Until(answer.Msg.GetExpiresAt().AsTime()); life > 120*time.Second || life < 110*time.Second {
			t.Errorf("it lives for %s", life)
		}
		for _, token := range m.store.Snapshot().Tokens() {
			if strings.Contains(answer.Msg.GetToken(), token.Hash) {
				t.Error("the token can be read from the state")
			}
		}
	}
	named, err := client.CreateToken(t.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{
		Purpose: "operator", Name: "alice", TtlSeconds: 120,
	}))
	if err != nil || !strings.HasSuffix(named.Msg.GetCommand(), " - --name alice") {
		t.Errorf("the line for alice is %q (%v)", named.Msg.GetCommand(), err)
	}
	before := len(m.store.Snapshot().Tokens())
	m.skew.Add(int64(members.TokensKept + time.Hour))
	m.token(&berthv1.CreateTokenRequest{Purpose: "agent"})
	if after := len(m.store.Snapshot().Tokens()); before != 4 || after != 1 {
		t.Errorf("%d tokens, and %d after they had expired for long", before, after)
	}
}

func TestOnlyATokenLetsIn(t *testing.T) {
	c := newCloud(t, 1)
	client := berthv1connect.NewEnrolmentServiceClient(c.as(pki.RoleOperator, "op1", "alice"), c.members[0].url())
	_, err := client.Enrol(t.Context(), connect.NewRequest(agentRequest(c, "hv1", "", 1)))
	wantRefusal(t, err, rpc.Denied, "token")
	if nodes := c.members[0].store.Snapshot().Nodes(); len(nodes) > 0 {
		t.Errorf("an operator without a token enrolled %v", nodes)
	}
}
