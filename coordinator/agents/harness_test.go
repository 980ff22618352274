package agents

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
)

const testCluster = "c1"

var errInterrupted = io.ErrClosedPipe

// rig is a Server on a real state and inventory.
type rig struct {
	*Server
	store     *state.Store
	inventory *inventory.Store
	index     uint64

	mu        sync.Mutex
	leader    string
	answers   []operation.Answer
	connected []string
}

func newRig(t *testing.T, nodes ...string) *rig {
	t.Helper()
	store := state.NewStore()
	r := &rig{store: store, inventory: inventory.New(time.Now, hclog.NewNullLogger())}
	r.Server = New(Config{
		ClusterID: testCluster, Member: "m1", Records: store, Inventory: r.inventory,
		Leader: func() string {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.leader
		},
		Answered: func(a operation.Answer) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.answers = append(r.answers, a)
		},
		Connected: func(node string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.connected = append(r.connected, node)
		},
		Log: hclog.NewNullLogger(),
	})
	command := state.Command{Key: "setup", Kind: "setup", Caller: "test", At: time.Now()}
	for _, id := range nodes {
		command.Nodes = append(command.Nodes, model.Node{ID: id, Name: "name-" + id, Cluster: model.DefaultCluster})
		command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: id})
	}
	for _, id := range []string{"m1", "m2"} {
		command.Members = append(command.Members, model.Member{
			ID: id, Name: "name-" + id, RaftAddress: id + ":7422", APIAddress: id + ":7420", AgentAddress: id + ":7421",
		})
		command.Expect = append(command.Expect, state.Expectation{Table: state.Members, ID: id})
	}
	r.apply(t, command)
	return r
}

// apply stores a command as the log would.
func (r *rig) apply(t *testing.T, command state.Command) {
	t.Helper()
	data, err := command.Encode()
	if err != nil {
		t.Fatal(err)
	}
	r.index++
	result, ok := r.store.FSM().Apply(&raft.Log{Index: r.index, Data: data}).(state.Result)
	if !ok || result.Refusal != nil {
		t.Fatalf("setup was refused: %+v", result.Refusal)
	}
}

func (r *rig) allAnswers() []operation.Answer {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]operation.Answer{}, r.answers...)
}

// agent is a fake agent on an in-memory stream.
type agent struct {
	node        string
	incarnation string
	sequence    uint64

	up, down    chan any // requests; responses
	interrupted chan struct{}
	once        sync.Once
	deaf        bool     // never reads
	knows       []string // capabilities that it tells
	result      chan error
	leave       context.CancelFunc // goes away while the server does not read
}

// dial starts the service of a new stream for the agent.
func (r *rig) dial(node string) *agent {
	ctx, leave := context.WithCancel(context.Background())
	a := &agent{
		node: node, incarnation: "boot-1", knows: capability.Names(), up: make(chan any, 100), down: make(chan any, 1000),
		interrupted: make(chan struct{}), result: make(chan error, 1), leave: leave,
	}
	go func() {
		a.result <- r.serve(ctx, a.identity(), "10.0.0.1", a, func() { a.once.Do(func() { close(a.interrupted) }) })
	}()
	return a
}

func (a *agent) identity() pki.Identity {
	return pki.Identity{Role: pki.RoleAgent, ID: a.node, Name: "name-" + a.node, ClusterID: testCluster}
}

// Receive is the server's side.
func (a *agent) Receive() (*berthv1.SessionRequest, error) {
	select {
	case <-a.interrupted:
		return nil, errInterrupted
	case m := <-a.up:
		if request, ok := m.(*berthv1.SessionRequest); ok {
			return request, nil
		}
		return nil, io.EOF
	}
}

// Send is the server's side.
func (a *agent) Send(response *berthv1.SessionResponse) error {
	if a.deaf {
		<-a.interrupted
		return errInterrupted
	}
	a.down <- response
	return nil
}

func (a *agent) say(message *berthv1.SessionRequest) {
	a.sequence++
	message.Sequence = a.sequence
	a.up <- message
}

func (a *agent) hello() {
	a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
		Capabilities: a.knows,
		NodeId:       a.node, Incarnation: a.incarnation, ClusterId: testCluster, Version: "test",
	}}})
}

func (a *agent) telemetry() {
	free := int64(1 << 30)
	a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{
		Telemetry: &berthv1.NodeTelemetry{MemoryAvailableBytes: &free},
	}})
}

func (a *agent) hangUp() { a.up <- io.EOF }

// follow makes this member know that another one leads, or none.
func (r *rig) follow(leader string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leader = leader
}

// heard is everything that the server has sent so far.
func (a *agent) heard() []*berthv1.SessionResponse {
	var all []*berthv1.SessionResponse
	for {
		select {
		case m := <-a.down:
			all = append(all, m.(*berthv1.SessionResponse))
		default:
			return all
		}
	}
}
