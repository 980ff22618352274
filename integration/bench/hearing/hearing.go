// Package hearing measures what it takes a coordinator to hear its agents: G1 to G4. Agents are processes of their own that do nothing
// but report, so that nobody needs more than 20,000 open files.
package hearing

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/simagent"
	"berth/integration/simagent/crew"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Goals are those that All measures.
var Goals = []string{"G1", "G2", "G3", "G4"}

const (
	// paced is between two messages of an agent in G1 and G2; quick in G3 and G4.
	paced = 5 * time.Second
	quick = time.Second
	// patience is how long the agents may take to have their sessions.
	patience = 5 * time.Minute
	// samples are those of G4 that count, after the first ones, with which everything becomes warm.
	samples, warm = 100, 2
)

// sinkRole makes this program the bare sink of G2: it takes what agents send on a port and does nothing with it.
const sinkRole = "bare-sink"

// Child does the work of the bare sink, or of a process of agents, and ends the process if it is one of these. A program that measures
// calls it first of all.
func Child() {
	crew.Child()
	if len(os.Args) != 4 || os.Args[1] != sinkRole {
		return
	}
	fmt.Fprintf(os.Stderr, "%s: %v\n", sinkRole, runSink(os.Args[2], os.Args[3]))
	os.Exit(1)
}

// Heard is what was measured.
type Heard struct {
	CPU     report.Figures // of the coordinator, in cores, with all agents at 1 KB every 5 s
	Memory  testbed.Memory // of the coordinator with all of them
	Rate    float64        // messages a second
	Visible report.Figures // from the sending of a message until a decision is made on it, in seconds

	agents, returning int
	sink              report.Figures // of the bare sink, as CPU
	sinkRate          float64
	back              time.Duration
}

// All takes all rows, by the program that was built, with data in a folder that is made. Quick is with few agents.
func All(ctx context.Context, program, folder string, fast bool) ([]report.Row, error) {
	m := &Heard{agents: 10_000, returning: 5_000}
	turns, lasting := 2, 30*time.Second
	if fast {
		m.agents, m.returning, turns, lasting = 500, 500, 1, 10*time.Second
	}
	err := m.raise(ctx, program, folder, func(s *site) error {
		for range turns {
			if err := m.bare(ctx, s, lasting); err != nil {
				return err
			}
			if err := m.load(ctx, s, lasting, nothing); err != nil {
				return err
			}
		}
		return m.comeBack(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	return m.rows(), nil
}

func nothing() error { return nil }

// Measure takes G1, and with the same load G4, of so many agents.
func Measure(ctx context.Context, program, folder string, agents int) (*Heard, error) {
	m := &Heard{agents: agents}
	return m, m.raise(ctx, program, folder, func(s *site) error {
		return m.load(ctx, s, 30*time.Second, func() error { return m.see(ctx, s.members, s.watched) })
	})
}

// site is one coordinator with its agents, and one node more of which nobody but the measurement reports.
type site struct {
	members *testbed.Coordinators
	lead    *testbed.Member
	agents  *crew.Crew
	watched simagent.Identity
}

func (m *Heard) raise(ctx context.Context, program, folder string, measure func(*site) error) (err error) {
	s := &site{}
	if s.members, err = testbed.RaiseCoordinators(ctx, program, folder, 1); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.members.Close()) }()
	s.lead = s.members.Members[0]
	if s.agents, err = crew.Raise(ctx, folder, m.agents); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.agents.Close()) }()
	if err := s.agents.Enrol(ctx, s.members); err != nil {
		return err
	}
	token, err := s.members.Token(ctx, pki.PurposeAgent, "watched")
	if err != nil {
		return err
	}
	if s.watched, err = simagent.Enrol(ctx, s.lead.Listen.API, token, "watched", filepath.Join(folder, "watched")); err != nil {
		return err
	}
	return measure(s)
}

// bare lets the agents report to a bare sink.
func (m *Heard) bare(ctx context.Context, s *site, lasting time.Duration) error {
	addresses, err := testbed.FreeAddresses(1)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	certificate := filepath.Join(s.lead.Data(), "tls")
	sink, err := testbed.StartProcess(filepath.Join(s.members.Dir, "sink.log"), self, sinkRole, addresses[0], certificate)
	if err != nil {
		return err
	}
	defer func() { _ = sink.End(syscall.SIGKILL) }()
	cores, rate, err := m.turn(ctx, s, sink.PID(), addresses[0], lasting, nothing)
	if err != nil {
		return errors.Join(err, sink.Alive())
	}
	m.sink, m.sinkRate = append(m.sink, cores), rate
	return nil
}

// load lets the agents report to the coordinator, and has something else done when that was looked at.
func (m *Heard) load(ctx context.Context, s *site, lasting time.Duration, besides func() error) error {
	cores, rate, err := m.turn(ctx, s, s.lead.Process.PID(), s.lead.Listen.Agent, lasting, func() (err error) {
		if m.Memory, err = testbed.Resident(s.lead.Process.PID()); err != nil {
			return err
		}
		return besides()
	})
	m.CPU, m.Rate = append(m.CPU, cores), rate
	return err
}

