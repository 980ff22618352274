package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"berth/coordinator/cli/clientconfig"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// noon is the time that commands believe it is, so that ages are always the same.
var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// fake is a coordinator that answers what a test tells it to.
type fake struct {
	berthv1connect.UnimplementedBerthServiceHandler
	berthv1connect.UnimplementedEnrolmentServiceHandler

	mu    sync.Mutex
	calls []any // the requests, in order

	estateFake
	planFake
	storageFake

	status      func(*berthv1.StatusRequest) (*berthv1.StatusResponse, error)
	listNodes   func(*berthv1.ListNodesRequest) (*berthv1.ListNodesResponse, error)
	getNode     func(*berthv1.GetNodeRequest) (*berthv1.GetNodeResponse, error)
	fenceNode   func(*berthv1.FenceNodeRequest) (*berthv1.FenceNodeResponse, error)
	setNode     func(*berthv1.SetNodeRequest) (*berthv1.SetNodeResponse, error)
	maintenance func(*berthv1.SetNodeMaintenanceRequest) (*berthv1.SetNodeMaintenanceResponse, error)
	removeNode  func(*berthv1.RemoveNodeRequest) (*berthv1.RemoveNodeResponse, error)
	listVMs     func(*berthv1.ListVMsRequest) (*berthv1.ListVMsResponse, error)
	getVM       func(*berthv1.GetVMRequest) (*berthv1.GetVMResponse, error)
	startVM     func(*berthv1.StartVMRequest) (*berthv1.StartVMResponse, error)
	stopVM      func(*berthv1.StopVMRequest) (*berthv1.StopVMResponse, error)
	migrateVM   func(*berthv1.MigrateVMRequest) (*berthv1.MigrateVMResponse, error)
	deleteVM    func(*berthv1.DeleteVMRequest) (*berthv1.DeleteVMResponse, error)
	listOps     func(*berthv1.ListOperationsRequest) (*berthv1.ListOperationsResponse, error)
	getOp       func(*berthv1.GetOperationRequest) (*berthv1.GetOperationResponse, error)
	resolveOp   func(*berthv1.ResolveOperationRequest) (*berthv1.ResolveOperationResponse, error)
	adoptVMs    func(*berthv1.AdoptVMsRequest) (*berthv1.AdoptVMsResponse, error)
	releaseVM   func(*berthv1.ReleaseVMRequest) (*berthv1.ReleaseVMResponse, error)
	cancelOp    func(*berthv1.CancelOperationRequest) (*berthv1.CancelOperationResponse, error)
	watchOp     func(context.Context, *berthv1.WatchOperationRequest, func(*berthv1.WatchOperationResponse) error) error
	decisions   func(*berthv1.ListDecisionsRequest) (*berthv1.ListDecisionsResponse, error)
	getDecision func(*berthv1.GetDecisionRequest) (*berthv1.GetDecisionResponse, error)
	events      func(context.Context, *berthv1.WatchEventsRequest, func(*berthv1.WatchEventsResponse) error) error
	members     func(*berthv1.ListMembersRequest) (*berthv1.ListMembersResponse, error)
	remove      func(*berthv1.RemoveMemberRequest) (*berthv1.RemoveMemberResponse, error)
	save        func(send func(*berthv1.SaveSnapshotResponse) error) error
	restore     func(data []byte) (*berthv1.RestoreSnapshotResponse, error)
	token       func(*berthv1.CreateTokenRequest) (*berthv1.CreateTokenResponse, error)
	enrol       func(*berthv1.EnrolRequest) (*berthv1.EnrolResponse, error)
}

