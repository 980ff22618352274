package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// paced is between two messages of an agent in G1 and G2; quick in G3 and G4.
	paced = 5 * time.Second
	quick = time.Second
	// sampleSize is about how large a message is, in bytes.
	sampleSize = 1000
	// filesPerAgent are a connection's ends, here and in the coordinator, and what a handshake needs besides.
	filesPerAgent = 4
)

// sinkFlag makes this program the bare sink of G2: it takes what agents send on a port and does nothing with it.
const sinkFlag = "sink"

// swarm are agents that do nothing but report: one connection, one session and one message each interval.
type swarm struct {
	identities []simagent.Identity
	address    string // of whom they report to
	every      time.Duration

	welcomed atomic.Int64 // sessions that are open
	sent     atomic.Int64
	cancel   context.CancelFunc
	ended    sync.WaitGroup
}

// run opens all sessions, a few at a time, and keeps them open until stop.
func (s *swarm) run(ctx context.Context) {
	ctx, s.cancel = context.WithCancel(ctx)
	for i := range s.identities {
		s.ended.Go(func() { s.agent(ctx, i) })
	}
}

func (s *swarm) stop() {
	s.cancel()
	s.ended.Wait()
}

// awaitAll waits until all have a session.
func (s *swarm) awaitAll(ctx context.Context, limit time.Duration) error {
	return testbed.Await(ctx, "the agents' sessions", limit, func(context.Context) error {
		if open := int(s.welcomed.Load()); open < len(s.identities) {
			return fmt.Errorf("%d of %d are open", open, len(s.identities))
		}
		return nil
	})
}

// agent keeps one session open as a real agent would: the pause before another try is drawn anew each time, and grows.
func (s *swarm) agent(ctx context.Context, number int) {
	identity := s.identities[number]
	secure, err := pki.ClientConfig(identity.Files, pki.RolePeer)
	if err != nil {
		return // awaitAll tells that one is missing
	}
	client := rpc.NewHTTPClient(secure)
	defer client.CloseIdleConnections()
	for tries := 0; ctx.Err() == nil; tries++ {
		began := time.Now()
		s.session(ctx, client, identity)
		if time.Since(began) > paced {
			tries = 0
		}
		_ = testbed.Pause(ctx, mathrand.N(500*time.Millisecond<<min(tries, 6)))
	}
}

// session reports until the session ends.
func (s *swarm) session(ctx context.Context, client *http.Client, identity simagent.Identity) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := berthv1connect.NewAgentServiceClient(client, "https://"+s.address).Session(ctx)
	hangUp := context.AfterFunc(ctx, func() { _ = stream.CloseRequest() })
	defer hangUp()
	sequence := uint64(0)
	send := func(message *berthv1.SessionRequest) error {
		sequence++
		message.Sequence = sequence
		return stream.Send(message)
	}
	hello := &berthv1.Hello{NodeId: identity.NodeID, ClusterId: identity.ClusterID, Incarnation: rand.Text(), Version: "simulated"}
	if send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Hello{Hello: hello}}) != nil {
		return
	}
	if first, err := stream.Receive(); err != nil || first.GetWelcome() == nil {
		return
	}
	s.welcomed.Add(1)
	defer s.welcomed.Add(-1)
	go func() { // what is asked of it is not heeded
		for {
			if _, err := stream.Receive(); err != nil {
				cancel()
				return
			}
		}
	}()
	if send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: inventoryOf(identity)}}) != nil {
		return
	}
	for wait := mathrand.N(s.every); testbed.Pause(ctx, wait) == nil; wait = s.every {
		if send(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: reportOf(0)}}) != nil {
			return
		}
		s.sent.Add(1)
	}
}

func inventoryOf(identity simagent.Identity) *berthv1.InventoryReport {
	return &berthv1.InventoryReport{Node: &berthv1.NodeInventory{
		HostName: identity.Name, HostUuid: identity.HostUUID, MachineId: identity.HostUUID, BootId: identity.HostUUID,
		MemoryBytes: int64(testbed.SimulatedSize.Memory), Cpus: int32(testbed.SimulatedSize.CPUs), Arch: "x86_64", DomainTypes: []string{"qemu"},
		CollectedAt: timestamppb.Now(),
	}}
}

