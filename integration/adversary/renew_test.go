package adversary

import (
	"os"
	"testing"
	"time"

	"connectrpc.com/connect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
)

// renewAs asks for a certificate as an agent or an operator, with a request for the key in a file.
func (c *coordinator) renewAs(files pki.Files, key string) ([]byte, error) {
	c.Helper()
	text, err := os.ReadFile(key)
	c.check(err)
	request, err := pki.RequestFor("x", text)
	c.check(err)
	pair, err := pki.LoadPair(files)
	c.check(err)
	if pair.Identity.Role == pki.RoleAgent {
		client := berthv1connect.NewAgentServiceClient(c.client(files), "https://"+c.config.Listen.Agent, connect.WithGRPC())
		answer, err := client.Renew(c.Context(), connect.NewRequest(&berthv1.RenewRequest{CsrPem: request}))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetCertificatePem(), nil
	}
	answer, err := c.api(files).RenewCertificate(c.Context(), connect.NewRequest(&berthv1.RenewCertificateRequest{CsrPem: request}))
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetCertificatePem(), nil
}

// Whose certificate counts renews it, for its own key and as itself. Nobody else gets anything signed.
func TestNobodyRenewsWhatIsNotHis(t *testing.T) {
	c := coordinate(t)
	node, agent := c.enrol("agent", "hv1")
	operator, alice := c.enrol("operator", "alice")
	for id, files := range map[string]pki.Files{node: agent, operator: alice} {
		certificate, err := c.renewAs(files, files.Key)
		c.check(err)
		who, err := pki.BearerOfPEM(certificate)
		c.check(err)
		if before, err := pki.LoadPair(files); err != nil || who.Identity != before.Identity || who.ID != id ||
			time.Until(who.Until) > pki.CertificateLife {
			t.Errorf("%s is renewed as %+v, %v", id, who, err)
		}
	}
	now := time.Now()
	for what, try := range map[string]struct {
		files pki.Files
		key   string
	}{
		"an agent another's key":       {agent, alice.Key},
		"an operator an agent's key":   {alice, agent.Key},
		"an agent a new key":           {agent, c.forge(c.authority, pki.RoleAgent, node, now, time.Hour).Key},
		"a forged agent its key":       {c.forge(c.authority, pki.RoleAgent, node, now, time.Hour), agent.Key},
		"a forged operator alice's":    {c.forge(c.authority, pki.RoleOperator, operator, now, time.Hour), alice.Key},
		"an expired forged operator":   {c.forge(c.authority, pki.RoleOperator, operator, now.Add(-48*time.Hour), time.Hour), alice.Key},
		"a coordinator as an operator": {c.forge(c.authority, pki.RolePeer, c.id, now, time.Hour), alice.Key},
	} {
		if certificate, err := c.renewAs(try.files, try.key); err == nil {
			t.Errorf("%s: it is given %s", what, certificate)
		}
	}
	_, err := c.api(c.admin).RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{
		Identity: "operator/alice", Reason: "lost", RequestId: "r1",
	}))
	c.check(err)
	if _, err := c.renewAs(alice, alice.Key); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("who was revoked renews: %v", err)
	}
	_, err = c.api(c.admin).RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{Identity: "hv1", RequestId: "r2"}))
	c.check(err)
	if _, err := c.renewAs(agent, agent.Key); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a node that was revoked renews: %v", err)
	}
	_, err = c.api(c.admin).RemoveNode(t.Context(), connect.NewRequest(&berthv1.RemoveNodeRequest{Node: "hv1", RequestId: "r3"}))
	c.check(err)
	if _, err := c.renewAs(agent, agent.Key); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a node that was removed renews: %v", err)
	}
}