// answer records the request and answers it as the test wants.
func answer[Q, A any](f *fake, request *connect.Request[Q], how func(*Q) (*A, error)) (*connect.Response[A], error) {
	f.record(request.Msg)
	if how == nil {
		return nil, rpc.Errorf(connect.CodeInternal, &berthv1.ErrorDetail{Code: rpc.Internal}, "the test did not expect %T", request.Msg)
	}
	message, err := how(request.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

func (f *fake) record(message any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, message)
}

// asked are the recorded requests of one kind.
func asked[Q any](f *fake) []*Q {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*Q
	for _, call := range f.calls {
		if request, ok := call.(*Q); ok {
			found = append(found, request)
		}
	}
	return found
}

func (f *fake) Status(_ context.Context, r *connect.Request[berthv1.StatusRequest]) (*connect.Response[berthv1.StatusResponse], error) {
	return answer(f, r, f.status)
}

func (f *fake) ListNodes(_ context.Context, r *connect.Request[berthv1.ListNodesRequest]) (*connect.Response[berthv1.ListNodesResponse], error) {
	return answer(f, r, f.listNodes)
}

func (f *fake) GetNode(_ context.Context, r *connect.Request[berthv1.GetNodeRequest]) (*connect.Response[berthv1.GetNodeResponse], error) {
	return answer(f, r, f.getNode)
}

func (f *fake) FenceNode(_ context.Context, r *connect.Request[berthv1.FenceNodeRequest]) (*connect.Response[berthv1.FenceNodeResponse], error) {
	return answer(f, r, f.fenceNode)
}

func (f *fake) SetNode(_ context.Context, r *connect.Request[berthv1.SetNodeRequest]) (*connect.Response[berthv1.SetNodeResponse], error) {
	return answer(f, r, f.setNode)
}

func (f *fake) SetNodeMaintenance(_ context.Context, r *connect.Request[berthv1.SetNodeMaintenanceRequest]) (*connect.Response[berthv1.SetNodeMaintenanceResponse], error) {
	return answer(f, r, f.maintenance)
}

func (f *fake) RemoveNode(_ context.Context, r *connect.Request[berthv1.RemoveNodeRequest]) (*connect.Response[berthv1.RemoveNodeResponse], error) {
	return answer(f, r, f.removeNode)
}

func (f *fake) ListVMs(_ context.Context, r *connect.Request[berthv1.ListVMsRequest]) (*connect.Response[berthv1.ListVMsResponse], error) {
	return answer(f, r, f.listVMs)
}

func (f *fake) GetVM(_ context.Context, r *connect.Request[berthv1.GetVMRequest]) (*connect.Response[berthv1.GetVMResponse], error) {
	return answer(f, r, f.getVM)
}

func (f *fake) StartVM(_ context.Context, r *connect.Request[berthv1.StartVMRequest]) (*connect.Response[berthv1.StartVMResponse], error) {
	return answer(f, r, f.startVM)
}

func (f *fake) StopVM(_ context.Context, r *connect.Request[berthv1.StopVMRequest]) (*connect.Response[berthv1.StopVMResponse], error) {
	return answer(f, r, f.stopVM)
}

func (f *fake) MigrateVM(_ context.Context, r *connect.Request[berthv1.MigrateVMRequest]) (*connect.Response[berthv1.MigrateVMResponse], error) {
	return answer(f, r, f.migrateVM)
}

func (f *fake) DeleteVM(_ context.Context, r *connect.Request[berthv1.DeleteVMRequest]) (*connect.Response[berthv1.DeleteVMResponse], error) {
	return answer(f, r, f.deleteVM)
}

func (f *fake) ListOperations(_ context.Context, r *connect.Request[berthv1.ListOperationsRequest]) (*connect.Response[berthv1.ListOperationsResponse], error) {
	return answer(f, r, f.listOps)
}

func (f *fake) GetOperation(_ context.Context, r *connect.Request[berthv1.GetOperationRequest]) (*connect.Response[berthv1.GetOperationResponse], error) {
	return answer(f, r, f.getOp)
}

func (f *fake) CancelOperation(_ context.Context, r *connect.Request[berthv1.CancelOperationRequest]) (*connect.Response[berthv1.CancelOperationResponse], error) {
	return answer(f, r, f.cancelOp)
}

func (f *fake) ResolveOperation(_ context.Context, r *connect.Request[berthv1.ResolveOperationRequest]) (*connect.Response[berthv1.ResolveOperationResponse], error) {
	return answer(f, r, f.resolveOp)
}

func (f *fake) AdoptVMs(_ context.Context, r *connect.Request[berthv1.AdoptVMsRequest]) (*connect.Response[berthv1.AdoptVMsResponse], error) {
	return answer(f, r, f.adoptVMs)
}

func (f *fake) ReleaseVM(_ context.Context, r *connect.Request[berthv1.ReleaseVMRequest]) (*connect.Response[berthv1.ReleaseVMResponse], error) {
	return answer(f, r, f.releaseVM)
}

func (f *fake) WatchOperation(ctx context.Context, r *connect.Request[berthv1.WatchOperationRequest], stream *connect.ServerStream[berthv1.WatchOperationResponse]) error {
	f.record(r.Msg)
	return f.watchOp(ctx, r.Msg, stream.Send)
}

func (f *fake) ListDecisions(_ context.Context, r *connect.Request[berthv1.ListDecisionsRequest]) (*connect.Response[berthv1.ListDecisionsResponse], error) {
	return answer(f, r, f.decisions)
}

func (f *fake) GetDecision(_ context.Context, r *connect.Request[berthv1.GetDecisionRequest]) (*connect.Response[berthv1.GetDecisionResponse], error) {
	return answer(f, r, f.getDecision)
}

func (f *fake) WatchEvents(ctx context.Context, r *connect.Request[berthv1.WatchEventsRequest], stream *connect.ServerStream[berthv1.WatchEventsResponse]) error {
	f.record(r.Msg)
	return f.events(ctx, r.Msg, stream.Send)
}

func (f *fake) ListMembers(_ context.Context, r *connect.Request[berthv1.ListMembersRequest]) (*connect.Response[berthv1.ListMembersResponse], error) {
	return answer(f, r, f.members)
}

func (f *fake) RemoveMember(_ context.Context, r *connect.Request[berthv1.RemoveMemberRequest]) (*connect.Response[berthv1.RemoveMemberResponse], error) {
	return answer(f, r, f.remove)
}

func (f *fake) SaveSnapshot(_ context.Context, _ *connect.Request[berthv1.SaveSnapshotRequest], stream *connect.ServerStream[berthv1.SaveSnapshotResponse]) error {
	return f.save(stream.Send)
}

func (f *fake) RestoreSnapshot(_ context.Context, stream *connect.ClientStream[berthv1.RestoreSnapshotRequest]) (*connect.Response[berthv1.RestoreSnapshotResponse], error) {
	var data []byte
	for stream.Receive() {
		data = append(data, stream.Msg().GetChunk()...)
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	message, err := f.restore(data)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

func (f *fake) CreateToken(_ context.Context, r *connect.Request[berthv1.CreateTokenRequest]) (*connect.Response[berthv1.CreateTokenResponse], error) {
	return answer(f, r, f.token)
}

func (f *fake) Enrol(_ context.Context, r *connect.Request[berthv1.EnrolRequest]) (*connect.Response[berthv1.EnrolResponse], error) {
	return answer(f, r, f.enrol)
}

// server is a fake that listens.
type server struct {
	address string
	stop    func() // at once, connections too
}

// world is one cluster of fakes, and a client configuration that reaches it.
type world struct {
	t         *testing.T
	authority *pki.Authority
	config    string // path
	in        io.Reader
	env       map[string]string
	patience  time.Duration // long, because a machine that tests is a busy one

	nextInterrupt func(context.Context) (context.Context, context.CancelFunc) // nil: that of the product
}

func newWorld(t *testing.T, coordinators ...*fake) (*world, []*server) {
	t.Helper()
	authority, err := pki.NewAuthority("c1", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, authority: authority, config: filepath.Join(t.TempDir(), "client.yaml"), in: strings.NewReader(""), env: map[string]string{}, patience: time.Minute}
	var servers []*server
	var addresses []string
	for _, f := range coordinators {
		s := w.serve(f)
		servers, addresses = append(servers, s), append(addresses, s.address)
	}
	if len(addresses) > 0 {
		w.context("lab", pki.RoleOperator, addresses...)
	}
	return w, servers
}

// identity makes a certificate.
func (w *world) identity(role pki.Role, name string) (certPEM, keyPEM []byte) {
	w.t.Helper()
	csr, key, err := pki.NewRequest(name)
	if err != nil {
		w.t.Fatal(err)
	}
	id := pki.Identity{Role: role, ID: name, Name: name, ClusterID: w.authority.ClusterID()}
	cert, err := w.authority.Sign(csr, id, []string{"127.0.0.1"}, time.Now(), 5*pki.DefaultValidity)
	if err != nil {
		w.t.Fatal(err)
	}
	return cert, key
}

// context writes a context for these coordinators and makes it the current one.
func (w *world) context(name string, role pki.Role, coordinators ...string) {
	w.t.Helper()
	cert, key := w.identity(role, "admin")
	err := clientconfig.Store(w.config, name, coordinators, clientconfig.Credentials{
		CA: w.authority.CertificatePEM(), Certificate: cert, Key: key,
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) serve(f *fake) *server {
	w.t.Helper()
	cert, key := w.identity(pki.RolePeer, "coord")
	folder := w.t.TempDir()
	files := pki.Files{CA: filepath.Join(folder, "ca"), Certificate: filepath.Join(folder, "cert"), Key: filepath.Join(folder, "key")}
	for path, data := range map[string][]byte{files.CA: w.authority.CertificatePEM(), files.Certificate: cert, files.Key: key} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	settings, err := pki.ServerConfig(files, tls.VerifyClientCertIfGiven)
	if err != nil {
		w.t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewBerthServiceHandler(f))
	mux.Handle(berthv1connect.NewEnrolmentServiceHandler(f))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	httpServer := rpc.NewServer("", mux, settings, hclog.NewNullLogger())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := httpServer.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			w.t.Error(err)
		}
	}()
	stop := sync.OnceFunc(func() {
		_ = httpServer.Close()
		<-done
	})
	w.t.Cleanup(stop)
	return &server{address: listener.Addr().String(), stop: stop}
}

// outcome is what a command left behind.
type ran struct {
	exit        Exit
	out, errOut string
}

func (w *world) run(args ...string) ran {
	w.t.Helper()
	return w.runContext(w.t.Context(), args...)
}

func (w *world) runContext(ctx context.Context, args ...string) ran {
	w.t.Helper()
	var out, errOut bytes.Buffer
	exit := w.runTo(ctx, &out, &errOut, args...)
	said := ran{exit: exit, out: out.String(), errOut: errOut.String()}
	// Ports and folders are never the same twice.
	said.out, said.errOut = w.stable(said.out), w.stable(said.errOut)
	return said
}

func (w *world) stable(text string) string {
	return strings.ReplaceAll(text, filepath.Dir(w.config), "CONFIG")
}

func (w *world) runTo(ctx context.Context, out, errOut io.Writer, args ...string) Exit {
	a := newApp(Options{Version: "1.2.3"})
	a.now = func() time.Time { return noon }
	a.patience = w.patience
	if w.nextInterrupt != nil {
		a.nextInterrupt = w.nextInterrupt
	}
	env := map[string]string{clientconfig.Variable: w.config}
	for name, value := range w.env {
		env[name] = value
	}
	a.env = func(name string) string { return env[name] }
	return Exit(a.run(ctx, a.root(Options{}), args, w.in, out, errOut))
}

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); rewrite it with -update if this is meant:\n%s", path, diff)
	}
}