// reportOf is a sample of a node with some domains, of about sampleSize bytes. Busy is what its load says.
func reportOf(busy float64) *berthv1.NodeTelemetry {
	total, free := int64(testbed.SimulatedSize.Memory), int64(testbed.SimulatedSize.Memory)/2
	sample := &berthv1.NodeTelemetry{
		SampledAt: timestamppb.Now(), MemoryTotalBytes: &total, MemoryFreeBytes: &free, MemoryAvailableBytes: &free, Load1: &busy,
		CpuBusyRatio: &busy,
	}
	one, cpus, ratio := int64(64<<20), int32(1), 0.01
	for range (sampleSize - 80) / 72 { // each domain is about 72 bytes
		sample.Domains = append(sample.Domains, &berthv1.DomainTelemetry{
			Uuid: "00000000-0000-4000-8000-000000000000", CpuRatio: &ratio, RssBytes: &one, BalloonBytes: &one,
			MaximumMemoryBytes: &one, Vcpus: &cpus,
		})
	}
	return sample
}

// enrolMany enrols n nodes, one after the other: several at a time from one address look like somebody who guesses tokens.
func enrolMany(ctx context.Context, c *testbed.Coordinators, n int) ([]simagent.Identity, error) {
	tokens, identities := make([]string, n), make([]simagent.Identity, n)
	name := func(i int) string { return fmt.Sprintf("node%05d", i) }
	group, making := errgroup.WithContext(ctx)
	group.SetLimit(together)
	for i := range n {
		group.Go(func() (err error) {
			tokens[i], err = c.Token(making, pki.PurposeAgent, name(i))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i := range n {
		var err error
		if identities[i], err = simagent.Enrol(ctx, c.Members[0].Listen.API, tokens[i], name(i), filepath.Join(c.Dir, name(i))); err != nil {
			return nil, err
		}
	}
	return identities, nil
}

// heard is what G1 to G4 measure.
type heard struct {
	agents, returning int
	cpu               report.Figures // of the coordinator, in cores, with so many agents at 1 KB every 5 s
	sink              report.Figures // of the bare sink, likewise
	memory            testbed.Memory
	rate, sinkRate    float64 // messages a second
	back              time.Duration
	visible           report.Figures // from the sending of a message until a decision is made on it
}

func measureG(ctx context.Context, b *bench) (_ []report.Row, err error) {
	h := heard{agents: b.rounds(500, 10_000), returning: b.rounds(500, 5_000)}
	if err := testbed.RaiseFileLimit(uint64(filesPerAgent*h.agents + 10_000)); err != nil {
		return nil, err
	}
	c, err := testbed.RaiseCoordinators(ctx, b.berth(), b.folder("g"), 1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	identities, err := enrolMany(ctx, c, h.agents)
	if err != nil {
		return nil, err
	}
	if err := h.load(ctx, b, c, identities); err != nil {
		return nil, err
	}
	if err := h.comeBack(ctx, c, identities[:h.returning]); err != nil {
		return nil, err
	}
	return h.rows(), nil
}

// load lets the agents report to the coordinator and to a bare sink, in turns.
func (h *heard) load(ctx context.Context, b *bench, c *testbed.Coordinators, identities []simagent.Identity) error {
	lead := c.Members[0]
	addresses, err := testbed.FreeAddresses(1)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	sink, err := testbed.StartProcess(filepath.Join(c.Dir, "sink.log"), self, "-"+sinkFlag, addresses[0]+","+filepath.Join(lead.Data(), "tls"))
	if err != nil {
		return err
	}
	defer func() { _ = sink.End(syscall.SIGKILL) }()
	for range b.rounds(1, 2) {
		cores, rate, err := h.turn(ctx, b, sink.PID(), addresses[0], identities)
		if err != nil {
			return errors.Join(err, sink.Alive())
		}
		h.sink, h.sinkRate = append(h.sink, cores), rate
		if cores, rate, err = h.turn(ctx, b, lead.Process.PID(), lead.Listen.Agent, identities); err != nil {
			return err
		}
		h.cpu, h.rate = append(h.cpu, cores), rate
	}
	return nil
}

// turn is how many cores a process takes while all agents report to it.
func (h *heard) turn(
	ctx context.Context, b *bench, pid int, address string, identities []simagent.Identity,
) (cores, rate float64, err error) {
	s := &swarm{identities: identities, address: address, every: paced}
	s.run(ctx)
	defer s.stop()
	if err := s.awaitAll(ctx, 3*time.Minute); err != nil {
		return 0, 0, err
	}
	if err := testbed.Pause(ctx, paced); err != nil { // everybody has reported once
		return 0, 0, err
	}
	before, err := testbed.CPUTime(pid)
	if err != nil {
		return 0, 0, err
	}
	begun, sent := time.Now(), s.sent.Load()
	if err := testbed.Pause(ctx, time.Duration(b.rounds(10, 30))*time.Second); err != nil {
		return 0, 0, err
	}
	lasted := time.Since(begun).Seconds()
	after, err := testbed.CPUTime(pid)
	if err != nil {
		return 0, 0, err
	}
	if h.memory, err = testbed.Resident(pid); err != nil {
		return 0, 0, err
	}
	if open := int(s.welcomed.Load()); open < len(identities) {
		return 0, 0, fmt.Errorf("%d of %d sessions have ended", len(identities)-open, len(identities))
	}
	return (after - before).Seconds() / lasted, float64(s.sent.Load()-sent) / lasted, nil
}

// comeBack restarts the coordinator under its agents, and then looks how soon a decision knows what one of them says.
func (h *heard) comeBack(ctx context.Context, c *testbed.Coordinators, identities []simagent.Identity) error {
	lead := c.Members[0]
	s := &swarm{identities: identities[1:], address: lead.Listen.Agent, every: quick}
	s.run(ctx)
	defer s.stop()
	if err := s.awaitAll(ctx, 2*time.Minute); err != nil {
		return err
	}
	if err := c.Stop(lead, syscall.SIGKILL); err != nil {
		return err
	}
	begun := time.Now()
	if err := c.Start(lead); err != nil {
		return err
	}
	for s.welcomed.Load() == int64(len(s.identities)) { // until they have noticed
		if err := testbed.Pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	if err := s.awaitAll(ctx, 5*time.Minute); err != nil {
		return err
	}
	h.back = time.Since(begun)
	return h.see(ctx, c, identities[0])
}

// see sends samples of one node, and asks for decisions until one was made on the sample. It takes the time of a call too.
func (h *heard) see(ctx context.Context, c *testbed.Coordinators, identity simagent.Identity) error {
	lead := c.Members[0]
	secure, err := pki.ClientConfig(identity.Files, pki.RolePeer)
	if err != nil {
		return err
	}
	client := rpc.NewHTTPClient(secure)
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream := berthv1connect.NewAgentServiceClient(client, "https://"+lead.Listen.Agent).Session(ctx)
	defer stream.CloseRequest()
	messages := []*berthv1.SessionRequest{
		{Sequence: 1, Message: &berthv1.SessionRequest_Hello{Hello: &berthv1.Hello{
			NodeId: identity.NodeID, ClusterId: identity.ClusterID, Incarnation: rand.Text(), Version: "simulated",
		}}},
		{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: inventoryOf(identity)}},
	}
	for i := range 102 {
		messages = append(messages, &berthv1.SessionRequest{Sequence: uint64(3 + i), Message: &berthv1.SessionRequest_Telemetry{
			Telemetry: reportOf(float64(i+1) / 1000 * float64(testbed.SimulatedSize.CPUs)),
		}})
	}
	for i, message := range messages {
		sent := time.Now()
		if err := stream.Send(message); err != nil {
			return err
		}
		if message.GetTelemetry() == nil {
			continue
		}
		want := *message.GetTelemetry().Load1
		for {
			answer, err := lead.API.GetNode(ctx, connect.NewRequest(&berthv1.GetNodeRequest{Node: identity.Name}))
			if err != nil {
				return err
			}
			if got := answer.Msg.GetNode().GetTelemetry().GetLoad1(); got == want {
				break
			}
			if time.Since(sent) > 10*time.Second {
				return fmt.Errorf("sample %d is not seen after %s", i, time.Since(sent))
			}
		}
		if i > 3 {
			h.visible.Add(time.Since(sent))
		}
	}
	return nil
}

func (h *heard) rows() []report.Row {
	cost, bare := h.cpu.Median()/h.rate, h.sink.Median()/h.sinkRate
	large, back := report.Both(report.Judge(h.cpu.Median(), 0.25), report.Judge(h.memory.All, 1e9)), report.Judge(h.back.Seconds(), 15)
	if h.agents < 10_000 { // fewer prove nothing
		large, back = report.NoVerdict, report.NoVerdict
	}
	return []report.Row{
		{
			Goal: "G1", What: fmt.Sprintf("%d agents on one coordinator, mutual TLS, %d bytes every %s, taken in", h.agents, sampleSize, paced),
			Measured: fmt.Sprintf("%s of a core; %s\n%s", report.Digits(h.cpu.Median()), h.memory, report.PerSecond(h.rate)),
			Wanted:   "10,000 in <= 0.25 core, <= 1 GB", Verdict: large,
		},
		{
			Goal: "G2", What: "CPU of one message", Measured: report.Seconds(cost),
			Against: fmt.Sprintf("a bare sink of the same stream, in turns: %s\nratio: %s", report.Seconds(bare), report.Times(cost/bare)),
			Wanted:  "<= 2x (stretch 1.4x)", Verdict: report.Judge(cost/bare, 2),
		},
		{
			Goal: "G3", What: fmt.Sprintf("the coordinator is killed and started: until %d agents are back", h.returning-1),
			Measured: report.Seconds(h.back.Seconds()), Against: "the goal's own limit", Wanted: "5,000 in <= 15 s (stretch 5 s)", Verdict: back,
		},
		{
			Goal: "G4", What: fmt.Sprintf(
				"from the sending of a sample until the coordinator's answers rest on it, call included; %d agents every %s", h.returning,
				quick,
			),
			Measured: h.visible.Latency(), Against: "the goal's own limit", Wanted: "p99 <= 50 ms (stretch 10 ms)", Verdict: report.Judge(
				h.visible.Quantile(0.99), 0.05,
			),
		},
	}
}

// sink takes what agents send and drops it. It is what a program can at least be that agents report to over this protocol.
type sink struct {
	berthv1connect.UnimplementedAgentServiceHandler
}

// Session implements berthv1connect.AgentServiceHandler.
func (sink) Session(_ context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse]) error {
	if _, err := stream.Receive(); err != nil {
		return err
	}
	if err := stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{}}}); err != nil {
		return err
	}
	for {
		if _, err := stream.Receive(); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// runSink is what this program does with sinkFlag, whose value is ADDRESS,DIRECTORY: where to listen, and the certificate of
// a coordinator.
func runSink(value string) error {
	address, dir, _ := strings.Cut(value, ",")
	files := pki.Files{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "peer.pem"), Key: filepath.Join(dir, "peer.key")}
	secure, err := pki.ServerConfig(files, tls.RequireAndVerifyClientCert)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewAgentServiceHandler(sink{}))
	return rpc.NewServer(address, rpc.WithIdentity(mux), secure, hclog.NewNullLogger()).ListenAndServeTLS("", "")
}

var sinkAt = flag.String(
	sinkFlag, "", "take what agents send at ADDRESS, with the certificate in DIRECTORY, and drop it: ADDRESS,DIRECTORY; for G2 itself",
)
