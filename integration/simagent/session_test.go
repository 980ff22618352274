package simagent

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/agents"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/units"
)

const clusterID = "c1"

// leader is a coordinator's listeners for agents and enrolment, on loopback, without Raft.
type leader struct {
	*agents.Server
	berthv1connect.UnimplementedEnrolmentServiceHandler
	authority      *pki.Authority
	inventory      *inventory.Store
	answers        chan operation.Answer
	enrol, session string // addresses
}

// Enrol lets everybody in who has a token at all: what makes a good one is the API's business.
func (l *leader) Enrol(
	_ context.Context, request *connect.Request[berthv1.EnrolRequest],
) (*connect.Response[berthv1.EnrolResponse], error) {
	id := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: request.Msg.GetName(), ClusterID: clusterID}
	certificate, err := l.authority.Sign(request.Msg.GetCsrPem(), id, nil, time.Now(), time.Hour)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.EnrolResponse{
		Id: id.ID, ClusterId: clusterID, CertificatePem: certificate, CaPem: l.authority.CertificatePEM(),
		AgentAddresses: []string{l.session},
	}), nil
}

func newLeader(t *testing.T) *leader {
	t.Helper()
	store := state.NewStore()
	command := state.Command{
		Key: "setup", Kind: "setup", At: time.Now(), Expect: []state.Expectation{{Table: state.Nodes, ID: "n1"}},
		Nodes: []model.Node{{ID: "n1", Name: "node1", Cluster: model.DefaultCluster}},
	}
	entry, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if result, ok := store.FSM().Apply(&raft.Log{Index: 1, Data: entry}).(state.Result); !ok || result.Refusal != nil {
		t.Fatalf("the node was refused: %+v", result)
	}
	l := &leader{inventory: inventory.New(time.Now, hclog.NewNullLogger()), answers: make(chan operation.Answer, 10)}
	l.Server = agents.New(agents.Config{
		ClusterID: clusterID, Member: "m1", Records: store, Inventory: l.inventory, Log: hclog.NewNullLogger(),
		Leader: func() string { return "m1" }, Connected: func(string) {},
		Answered: func(answer operation.Answer) { l.answers <- answer },
	})
	if l.authority, err = pki.NewAuthority(clusterID, time.Now()); err != nil {
		t.Fatal(err)
	}
	files := l.certificate(t)
	l.session = listen(t, l.Handler(), files, tls.RequireAndVerifyClientCert)
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewEnrolmentServiceHandler(l))
	l.enrol = listen(t, mux, files, tls.NoClientCert)
	return l
}

func (l *leader) certificate(t *testing.T) pki.Files {
	t.Helper()
	request, key, err := pki.NewRequest("m1")
	if err != nil {
		t.Fatal(err)
	}
	id := pki.Identity{Role: pki.RolePeer, ID: "m1", Name: "m1", ClusterID: clusterID}
	certificate, err := l.authority.Sign(request, id, []string{"127.0.0.1"}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	files := pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "peer.pem"), Key: filepath.Join(dir, "peer.key"),
	}
	for path, content := range map[string][]byte{
		files.CA: l.authority.CertificatePEM(), files.Certificate: certificate, files.Key: key,
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func listen(t *testing.T, handler http.Handler, files pki.Files, auth tls.ClientAuthType) string {
	t.Helper()
	config, err := pki.ServerConfig(files, auth)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := rpc.NewServer("", handler, config, hclog.NewNullLogger())
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	return listener.Addr().String()
}

// eventually gives a real connection time.
func eventually(t *testing.T, what string, check func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !check(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s did not happen", what)
		}
	}
}

func TestANodeEnrolsReportsAndDoesWhatItIsTold(t *testing.T) {
	l := newLeader(t)
	fingerprint, err := pki.Fingerprint(l.authority.CertificatePEM())
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := pki.NewToken(pki.PurposeAgent, fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := Enrol(t.Context(), l.enrol, token, "node1", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var fleet Fleet
	agent, err := fleet.Add(identity, Size{Memory: 8 * units.GiB, CPUs: 4}, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx) }()
	defer func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			t.Error("the session outlives its context")
		}
	}()

	facts := func() model.NodeFacts { return l.inventory.Facts("n1", time.Now()) }
	for _, term := range []uint64{1, 2} { // the second one is a failover: the node comes back by itself
		l.Lead(term)
		eventually(t, "a whole report", func() bool {
			f := facts()
			return f.Liveness == model.Up && f.Inventory && f.Telemetry && f.DomainsKnown && f.Memory == 8*units.GiB
		})
		order := operation.Order{
			Node: "n1", Operation: "start", Step: 1, Action: operation.ActStart, VM: vm, VMName: "web", Epoch: 1,
			Spec: model.VMSpec{Memory: units.GiB, VCPUs: 2},
		}
		if !l.Order(term, order) {
			t.Fatal("there is no session to send the order on")
		}
		if answer := <-l.answers; answer.Outcome != operation.OutcomeDone || answer.Seen.State != model.DomainRunning {
			t.Errorf("term %d: the answer is %+v", term, answer)
		}
		eventually(t, "the domain's report", func() bool { return len(facts().Domains) == 1 })
	}
	if domains := agent.Domains(); len(domains) != 1 || domains[0].UUID != vm {
		t.Errorf("the node has %+v", domains)
	}
	if !l.Order(2, operation.Order{Node: "n1", Operation: "stop", Step: 1, Action: operation.ActStop, VM: vm, VMName: "web", Epoch: 1}) {
		t.Fatal("there is no session to send the order on")
	}
	if answer := <-l.answers; answer.Outcome != operation.OutcomeDone {
		t.Errorf("the answer to the stop is %+v", answer)
	}
	eventually(t, "the report that the domain is gone", func() bool { return len(facts().Domains) == 0 })
}
