package agents

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"berth/coordinator/operation"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// certify writes a certificate and gives its files.
func certify(t *testing.T, authority *pki.Authority, id pki.Identity) pki.Files {
	t.Helper()
	request, key, err := pki.NewRequest(id.Name)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := authority.Sign(request, id, []string{"127.0.0.1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "own.pem"), Key: filepath.Join(dir, "own.key"),
	}
	for path, content := range map[string][]byte{
		files.CA: authority.CertificatePEM(), files.Certificate: certificate, files.Key: key,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// listen serves the rig on loopback and gives its address.
func (r *rig) listen(t *testing.T, authority *pki.Authority) string {
	t.Helper()
	peer := pki.Identity{Role: pki.RolePeer, ID: "m1", Name: "m1", ClusterID: authority.ClusterID()}
	config, err := pki.ServerConfig(certify(t, authority, peer), tls.RequireAndVerifyClientCert)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer("", r.Handler(), config, hclog.NewNullLogger())
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		r.Follow()
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := server.Shutdown(ctx); err != nil {
			t.Errorf("requests were still running: %v", err)
		}
		<-served
	})
	return "https://" + listener.Addr().String()
}

func client(
	t *testing.T, url string, authority *pki.Authority, id pki.Identity, options ...connect.ClientOption,
) berthv1connect.AgentServiceClient {
	t.Helper()
	config, err := pki.ClientConfig(certify(t, authority, id), pki.RolePeer)
	if err != nil {
		t.Fatal(err)
	}
	httpClient := rpc.NewHTTPClient(config)
	t.Cleanup(httpClient.CloseIdleConnections)
	return berthv1connect.NewAgentServiceClient(httpClient, url, options...)
}

type clientStream = connect.BidiStreamForClient[berthv1.SessionRequest, berthv1.SessionResponse]

func sayHello(t *testing.T, stream *clientStream, node string) {
	t.Helper()
	err := stream.Send(&berthv1.SessionRequest{Sequence: 1, Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		NodeId: node, Incarnation: "boot-1", ClusterId: testCluster,
	}}})
	// A server that has refused the certificate already reads no more; why, is for Receive to tell.
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatalf("hello: %v", err)
	}
}

func TestASessionOverMutualTLS(t *testing.T) {
	authority, err := pki.NewAuthority(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "n1")
	r.Lead(2)
	url := r.listen(t, authority)
	own := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "name-n1", ClusterID: testCluster}
	stream := client(t, url, authority, own).Session(t.Context())
	sayHello(t, stream, "n1")
	welcome, err := stream.Receive()
	if err != nil || welcome.GetWelcome().GetTerm() != 2 {
		t.Fatalf("received %v, %v, want a welcome of term 2", welcome, err)
	}
	if !r.Order(2, operation.Order{Node: "n1", Operation: "op", Step: 1, Action: operation.ActInspect}) {
		t.Fatal("the order was not sent")
	}
	order, err := stream.Receive()
	if err != nil || order.GetCommand().GetOperationId() != "op" {
		t.Fatalf("received %v, %v, want the order", order, err)
	}
	err = stream.Send(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Result{
		Result: &berthv1.CommandResult{OperationId: "op", Step: 1, Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_DONE},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); len(r.allAnswers()) == 0; {
		if time.Now().After(deadline) {
			t.Fatal("the answer did not arrive")
		}
		time.Sleep(time.Millisecond)
	}
	r.Follow()
	_, err = stream.Receive()
	if detail := rpc.Detail(err); connect.CodeOf(err) != connect.CodeUnavailable || detail.GetCode() != rpc.NoLeader {
		t.Errorf("after the leadership was lost: %v (%v), want unavailable and no_leader", err, detail)
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
}

func TestARedirectOverMutualTLS(t *testing.T) {
	authority, err := pki.NewAuthority(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "n1")
	r.leader = "m2"
	own := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "name-n1", ClusterID: testCluster}
	stream := client(t, r.listen(t, authority), authority, own).Session(t.Context())
	sayHello(t, stream, "n1")
	answer, err := stream.Receive()
	if err != nil || answer.GetRedirect().GetLeaderAddress() != "m2:7421" {
		t.Errorf("received %v, %v, want a redirect to m2:7421", answer, err)
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
}

func TestOtherCertificatesAreDenied(t *testing.T) {
	authority, err := pki.NewAuthority(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "n1")
	r.Lead(1)
	url := r.listen(t, authority)
	for name, id := range map[string]pki.Identity{
		"an operator":         {Role: pki.RoleOperator, ID: "n1", Name: "admin", ClusterID: testCluster},
		"a coordinator":       {Role: pki.RolePeer, ID: "n1", Name: "m9", ClusterID: testCluster},
		"another node's":      {Role: pki.RoleAgent, ID: "n2", Name: "name-n2", ClusterID: testCluster},
		"an agent never seen": {Role: pki.RoleAgent, ID: "n7", Name: "name-n7", ClusterID: testCluster},
	} {
		stream := client(t, url, authority, id).Session(t.Context())
		sayHello(t, stream, "n1")
		_, err := stream.Receive()
		if connect.CodeOf(err) != connect.CodePermissionDenied || rpc.Detail(err).GetCode() != rpc.Denied {
			t.Errorf("certificate of %s: %v, want permission denied", name, err)
		}
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
	}
	if _, err := http.Get(url); err == nil {
		t.Error("a caller without a certificate was let in")
	}
}

// A session that is ended while its agent neither speaks nor reads leaves no goroutine and no request behind.
func TestEndingASessionFreesItsRequest(t *testing.T) {
	authority, err := pki.NewAuthority(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "n1")
	r.Lead(1)
	url := r.listen(t, authority) // its cleanup fails if a request is left
	own := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "name-n1", ClusterID: testCluster}
	stream := client(t, url, authority, own).Session(t.Context())
	sayHello(t, stream, "n1")
	if _, err := stream.Receive(); err != nil {
		t.Fatal(err)
	}
	padding := make([]byte, 1<<20) // noise, so that it stays big when it is compressed
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range padding {
		padding[i] = byte(' ' + noise.IntN(95))
	}
	spec := operation.Order{Node: "n1", Action: operation.ActStart}
	spec.Spec.XML = string(padding)
	for r.Order(1, spec) { // until the flow control stops the writer and the queue is full
	}
	for deadline := time.Now().Add(10 * time.Second); r.session("n1") != nil; {
		if time.Now().After(deadline) {
			t.Fatal("the session was not let go")
		}
		time.Sleep(time.Millisecond)
	}
	_ = stream.CloseRequest()
	_ = stream.CloseResponse()
}

// A coordinator that was given the certificates of another cluster trusts their authority, and serves none of its agents.
func TestOnlyAgentsOfThisClusterAreServed(t *testing.T) {
	for name, caller := range map[string]pki.Identity{
		"another cluster's agent": {Role: pki.RoleAgent, ID: "n1", Name: "name-n1", ClusterID: "another"},
		"an operator":             {Role: pki.RoleOperator, ID: "n1", Name: "name-n1", ClusterID: testCluster},
	} {
		authority, err := pki.NewAuthority(caller.ClusterID, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		r := newRig(t, "n1")
		r.Lead(2)
		stream := client(t, r.listen(t, authority), authority, caller).Session(t.Context())
		sayHello(t, stream, "n1")
		if _, err := stream.Receive(); rpc.Detail(err).GetCode() != rpc.Denied {
			t.Errorf("%s: %v, want %s", name, err, rpc.Denied)
		}
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
	}
}
