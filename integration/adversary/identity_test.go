package adversary

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/cli/clientconfig"
	"berth/coordinator/daemon"
	"berth/integration/loopback"
	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// coordinator is a whole one on loopback: its three listeners, and the authority that it has.
type coordinator struct {
	*testing.T
	config    daemon.Config
	authority *pki.Authority
	admin     pki.Files
	clusterID string
	id        string // of the member
	enrolled  string // the address that who was enrolled last has given as its own
}

func coordinate(t *testing.T) *coordinator {
	t.Helper()
	c := &coordinator{T: t}
	dir := t.TempDir()
	path, client := filepath.Join(dir, "coordinator.yaml"), filepath.Join(dir, "client.yaml")
	address := func() string {
		free, err := loopback.Address()
		c.check(err)
		return free
	}
	c.check(config.Write(path, daemon.Config{
		Name: "coord1", DataDir: filepath.Join(dir, "data"), Advertise: "127.0.0.1",
		Listen: daemon.Listen{API: address(), Agent: address(), Raft: address()}, Stability: time.Second,
	}, 0o644))
	made, err := daemon.Init(t.Context(), daemon.InitOptions{ConfigPath: path, ClientConfig: client})
	c.check(err)
	c.config, c.clusterID = made.Config, made.ClusterID
	c.config, err = daemon.LoadConfig(path)
	c.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Run(ctx, c.config, hclog.NewNullLogger()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the coordinator has not ended well: %v", err)
		}
	})
	contexts, err := clientconfig.Load(client)
	c.check(err)
	admin, _, err := contexts.Context("", client)
	c.check(err)
	c.admin = admin.Files()
	// What a coordinator has, one that is removed keeps.
	own := filepath.Join(dir, "data", "tls")
	certificate, err := os.ReadFile(filepath.Join(own, "ca.pem"))
	c.check(err)
	key, err := os.ReadFile(filepath.Join(own, "ca.key"))
	c.check(err)
	c.authority, err = pki.LoadAuthority(certificate, key)
	c.check(err)
	c.eventually("the records of the founders", func() bool {
		answer, err := c.api(c.admin).ListIdentities(t.Context(), connect.NewRequest(&berthv1.ListIdentitiesRequest{}))
		if err != nil {
			return false
		}
		for _, identity := range answer.Msg.GetIdentities() {
			if identity.GetKind() == "coordinator" {
				c.id = identity.GetId()
			}
		}
		return len(answer.Msg.GetIdentities()) == 2
	})
	return c
}

func (c *coordinator) check(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

func (c *coordinator) eventually(what string, is func() bool) {
	c.Helper()
	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.Fatalf("%s: not in time", what)
		}
	}
}

// files puts a certificate where a client reads it.
func (c *coordinator) files(authority, certificate, key []byte) pki.Files {
	c.Helper()
	dir := c.TempDir()
	files := pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "own.pem"), Key: filepath.Join(dir, "own.key"),
	}
	for path, content := range map[string][]byte{files.CA: authority, files.Certificate: certificate, files.Key: key} {
		c.check(os.WriteFile(path, content, 0o600))
	}
	return files
}

// forge signs a certificate with an authority's key, as whoever has that can.
func (c *coordinator) forge(authority *pki.Authority, role pki.Role, id string, at time.Time, life time.Duration) pki.Files {
	c.Helper()
	request, key, err := pki.NewRequest(id)
	c.check(err)
	who := pki.Identity{Role: role, ID: id, Name: "admin", ClusterID: c.clusterID}
	certificate, err := authority.Sign(request, who, []string{"127.0.0.1"}, at, life)
	c.check(err)
	return c.files(authority.CertificatePEM(), certificate, key)
}

// client speaks with a certificate, and believes whatever server it meets: this is about what the servers believe.
func (c *coordinator) client(files pki.Files) *http.Client {
	c.Helper()
	settings, err := pki.ClientConfig(files, pki.RolePeer)
	c.check(err)
	settings.InsecureSkipVerify, settings.VerifyConnection = true, nil
	client := rpc.NewHTTPClient(settings)
	c.Cleanup(client.CloseIdleConnections)
	return client
}

