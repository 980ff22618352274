package session

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/agent/hoststat"
	"berth/agent/hypervisor"
	"berth/agent/hypervisor/fake"
	"berth/agent/tasks"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// leader is a coordinator's agent listener: it does what serve says with each stream.
type leader struct {
	berthv1connect.UnimplementedAgentServiceHandler

	serve  func(context.Context, *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse]) error
	tunnel func(context.Context, *connect.BidiStream[berthv1.TunnelRequest, berthv1.TunnelResponse]) error
}

func (l *leader) Session(ctx context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse]) error {
	return l.serve(ctx, stream)
}

func listen(t *testing.T, l *leader) (address string, client *http.Client) {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewAgentServiceHandler(l))
	server := httptest.NewUnstartedServer(mux)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return strings.TrimPrefix(server.URL, "https://"), server.Client()
}

// relay sends what comes until end is called, and that waits for it: nothing may be sent once a stream has been served.
func relay[T any](ctx context.Context, from <-chan T, send func(T)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	sending.Go(func() {
		for {
			select {
			case one := <-from:
				send(one)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		sending.Wait()
	}
}

// work stands for the jobs: it answers each command at once.
type work struct {
	results chan *berthv1.CommandResult
	cancels chan string
	ended   atomic.Pointer[[]telemetry.Ending]
}

// tooOld is a term that work does not follow.
const tooOld = 0

func (w *work) Do(_ context.Context, command *berthv1.Command) {
	w.results <- &berthv1.CommandResult{
		OperationId: command.GetOperationId(), Step: command.GetStep(), Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_DONE,
	}
}
func (w *work) Cancel(operation string, _ uint32)         { w.cancels <- operation }
func (w *work) Results() <-chan *berthv1.CommandResult    { return w.results }
func (w *work) Progress() <-chan *berthv1.CommandProgress { return nil }
func (w *work) Saw(hypervisor.Event)                      {}
func (w *work) LastRuns() []telemetry.LastRun             { return nil }
func (w *work) Endings() []telemetry.Ending {
	if ended := w.ended.Load(); ended != nil {
		return *ended
	}
	return nil
}
func (w *work) Ailing() error     { return nil }
func (w *work) Running() []string { return []string{"op-before"} }

func (w *work) Follow(term uint64) error {
	if term == tooOld {
		return errors.New("it is from an older leader")
	}
	return nil
}

type agent struct {
	*Session
	node *fake.Hypervisor
	work *work
	stop func()
}

func run(t *testing.T, client *http.Client, remember func([]string), addresses ...string) *agent {
	t.Helper()
	return runWith(t, client, nil, remember, addresses...)
}

// runWith runs an agent with its own tasks, or, with nil, the real ones.
func runWith(t *testing.T, client *http.Client, own Tasks, remember func([]string), addresses ...string) *agent {
	t.Helper()
	node := fake.NewWire().Host("node1")
	if own == nil {
		own = &tasks.Tasks{Hypervisor: node, Logger: hclog.NewNullLogger()}
	}
	w := &work{results: make(chan *berthv1.CommandResult, 8), cancels: make(chan string, 8)}
	s := New(Config{
		NodeID: "n1", ClusterID: "c", Incarnation: "boot/1", Version: "test", Addresses: addresses, Remember: remember, Client: client,
		Hypervisor: node, Sampler: telemetry.NewSampler(node, hoststat.New()),
		Collector: &telemetry.Collector{Hypervisor: node, MigrationURI: "qemu+tls://node1/system"},
		Jobs:      w, Tasks: own, Logger: hclog.NewNullLogger(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		_ = s.Run(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return &agent{Session: s, node: node, work: w, stop: cancel}
}

func welcome() *berthv1.SessionResponse {
	return &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{
		ClusterId: "c", Term: 1, TelemetryIntervalSeconds: 0.05, InventoryIntervalSeconds: 60,
	}}}
}

// until reads the stream until want is content. Sequence numbers must grow by one.
func until(
	t *testing.T, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse], last *uint64,
	want func(*berthv1.SessionRequest) bool,
) bool {
	for {
		message, err := stream.Receive()
		if err != nil {
			return false
		}
		if *last != 0 && message.GetSequence() != *last+1 {
			t.Errorf("sequence %d after %d", message.GetSequence(), *last)
		}
		*last = message.GetSequence()
		if want(message) {
			return true
		}
	}
}

func wait[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(20 * time.Second):
		t.Fatalf("waited too long for %s", what)
		panic("unreachable")
	}
}

func TestHelloInventoryTelemetryCommandResult(t *testing.T) {
	seen := make(chan string, 16)
	address, client := listen(t, &leader{serve: func(
		_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		var last uint64
		until(t, stream, &last, func(m *berthv1.SessionRequest) bool {
			hello := m.GetHello()
			if hello.GetNodeId() != "n1" || hello.GetIncarnation() != "boot/1" || len(hello.GetRunningOperations()) != 1 {
				t.Errorf("the first message is %v", m)
			}
			return true
		})
		if err := stream.Send(welcome()); err != nil {
			return err
		}
		var inventory, sample bool
		until(t, stream, &last, func(m *berthv1.SessionRequest) bool {
			inventory = inventory || m.GetInventory().GetNode().GetMigrationUri() == "qemu+tls://node1/system"
			sample = sample || m.GetTelemetry().GetMemoryTotalBytes() > 0
			return inventory && sample
		})
		seen <- "reports"
		if err := stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Command{
			Command: &berthv1.Command{OperationId: "op", Step: 3},
		}}); err != nil {
			return err
		}
		until(t, stream, &last, func(m *berthv1.SessionRequest) bool {
			return m.GetResult().GetOperationId() == "op" && m.GetResult().GetStep() == 3
		})
		seen <- "result"
		if err := stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Resync{
			Resync: &berthv1.ResyncRequest{Reason: "test"},
		}}); err != nil {
			return err
		}
		until(t, stream, &last, func(m *berthv1.SessionRequest) bool { return m.GetInventory() != nil })
		seen <- "resync"
		until(t, stream, &last, func(m *berthv1.SessionRequest) bool {
			return m.GetDomainChange().GetDomain().GetState() == berthv1.DomainState_DOMAIN_STATE_RUNNING
		})
		seen <- "started"
		until(t, stream, &last, func(m *berthv1.SessionRequest) bool {
			return m.GetDomainChange().GetDomain().GetState() == berthv1.DomainState_DOMAIN_STATE_ABSENT
		})
		seen <- "gone"
		return nil
	}})
	a := run(t, client, nil, address)
	for _, what := range []string{"reports", "result", "resync"} {
		if got := wait(t, what, seen); got != what {
			t.Fatalf("%s, want %s", got, what)
		}
	}
	const xml = `<domain type="kvm"><name>web1</name><uuid>11111111-2222-4333-8444-555555555555</uuid>` +
		`<memory>65536</memory><vcpu>1</vcpu><os><type>hvm</type></os></domain>`
	if err := a.node.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
	wait(t, "the change that a start is", seen)
	if err := a.node.Destroy(t.Context(), "11111111-2222-4333-8444-555555555555", 0); err != nil {
		t.Fatal(err)
	}
	wait(t, "the change that an end is", seen)
}