// turn is how many cores a process takes while all agents report to it.
func (m *Heard) turn(
	ctx context.Context, s *site, pid int, address string, lasting time.Duration, besides func() error,
) (cores, rate float64, err error) {
	begun := time.Now()
	if err := s.agents.Report(address, paced, m.agents); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, s.agents.Silence()) }()
	if _, err := s.agents.AwaitBack(ctx, begun, patience); err != nil {
		return 0, 0, err
	}
	if err := testbed.Pause(ctx, paced); err != nil { // everybody has reported once
		return 0, 0, err
	}
	before, err := testbed.CPUTime(pid)
	if err != nil {
		return 0, 0, err
	}
	begun = time.Now()
	sent, err := s.agents.Count(begun)
	if err != nil {
		return 0, 0, err
	}
	if err := testbed.Pause(ctx, lasting); err != nil {
		return 0, 0, err
	}
	lasted := time.Since(begun).Seconds()
	after, err := testbed.CPUTime(pid)
	if err != nil {
		return 0, 0, err
	}
	then, err := s.agents.Count(begun)
	if err != nil {
		return 0, 0, err
	}
	if then.In > 0 || then.Open < m.agents {
		return 0, 0, fmt.Errorf("sessions have ended while they were looked at: %d of %d are open, %d of them anew", then.Open, m.agents, then.In)
	}
	return (after - before).Seconds() / lasted, float64(then.Samples-sent.Samples) / lasted, besides()
}

// comeBack restarts the coordinator under its agents, and then looks how soon a decision knows what one of them says.
func (m *Heard) comeBack(ctx context.Context, s *site) (err error) {
	begun := time.Now()
	if err := s.agents.Report(s.lead.Listen.Agent, quick, m.returning); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.agents.Silence()) }()
	if _, err := s.agents.AwaitBack(ctx, begun, patience); err != nil {
		return err
	}
	if err := s.members.Stop(s.lead, syscall.SIGKILL); err != nil {
		return err
	}
	begun = time.Now()
	if err := s.members.Start(s.lead); err != nil {
		return err
	}
	if m.back, err = s.agents.AwaitBack(ctx, begun, patience); err != nil {
		return err
	}
	return m.see(ctx, s.members, s.watched)
}

// see sends samples of one node, and asks for decisions until one was made on the sample. It takes the time of a call too.
func (m *Heard) see(ctx context.Context, c *testbed.Coordinators, identity simagent.Identity) error {
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
		{Sequence: 2, Message: &berthv1.SessionRequest_Inventory{Inventory: crew.InventoryOf(identity)}},
	}
	for i := range warm + samples {
		messages = append(messages, &berthv1.SessionRequest{Sequence: uint64(3 + i), Message: &berthv1.SessionRequest_Telemetry{
			Telemetry: crew.ReportOf(float64(i+1) / 1000 * float64(testbed.SimulatedSize.CPUs)),
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
		if i > 1+warm { // hello and inventory came before
			m.Visible.Add(time.Since(sent))
		}
	}
	return nil
}

func (m *Heard) rows() []report.Row {
	cost, bare := m.CPU.Median()/m.Rate, m.sink.Median()/m.sinkRate
	large, back := report.Both(report.Judge(m.CPU.Median(), 0.25), report.Judge(m.Memory.All, 1e9)), report.Judge(m.back.Seconds(), 15)
	if m.agents < 10_000 { // fewer prove nothing
		large, back = report.NoVerdict, report.NoVerdict
	}
	return []report.Row{
		{
			Goal: "G1", What: fmt.Sprintf("%d agents on one coordinator, mutual TLS, %d bytes every %s, taken in", m.agents, crew.SampleSize, paced),
			Measured: fmt.Sprintf("%s of a core; %s\n%s", report.Digits(m.CPU.Median()), m.Memory, report.PerSecond(m.Rate)),
			Wanted:   "10,000 in <= 0.25 core, <= 1 GB", Verdict: large,
		},
		{
			Goal: "G2", What: "CPU of one message", Measured: report.Seconds(cost),
			Against: fmt.Sprintf("a bare sink of the same stream, in turns: %s\nratio: %s", report.Seconds(bare), report.Times(cost/bare)),
			Wanted:  "<= 2x (stretch 1.4x)", Verdict: report.Judge(cost/bare, 2),
		},
		{
			Goal: "G3", What: fmt.Sprintf("the coordinator is killed and started: until %d agents are back", m.returning),
			Measured: report.Seconds(m.back.Seconds()), Against: "the goal's own limit", Wanted: "5,000 in <= 15 s (stretch 5 s)", Verdict: back,
		},
		{
			Goal: "G4", What: fmt.Sprintf(
				"from the sending of a sample until the coordinator's answers rest on it, call included; %d agents every %s", m.returning,
				quick,
			),
			Measured: m.Visible.Latency(), Against: "the goal's own limit", Wanted: "p99 <= 50 ms (stretch 10 ms)", Verdict: report.Judge(
				m.Visible.Quantile(0.99), 0.05,
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

// runSink listens at an address with the certificate of a coordinator, which is in a folder.
func runSink(address, dir string) error {
	files := pki.Files{CA: filepath.Join(dir, "ca.pem"), Certificate: filepath.Join(dir, "peer.pem"), Key: filepath.Join(dir, "peer.key")}
	secure, err := pki.ServerConfig(files, tls.RequireAndVerifyClientCert)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewAgentServiceHandler(sink{}))
	return rpc.NewServer(address, rpc.WithIdentity(mux), secure, hclog.NewNullLogger()).ListenAndServeTLS("", "")
}
