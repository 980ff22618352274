package adversary

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"google.golang.org/protobuf/proto"

	"berth/coordinator/agents"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const cluster = "c1"

// leader is a coordinator's port for agents on loopback, without Raft. Nodes n1 to n9 are on record.
type leader struct {
	*testing.T
	server    *agents.Server
	store     *state.Store
	index     uint64
	inventory *inventory.Store
	answers   chan operation.Answer
	authority *pki.Authority
	url       string
}

func lead(t *testing.T) *leader {
	t.Helper()
	l := &leader{
		T: t, store: state.NewStore(), inventory: inventory.New(time.Now, hclog.NewNullLogger()), answers: make(chan operation.Answer, 100),
	}
	for i := 1; i <= 9; i++ {
		id := fmt.Sprint("n", i)
		l.apply(state.Command{
			Expect: []state.Expectation{{Table: state.Nodes, ID: id}},
			Nodes:  []model.Node{{ID: id, Name: "node" + id[1:], Cluster: model.DefaultCluster}},
		})
	}
	l.server = agents.New(agents.Config{
		ClusterID: cluster, Member: "m1", Records: l.store, Inventory: l.inventory, Log: hclog.NewNullLogger(),
		Leader: func() string { return "m1" }, Connected: func(string) {},
		Answered: func(answer operation.Answer) { l.answers <- answer },
	})
	var err error
	l.authority, err = pki.NewAuthority(cluster, time.Now())
	l.check(err)
	secure, err := pki.ServerConfig(l.certify(pki.RolePeer, "m1"), tls.RequireAndVerifyClientCert)
	l.check(err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	l.check(err)
	l.url = "https://" + listener.Addr().String()
	server := rpc.NewServer("", l.server.Handler(), secure, hclog.NewNullLogger())
	go func() { _ = server.ServeTLS(listener, "", "") }() // ends with Close
	t.Cleanup(func() {
		l.server.Stop()
		_ = server.Close()
	})
	l.server.Lead(1)
	return l
}

func (l *leader) check(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *leader) apply(command state.Command) {
	l.Helper()
	l.index++
	command.Key, command.Kind, command.At = fmt.Sprint("setup", l.index), "setup", time.Now()
	entry, err := command.Encode()
	l.check(err)
	if result, ok := l.store.FSM().Apply(&raft.Log{Index: l.index, Data: entry}).(state.Result); !ok || result.Refusal != nil {
		l.Fatalf("refused: %+v", result)
	}
}

func (l *leader) certify(role pki.Role, id string) pki.Files {
	l.Helper()
	request, key, err := pki.NewRequest(id)
	l.check(err)
	identity := pki.Identity{Role: role, ID: id, Name: id, ClusterID: cluster}
	certificate, err := l.authority.Sign(request, identity, []string{"127.0.0.1"}, time.Now(), time.Hour)
	l.check(err)
	dir := l.TempDir()
	files := pki.Files{
		CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "own.pem"), Key: filepath.Join(dir, "own.key"),
	}
	for path, content := range map[string][]byte{files.CA: l.authority.CertificatePEM(), files.Certificate: certificate, files.Key: key} {
		l.check(os.WriteFile(path, content, 0o600))
	}
	return files
}

// client speaks with the certificate of a node's agent.
func (l *leader) client(node string) *http.Client {
	l.Helper()
	config, err := pki.ClientConfig(l.certify(pki.RoleAgent, node), pki.RolePeer)
	l.check(err)
	client := rpc.NewHTTPClient(config)
	l.Cleanup(client.CloseIdleConnections)
	return client
}

// agent is an open session.
type agent struct {
	*leader
	node     string
	sequence uint64
	stream   *connect.BidiStreamForClient[berthv1.SessionRequest, berthv1.SessionResponse]
}

// open opens a session with an agent's own library.
func (l *leader) open(node string, options ...connect.ClientOption) *agent {
	l.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l.Cleanup(cancel)
	a := &agent{leader: l, node: node}
	a.stream = berthv1connect.NewAgentServiceClient(l.client(node), l.url, options...).Session(ctx)
	l.check(a.say(hello(node)))
	welcome, err := a.stream.Receive()
	l.check(err)
	if welcome.GetWelcome() == nil {
		l.Fatalf("%s is answered %v", node, welcome)
	}
	return a
}

func hello(node string) *berthv1.SessionRequest {
	return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		NodeId: node, ClusterId: cluster, Incarnation: "boot/" + node,
	}}}
}

func (a *agent) say(message *berthv1.SessionRequest) error {
	a.sequence++
	message.Sequence = a.sequence
	return a.stream.Send(message)
}

// list reports domains.
func (a *agent) list(domains ...*berthv1.Domain) {
	a.Helper()
	a.check(a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{
		Inventory: &berthv1.InventoryReport{Node: &berthv1.NodeInventory{HostName: a.node}, Domains: domains},
	}}))
}

// works fails unless an agent is heard.
func (a *agent) works(uuid string) {
	a.Helper()
	a.list(&berthv1.Domain{Uuid: uuid, Name: "web", State: berthv1.DomainState_DOMAIN_STATE_RUNNING})
	a.eventually("the inventory of "+a.node, func() bool {
		domains := a.inventory.Domains(a.node)
		return len(domains) == 1 && domains[0].GetUuid() == uuid
	})
}

func (l *leader) eventually(what string, is func() bool) {
	l.Helper()
	for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			l.Fatalf("%s is not there", what)
		}
	}
}

// envelope is a message as a stream has it.
func envelope(flags byte, data []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{flags}, uint32(len(data))), data...)
}

func encode(t *testing.T, message proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(message)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// raw sends bytes of its own to a procedure, and gives the code of the error that the stream ends with.
func (l *leader) raw(client *http.Client, procedure, contentType string, body io.Reader) string {
	l.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+procedure, body)
	l.check(err)
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Connect-Protocol-Version", "1")
	if procedure == berthv1connect.AgentServiceSessionProcedure {
		request.Header.Set("Connect-Content-Encoding", "gzip")
	}
	response, err := client.Do(request)
	l.check(err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Status
	}
	all, _ := io.ReadAll(response.Body)
	_, last, found := bytes.Cut(all, []byte(`{"error"`))
	var end struct{ Code string }
	if !found || json.Unmarshal(bytes.TrimSuffix(bytes.TrimPrefix(last, []byte(":")), []byte("}")), &end) != nil {
		return fmt.Sprintf("no error in %q", all)
	}
	return end.Code
}