func (c *coordinator) api(files pki.Files) berthv1connect.BerthServiceClient {
	return berthv1connect.NewBerthServiceClient(c.client(files), "https://"+c.config.Listen.API)
}

// status is an error unless the API answers.
func (c *coordinator) status(files pki.Files) error {
	_, err := c.api(files).Status(c.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	return err
}

// session is an error unless an agent's session is opened. Removed tells that it is one of a node that was removed.
func (c *coordinator) session(files pki.Files, node string) (removed bool, err error) {
	ctx, cancel := context.WithTimeout(c.Context(), 10*time.Second)
	defer cancel()
	stream := berthv1connect.NewAgentServiceClient(c.client(files), "https://"+c.config.Listen.Agent).Session(ctx)
	opening := hello(node)
	opening.GetHello().ClusterId = c.clusterID
	opening.GetHello().Incarnation = fmt.Sprint("boot/", time.Now().UnixNano()) // one that was heard before is refused for that alone
	if err := stream.Send(opening); err != nil {
		_, err = stream.Receive() // says why
		return false, err
	}
	welcome, err := stream.Receive()
	if err == nil && welcome.GetWelcome() == nil {
		err = fmt.Errorf("it is answered %v", welcome)
	}
	return welcome.GetWelcome().GetRemoved(), err
}

// knock is an error unless the Raft port keeps the connection.
func (c *coordinator) knock(files pki.Files) error {
	settings, err := pki.ClientConfig(files, pki.RolePeer)
	c.check(err)
	settings.InsecureSkipVerify, settings.VerifyConnection, settings.NextProtos = true, nil, []string{"berth-raft"}
	conn, err := tls.Dial("tcp", c.config.Listen.Raft, settings)
	if err != nil {
		return err
	}
	defer conn.Close()
	c.check(conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond)))
	var timeout net.Error
	if _, err = conn.Read(make([]byte, 1)); errors.As(err, &timeout) && timeout.Timeout() {
		return nil // it waits for what this one says
	}
	return err
}

// enrol lets somebody in with a token.
func (c *coordinator) enrol(purpose, name string) (id string, files pki.Files) {
	c.Helper()
	answer, err := c.api(c.admin).CreateToken(c.Context(), connect.NewRequest(&berthv1.CreateTokenRequest{Purpose: purpose, Name: name}))
	c.check(err)
	token, err := pki.ParseToken(answer.Msg.GetToken())
	c.check(err)
	request, key, err := pki.NewRequest(name)
	c.check(err)
	stranger := rpc.NewHTTPClient(pki.PinnedClientConfig(token.CAFingerprint))
	c.Cleanup(stranger.CloseIdleConnections)
	address, err := loopback.Address()
	c.check(err)
	c.enrolled = address
	let, err := berthv1connect.NewEnrolmentServiceClient(stranger, "https://"+c.config.Listen.API).Enrol(c.Context(),
		connect.NewRequest(&berthv1.EnrolRequest{
			TokenSecret: token.Secret, Name: name, CsrPem: request, HostUuid: "00000000-0000-4000-8000-000000000001",
			ApiAddress: address, AgentAddress: address, RaftAddress: address,
		}))
	c.check(err)
	return let.Msg.GetId(), c.files(let.Msg.GetCaPem(), let.Msg.GetCertificatePem(), key)
}