func TestFollowsARedirectAndRemembersTheMembers(t *testing.T) {
	reached := make(chan struct{}, 1)
	second, client := listen(t, &leader{serve: func(
		ctx context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		if err := stream.Send(welcome()); err != nil {
			return err
		}
		err := stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Members{Members: &berthv1.Members{
			AgentAddresses: []string{"elsewhere:7421", "new:7421", "newer:7421"},
		}}})
		reached <- struct{}{}
		<-ctx.Done()
		return err
	}})
	first, _ := listen(t, &leader{serve: func(
		_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		return stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Redirect{Redirect: &berthv1.Redirect{
			LeaderAddress: second, AgentAddresses: []string{second, "elsewhere:7421"},
		}}})
	}})
	remembered := make(chan []string, 4)
	run(t, client, func(addresses []string) { remembered <- addresses }, first)
	wait(t, "the leader", reached)
	for _, want := range []int{2, 3} { // of the redirect, and of a session that is open
		if got := wait(t, "the addresses", remembered); len(got) != want {
			t.Errorf("remembers %v, want %d", got, want)
		}
	}
}

func TestComesBackWhenTheLeaderGoes(t *testing.T) {
	sessions := make(chan struct{}, 8)
	address, client := listen(t, &leader{serve: func(
		_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		sessions <- struct{}{}
		if err := stream.Send(welcome()); err != nil {
			return err
		}
		return connect.NewError(connect.CodeUnavailable, nil) // the leadership is lost at once
	}})
	run(t, client, nil, address)
	for range 3 {
		wait(t, "another session", sessions)
	}
}

// A libvirtd that hangs or goes away is told of at once, not with the next inventory.
func TestTellsWhenLibvirtGoesAndComes(t *testing.T) {
	told := make(chan bool, 16)
	address, client := listen(t, &leader{serve: func(
		_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
	) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		if err := stream.Send(welcome()); err != nil {
			return err
		}
		var last uint64
		for was := ""; ; {
			message, err := stream.Receive()
			if err != nil {
				return nil
			}
			last = message.GetSequence()
			if status := message.GetLibvirt(); status != nil && status.String() != was {
				was = status.String()
				if status.GetConnected() == (status.GetError() != "") {
					t.Errorf("message %d: %v", last, status)
				}
				told <- status.GetConnected()
			}
		}
	}})
	a := run(t, client, nil, address)
	if !wait(t, "the first word", told) {
		t.Fatal("it begins without libvirt")
	}
	a.node.Stop()
	if wait(t, "that it is gone", told) {
		t.Error("still there")
	}
	a.node.Restart()
	if !wait(t, "that it is back", told) {
		t.Error("not back")
	}
}

func TestKeepsAwayFromAnotherClusterAndFromAnOldLeader(t *testing.T) {
	for name, wrong := range map[string]func(*berthv1.Welcome){
		"another cluster": func(w *berthv1.Welcome) { w.ClusterId = "another" },
		"an old leader":   func(w *berthv1.Welcome) { w.Term = tooOld },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan error, 8)
			address, client := listen(t, &leader{serve: func(
				_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
			) error {
				if _, err := stream.Receive(); err != nil {
					return err
				}
				refused := welcome()
				wrong(refused.GetWelcome())
				if err := stream.Send(refused); err != nil {
					return err
				}
				message, err := stream.Receive()
				if err == nil {
					t.Errorf("it reported to %s: %v", name, message)
				}
				ended <- err
				return nil
			}})
			run(t, client, nil, address)
			if err := wait(t, "the end of the stream", ended); err == nil {
				t.Error("the stream stayed open")
			}
		})
	}
}

func TestPauseGrowsAndStaysWithinItsLimit(t *testing.T) {
	for tries := 1; tries < 100; tries++ {
		for range 50 {
			p := pause(tries)
			if most := longestPause + quickPause; p < 0 || p > most || (tries <= quickTries && p > quickPause) {
				t.Fatalf("try %d waits %s", tries, p)
			}
		}
	}
}
