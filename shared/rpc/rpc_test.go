package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/testing/protocmp"

	"berth/shared/config"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
)

// service answers with what the tests look at: who called, over which protocol.
type service struct {
	berthv1connect.UnimplementedBerthServiceHandler
	berthv1connect.UnimplementedAgentServiceHandler
}

func (service) Status(ctx context.Context, _ *connect.Request[berthv1.StatusRequest]) (*connect.Response[berthv1.StatusResponse], error) {
	caller, ok := Caller(ctx)
	if !ok {
		return nil, Errorf(connect.CodeUnauthenticated, &berthv1.ErrorDetail{Code: Denied}, "no certificate")
	}
	return connect.NewResponse(&berthv1.StatusResponse{AnsweredBy: caller.String()}), nil
}

func (service) GetVM(_ context.Context, r *connect.Request[berthv1.GetVMRequest]) (*connect.Response[berthv1.GetVMResponse], error) {
	return nil, Errorf(connect.CodeNotFound, notFound(r.Msg.Vm), "no VM %q", r.Msg.Vm)
}

func notFound(vm string) *berthv1.ErrorDetail {
	return &berthv1.ErrorDetail{
		Code: NotFound, Subject: "vm/" + vm, NextStep: "run 'berth vm list'",
		Decision: &berthv1.Decision{Id: "d1"},
	}
}