// Whoever had the key of the authority, and was removed, can sign what he likes. It makes nobody, on no listener.
func TestTheAuthoritysKeyMakesNobody(t *testing.T) {
	c := coordinate(t)
	foreign, err := pki.NewAuthority(c.clusterID, time.Now())
	c.check(err)
	node, agent := c.enrol("agent", "hv1")
	if removed, err := c.session(agent, node); err != nil || removed {
		t.Fatalf("the agent that was enrolled: %v, %v", removed, err)
	}
	c.check(c.status(c.admin))
	now, life := time.Now(), time.Hour
	for name, signed := range map[string]struct {
		by   *pki.Authority
		at   time.Time
		life time.Duration
	}{
		"forged":                  {c.authority, now, life},
		"of another authority":    {foreign, now, life},
		"expired":                 {c.authority, now.Add(-48 * time.Hour), life},
		"from before the records": {c.authority, now.Add(-48 * time.Hour), 96 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			forged := func(role pki.Role, id string) pki.Files { return c.forge(signed.by, role, id, signed.at, signed.life) }
			for _, id := range []string{"unheard", c.id, node} {
				for _, role := range []pki.Role{pki.RoleOperator, pki.RolePeer} {
					if err := c.status(forged(role, id)); err == nil {
						t.Errorf("the API answers %s %s", role, id)
					}
				}
				if _, err := c.session(forged(pki.RoleAgent, id), id); err == nil {
					t.Errorf("an agent's session is opened for %s", id)
				}
				if err := c.knock(forged(pki.RolePeer, id)); err == nil {
					t.Errorf("the Raft port keeps the connection of %s", id)
				}
			}
		})
	}
	c.endedIsNobody(node, agent)
	// A key that is on record, in a certificate that names another role or another one.
	key, err := os.ReadFile(agent.Key)
	c.check(err)
	if own := c.forgeWith(key, pki.RoleOperator, node, time.Now()); c.status(own) == nil {
		t.Error("a node's key is good for an operator")
	}
	if own := c.forgeWith(key, pki.RolePeer, c.id, time.Now()); c.knock(own) == nil {
		t.Error("a node's key is good for a coordinator")
	}
}

// endedIsNobody shows certificates of keys that are on record, by the authority that counts and for whom they belong to. Only their time
// tells those that are let in from those that are not.
func (c *coordinator) endedIsNobody(node string, agent pki.Files) {
	c.Helper()
	admin, err := pki.LoadPair(c.admin)
	c.check(err)
	signed := func(at time.Time) (operator, agents, peer pki.Files) {
		of := func(path string, role pki.Role, id string) pki.Files {
			key, err := os.ReadFile(path)
			c.check(err)
			return c.forgeWith(key, role, id, at)
		}
		return of(c.admin.Key, pki.RoleOperator, admin.Identity.ID), of(agent.Key, pki.RoleAgent, node),
			of(filepath.Join(c.config.DataDir, "tls", "peer.key"), pki.RolePeer, c.id)
	}
	operator, agents, peer := signed(time.Now())
	c.check(c.status(operator))
	if removed, err := c.session(agents, node); err != nil || removed {
		c.Errorf("the agent's own key is refused: %v", err)
	}
	c.check(c.knock(peer))
	for what, at := range map[string]time.Time{"ended": time.Now().Add(-48 * time.Hour), "not begun": time.Now().Add(48 * time.Hour)} {
		operator, agents, peer := signed(at)
		c.shut(what, "expired certificate", operator, agents, peer)
	}
}

// Who is revoked is out with the next call, and what he has open ends within a second.
func TestWhoIsRevokedIsOutWithinASecond(t *testing.T) {
	c := coordinate(t)
	_, alice := c.enrol("operator", "alice")
	client := c.api(alice) // one connection, which stays
	_, err := client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	c.check(err)
	events, err := client.WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{Follow: true}))
	c.check(err)
	ended := make(chan time.Time, 1)
	go func() {
		for events.Receive() {
		}
		ended <- time.Now()
	}()
	time.Sleep(100 * time.Millisecond)
	_, err = c.api(c.admin).RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{
		Identity: "operator/alice", Reason: "lost", RequestId: "r1",
	}))
	c.check(err)
	revoked := time.Now()
	_, err = client.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("the next call: %v", err)
	}
	select {
	case at := <-ended:
		if took := at.Sub(revoked); took > time.Second {
			t.Errorf("what was open ended after %v", took)
		}
	case <-time.After(5 * time.Second):
		t.Error("what was open did not end")
	}
	c.check(c.status(c.admin))
	// The last operator cannot go.
	_, err = c.api(c.admin).RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{Identity: "admin", RequestId: "r2"}))
	if connect.CodeOf(err) != connect.CodeFailedPrecondition {
		t.Errorf("the last operator: %v", err)
	}
}

// A node that is removed is listened to, and has no other right. One that is revoked is not listened to.
func TestARemovedNodeHasOneSessionAndNoRight(t *testing.T) {
	c := coordinate(t)
	node, agent := c.enrol("agent", "hv1")
	stream := berthv1connect.NewAgentServiceClient(c.client(agent), "https://"+c.config.Listen.Agent).Session(t.Context())
	opening := hello(node)
	opening.GetHello().ClusterId = c.clusterID
	c.check(stream.Send(opening))
	_, err := stream.Receive()
	c.check(err)
	_, err = c.api(c.admin).RevokeIdentity(t.Context(), connect.NewRequest(&berthv1.RevokeIdentityRequest{Identity: "hv1", RequestId: "r1"}))
	c.check(err)
	revoked := time.Now()
	for err == nil {
		_, err = stream.Receive()
	}
	if took := time.Since(revoked); took > 2*time.Second {
		t.Errorf("its session ended after %v", took)
	}
	if _, err := c.session(agent, node); err == nil {
		t.Error("a revoked node has a session")
	}
	_, err = c.api(c.admin).RemoveNode(t.Context(), connect.NewRequest(&berthv1.RemoveNodeRequest{Node: "hv1", RequestId: "r3"}))
	c.check(err)
	if removed, err := c.session(agent, node); err == nil {
		t.Errorf("a revoked node has a session again once its record is deleted (as a removed one: %v)", removed)
	}
	node, agent = c.enrol("agent", "hv1")
	_, err = c.api(c.admin).RemoveNode(t.Context(), connect.NewRequest(&berthv1.RemoveNodeRequest{Node: "hv1", RequestId: "r4"}))
	c.check(err)
	if removed, err := c.session(agent, node); err != nil || !removed {
		t.Errorf("a removed node is not listened to: %v", err)
	}
	tunnel := berthv1connect.NewAgentServiceClient(c.client(agent), "https://"+c.config.Listen.Agent).Tunnel(t.Context())
	_ = tunnel.Send(&berthv1.TunnelRequest{}) // the answer tells
	if _, err := tunnel.Receive(); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("a tunnel of a removed node: %v", err)
	}
}

// A coordinator that was removed is a stranger on every listener.
func TestARemovedCoordinatorIsOut(t *testing.T) {
	c := coordinate(t)
	_, peer := c.enrol("coordinator", "coord2")
	c.check(c.status(peer))
	if err := c.knock(peer); err == nil {
		t.Error("one that is not in the Raft configuration speaks on the Raft port")
	}
	_, err := c.api(c.admin).RemoveMember(t.Context(), connect.NewRequest(&berthv1.RemoveMemberRequest{Member: "coord2"}))
	c.check(err)
	if err := c.status(peer); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("the API: %v", err)
	}
	if err := c.knock(peer); err == nil {
		t.Error("it speaks on the Raft port")
	}
}

// forgeWith signs a certificate of an hour for a key that is there.
func (c *coordinator) forgeWith(keyPEM []byte, role pki.Role, id string, at time.Time) pki.Files {
	c.Helper()
	block, _ := pem.Decode(keyPEM)
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	c.check(err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	c.check(err)
	request := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	who := pki.Identity{Role: role, ID: id, Name: "admin", ClusterID: c.clusterID}
	certificate, err := c.authority.Sign(request, who, []string{"127.0.0.1"}, at, time.Hour)
	c.check(err)
	return c.files(c.authority.CertificatePEM(), certificate, keyPEM)
}