// Session answers each message at once: it works only on a stream in both directions.
func (service) Session(_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse]) error {
	for {
		message, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer := &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{Term: message.Sequence}}}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func certificate(t *testing.T, authority *pki.Authority, role pki.Role, name string) pki.Files {
	t.Helper()
	csr, key, err := pki.NewRequest(name)
	if err != nil {
		t.Fatal(err)
	}
	identity := pki.Identity{Role: role, ID: name, Name: name, ClusterID: authority.ClusterID()}
	cert, err := authority.Sign(csr, identity, []string{"127.0.0.1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	files := pki.Files{CA: filepath.Join(folder, "ca"), Certificate: filepath.Join(folder, "cert"), Key: filepath.Join(folder, "key")}
	for path, data := range map[string][]byte{files.CA: authority.CertificatePEM(), files.Certificate: cert, files.Key: key} {
		if err := config.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func serve(t *testing.T, authority *pki.Authority) (url string) {
	t.Helper()
	settings, err := pki.ServerConfig(certificate(t, authority, pki.RolePeer, "coord1"), tls.VerifyClientCertIfGiven)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewBerthServiceHandler(service{}))
	mux.Handle(berthv1connect.NewAgentServiceHandler(service{}))
	mux.HandleFunc("/protocol", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer("", WithIdentity(mux), settings, hclog.NewNullLogger())
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "https://" + listener.Addr().String()
}

func client(t *testing.T, files pki.Files) *http.Client {
	t.Helper()
	settings, err := pki.ClientConfig(files, pki.RolePeer)
	if err != nil {
		t.Fatal(err)
	}
	c := NewHTTPClient(settings)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func TestCallerIsWhoTheCertificateNames(t *testing.T) {
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, authority)
	operator := berthv1connect.NewBerthServiceClient(client(t, certificate(t, authority, pki.RoleOperator, "admin")), url)
	answer, err := operator.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{}))
	if err != nil {
		t.Fatal(err)
	}
	if answer.Msg.AnsweredBy != "operator/admin" {
		t.Errorf("the server saw %q", answer.Msg.AnsweredBy)
	}

	pin, err := pki.Fingerprint(authority.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	nobody := berthv1connect.NewBerthServiceClient(NewHTTPClient(pki.PinnedClientConfig(pin)), url)
	if _, err := nobody.Status(t.Context(), connect.NewRequest(&berthv1.StatusRequest{})); Detail(err).GetCode() != Denied {
		t.Errorf("without a certificate: got %v", err)
	}
}

func TestClientSpeaksHTTP2InBothDirections(t *testing.T) {
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, authority)
	httpClient := client(t, certificate(t, authority, pki.RoleAgent, "node1"))
	answer, err := httpClient.Get(url + "/protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, _ := io.ReadAll(answer.Body); string(body) != "HTTP/2.0" {
		t.Errorf("the server saw %s, want HTTP/2.0", body)
	}
	stream := berthv1connect.NewAgentServiceClient(httpClient, url).Session(t.Context())
	for sequence := uint64(1); sequence <= 3; sequence++ {
		if err := stream.Send(&berthv1.SessionRequest{Sequence: sequence}); err != nil {
			t.Fatal(err)
		}
		echo, err := stream.Receive()
		if err != nil {
			t.Fatal(err)
		}
		if echo.GetWelcome().GetTerm() != sequence {
			t.Errorf("got %v, want term %d", echo, sequence)
		}
	}
	if err := stream.CloseRequest(); err != nil {
		t.Error(err)
	}
	if _, err := stream.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end of the stream", err)
	}
	if err := stream.CloseResponse(); err != nil {
		t.Error(err)
	}
}

func TestDetailTravelsWithTheError(t *testing.T) {
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	operator := certificate(t, authority, pki.RoleOperator, "admin")
	api := berthv1connect.NewBerthServiceClient(client(t, operator), serve(t, authority))
	_, err = api.GetVM(t.Context(), connect.NewRequest(&berthv1.GetVMRequest{Vm: "web1"}))
	if diff := cmp.Diff(notFound("web1"), Detail(fmt.Errorf("show: %w", err)), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if connect.CodeOf(err) != connect.CodeNotFound || err.Error() != `not_found: no VM "web1"` {
		t.Errorf("got %v", err)
	}
	for _, err := range []error{nil, io.EOF, Errorf(connect.CodeInternal, nil, "no detail")} {
		if d := Detail(err); d != nil {
			t.Errorf("%v has detail %v", err, d)
		}
	}
}

func TestServerNeverEndsStreamsByTimeout(t *testing.T) {
	server := NewServer(":0", http.NotFoundHandler(), &tls.Config{}, hclog.NewNullLogger())
	if server.ReadTimeout != 0 || server.WriteTimeout != 0 || NewHTTPClient(&tls.Config{}).Timeout != 0 {
		t.Error("a timeout for whole calls would end an agent's stream")
	}
	if server.ReadHeaderTimeout == 0 || server.IdleTimeout == 0 || server.HTTP2.SendPingTimeout == 0 {
		t.Error("without these a dead client holds its connection for ever")
	}
}

// A client that runs for long trusts what its file of authorities says at each new connection, and speaks HTTP/2 as every other.
func TestAClientFollowsTheAuthorities(t *testing.T) {
	old, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	next, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	files := certificate(t, old, pki.RoleAgent, "hv1")
	settings, err := pki.Client(files, pki.RolePeer)
	if err != nil {
		t.Fatal(err)
	}
	c := NewNames("").Following(settings)
	t.Cleanup(c.CloseIdleConnections)
	there := serve(t, next) + "/protocol"
	if response, err := c.Get(there); err == nil {
		_ = response.Body.Close()
		t.Fatal("it trusts an authority that its file does not have")
	}
	both := append(old.CertificatePEM(), next.CertificatePEM()...)
	if err := config.WriteFile(files.CA, both, 0o600); err != nil {
		t.Fatal(err)
	}
	response, err := c.Get(serve(t, old) + "/protocol")
	if err != nil {
		t.Fatalf("by the old authority: %v", err)
	}
	defer response.Body.Close()
	// The certificate of this client is one of the old authority, which the other server does not trust. It says so itself.
	if said, err := io.ReadAll(response.Body); err != nil || string(said) != "HTTP/2.0" {
		t.Errorf("it speaks %s: %v", said, err)
	}
	if response, err := c.Get(there); err == nil {
		_ = response.Body.Close()
		t.Error("a server has let in what another authority signed")
	} else if errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("it does not follow its file: %v", err)
	}
}
