package traces

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"berth/agent/session"
	agenttracing "berth/agent/tracing"
	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/state/statetest"
	"berth/coordinator/tracing"
	berthv1 "berth/shared/gen/berth/v1"
	sent "berth/shared/tracing"
)

// collector takes what is sent by OTLP over HTTP. It reads it strictly: a field that OpenTelemetry does not know is an error.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans map[string][]*tracepb.Span // by the name of the service
}

func newCollector(t *testing.T) *collector {
	t.Helper()
	c := &collector{spans: map[string][]*tracepb.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %v: %v", r.URL, r.Header, err)
		}
		message, err := decode(body)
		if err != nil {
			t.Errorf("%s: %v", body, err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, from := range message.GetResourceSpans() {
			service := ""
			for _, about := range from.GetResource().GetAttributes() {
				if about.GetKey() == "service.name" {
					service = about.GetValue().GetStringValue()
				}
			}
			for _, scope := range from.GetScopeSpans() {
				c.spans[service] = append(c.spans[service], scope.GetSpans()...)
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// decode reads a message as OTLP says: JSON of its protocol buffers, but with IDs in hexadecimal.
func decode(body []byte) (*tracepb.TracesData, error) {
	var read any
	if err := json.Unmarshal(body, &read); err != nil {
		return nil, err
	}
	if err := plainIDs(read); err != nil {
		return nil, err
	}
	text, err := json.Marshal(read)
	if err != nil {
		return nil, err
	}
	message := &tracepb.TracesData{}
	return message, protojson.Unmarshal(text, message)
}

func plainIDs(read any) error {
	switch read := read.(type) {
	case []any:
		for _, one := range read {
			if err := plainIDs(one); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, one := range read {
			if text, is := one.(string); is && slices.Contains([]string{"traceId", "spanId", "parentSpanId"}, key) {
				id, err := hex.DecodeString(text)
				if err != nil {
					return fmt.Errorf("%s: %w", key, err)
				}
				read[key] = base64.StdEncoding.EncodeToString(id)
			} else if err := plainIDs(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// of are the spans of a service, and how many there are.
func (c *collector) of(service string) []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans[service])
}

// work is what carries orders out: each is done at once.
type work struct {
	session.Jobs // nothing else is asked of it

	results chan *berthv1.CommandResult
}

func (w *work) Do(_ context.Context, command *berthv1.Command) {
	w.results <- &berthv1.CommandResult{
		OperationId: command.GetOperationId(), Step: command.GetStep(), Outcome: berthv1.CommandOutcome_COMMAND_OUTCOME_DONE,
	}
}
func (w *work) Results() <-chan *berthv1.CommandResult { return w.results }

// asks lets the command line ask for a start, and gives the ID of its request.
func asks(t *testing.T, environment map[string]string) (request string) {
	t.Helper()
	fake := clitest.Steady()
	fake.OnStartVM = func(r *berthv1.StartVMRequest) (*berthv1.StartVMResponse, error) {
		request = r.GetRequestId()
		return &berthv1.StartVMResponse{Operation: &berthv1.Operation{Id: "op1", Vm: "web"}, Decision: clitest.CannedDecision()}, nil
	}
	runs(t, fake, environment, "vm", "start", "web", "--no-wait")
	return request
}

// drains lets it ask for a drain.
func drains(t *testing.T, environment map[string]string, more ...string) (request string) {
	t.Helper()
	fake := clitest.Steady()
	fake.OnDrainNode = func(r *berthv1.DrainNodeRequest) (*berthv1.DrainNodeResponse, error) {
		request = r.GetRequestId()
		plan := clitest.DrainOf("running", "moving")
		plan.Id, plan.Moves = "plan1", plan.GetMoves()[:1] // the others would stay
		return &berthv1.DrainNodeResponse{SchemaVersion: "1", Plan: plan}, nil
	}
	runs(t, fake, environment, append([]string{"node", "drain", "node1"}, more...)...)
	return request
}

func runs(t *testing.T, fake *clitest.Fake, environment map[string]string, command ...string) {
	t.Helper()
	w, _ := clitest.NewSite(t, fake)
	w.Env = environment
	if said := w.Run(command...); said.Exit != term.Done || strings.Contains(said.ErrOut, "traces") {
		t.Fatalf("exit %d, %s, %s", said.Exit, said.Out, said.ErrOut)
	}
}

// A start is one trace: what the command line tells, its coordinator, and the agent of its orders, which never talk about traces to each
// other. Where the command line tells nothing, nothing is above what the coordinator tells.
func TestAStartIsOneTrace(t *testing.T) {
	for name, traced := range map[string]bool{"with the command line": true, "without it": false} {
		t.Run(name, func(t *testing.T) { startIsOneTrace(t, traced) })
	}
}

func startIsOneTrace(t *testing.T, traced bool) {
	c := newCollector(t)
	config := sent.Config{Endpoint: c.URL}
	if err := config.Complete(); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{}
	if traced {
		environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = c.URL
	}
	request := asks(t, environment)
	startsOn(t, c, config, request)
	of := map[string]*tracepb.Span{} // by name
	all := slices.Concat(c.of("berth-cli"), c.of("berth-coordinator"), c.of("berth-agent"))
	for _, span := range all {
		of[span.GetName()] = span
		if hex.EncodeToString(span.GetTraceId()) != sent.TraceID("op1") {
			t.Errorf("of another trace: %v", span)
		}
	}
	command, whole := of["berth vm start"], of["start"]
	if whole == nil || (command != nil) != traced || len(c.of("berth-cli")) > 1 {
		t.Fatalf("told are %v", all)
	}
	if traced && (len(command.GetParentSpanId()) > 0 || command.GetKind() != tracepb.Span_SPAN_KIND_CLIENT || len(command.GetSpanId()) != 8) {
		t.Errorf("the command is %v", command)
	}
	if string(whole.GetParentSpanId()) != string(command.GetSpanId()) || len(whole.GetSpanId()) != 8 ||
		whole.GetStartTimeUnixNano() != uint64(at(1).UnixNano()) || whole.GetEndTimeUnixNano() != uint64(at(3).UnixNano()) {
		t.Errorf("the whole is %v", whole)
	}
	for _, span := range all {
		if span != whole && span != command && string(span.GetParentSpanId()) != string(whole.GetSpanId()) {
			t.Errorf("not a part of the whole: %v", span)
		}
	}
	if order := c.of("berth-agent")[0]; !strings.HasPrefix(order.GetName(), "order ") || order.GetKind() != tracepb.Span_SPAN_KIND_INTERNAL {
		t.Errorf("the agent tells %v", order)
	}
}

func at(seconds int) time.Time { return statetest.Noon.Add(time.Duration(seconds) * time.Second) }

// startsOn has a coordinator and an agent carry a start out that somebody has asked for, and tell a collector.
func startsOn(t *testing.T, c *collector, config sent.Config, request string) {
	t.Helper()
	site := statetest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()
	follows(ctx, t, &ended, config, site)
	site.Apply(state.Command{
		Kind: "operation", VMs: []model.VM{{ID: "v1", Name: "web"}},
		Operations: []operation.Operation{{
			ID: "op1", Kind: operation.Start, Request: request, VM: "v1", VMName: "web", Phase: operation.Ended, Result: operation.Done, Step: 1,
			CreatedAt: at(1), UpdatedAt: at(3), EndedAt: at(3),
		}},
		Expect: []state.Expectation{{Table: state.Operations, ID: "op1"}, {Table: state.VMs, ID: "v1"}},
	})

	exporter, err := sent.New(config, "berth-agent", "hv1", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	ended.Go(func() { exporter.Run(ctx) })
	jobs := agenttracing.Traced(&work{results: make(chan *berthv1.CommandResult, 1)}, "hv1", exporter)
	ended.Go(func() { jobs.Run(ctx) })
	jobs.Do(ctx, &berthv1.Command{OperationId: "op1", Step: 1, Action: &berthv1.Command_Start{Start: &berthv1.StartCommand{}}})
	if result := <-jobs.Results(); result.GetOperationId() != "op1" {
		t.Errorf("passed on %v", result)
	}
	await(t, "both to tell", func() bool { return len(c.of("berth-coordinator")) > 0 && len(c.of("berth-agent")) > 0 })
}

// follows has a coordinator follow a state until the context ends.
func follows(ctx context.Context, t *testing.T, ended *sync.WaitGroup, config sent.Config, site *statetest.Site) {
	t.Helper()
	var looked atomic.Bool
	ended.Go(func() {
		tracing.Run(ctx, tracing.Config{
			Traces: config, Member: "c1", Leads: func() bool { return true }, Log: hclog.NewNullLogger(),
			State: func() *state.Snapshot { defer looked.Store(true); return site.Snapshot() },
		})
	})
	await(t, "the coordinator to follow its state", looked.Load)
}

// A drain is one trace: the command, below it the plan, and below that each of its moves, with a link to the trace that the move has as an
// operation, which has a link back.
func TestADrainIsOneTrace(t *testing.T) {
	c := newCollector(t)
	config := sent.Config{Endpoint: c.URL}
	if err := config.Complete(); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": c.URL}
	drains(t, environment, "--dry-run")
	if told := c.of("berth-cli"); len(told) > 0 {
		t.Errorf("a drain on trial tells %v", told)
	}
	drainOf(t, c, config, drains(t, environment, "--no-wait", "--yes"))
	of := map[string]*tracepb.Span{}
	for _, span := range slices.Concat(c.of("berth-cli"), c.of("berth-coordinator")) {
		of[span.GetName()] = span
	}
	command, plan, move, migration := of["berth node drain"], of["drain"], of["move web"], of["migrate"]
	if command == nil || plan == nil || move == nil || migration == nil {
		t.Fatalf("told are %v", of)
	}
	for _, span := range []*tracepb.Span{command, plan, move} {
		if hex.EncodeToString(span.GetTraceId()) != sent.TraceID("plan1") {
			t.Errorf("not of the plan's trace: %v", span)
		}
	}
	if hex.EncodeToString(migration.GetTraceId()) != sent.TraceID("op1") || len(migration.GetParentSpanId()) > 0 {
		t.Errorf("the move as an operation: %v", migration)
	}
	if string(plan.GetParentSpanId()) != string(command.GetSpanId()) || string(move.GetParentSpanId()) != string(plan.GetSpanId()) ||
		plan.GetStartTimeUnixNano() != uint64(at(1).UnixNano()) || plan.GetEndTimeUnixNano() != uint64(at(4).UnixNano()) ||
		move.GetStartTimeUnixNano() != uint64(at(2).UnixNano()) || move.GetEndTimeUnixNano() != uint64(at(3).UnixNano()) {
		t.Errorf("not one below the other:\n%v\n%v\n%v", command, plan, move)
	}
	linked(t, move, migration)
	linked(t, migration, plan)
}

// linked tells whether a span has one link, and it leads to another one.
func linked(t *testing.T, span, to *tracepb.Span) {
	t.Helper()
	if links := span.GetLinks(); len(links) != 1 || string(links[0].GetTraceId()) != string(to.GetTraceId()) ||
		string(links[0].GetSpanId()) != string(to.GetSpanId()) {
		t.Errorf("%v is not linked to %v", span, to)
	}
}

// drainOf has a coordinator carry out a drain of one VM that somebody has asked for, and tell a collector.
func drainOf(t *testing.T, c *collector, config sent.Config, request string) {
	t.Helper()
	site := statetest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	defer ended.Wait()
	defer stop()
	follows(ctx, t, &ended, config, site)
	plan := model.Plan{
		ID: "plan1", Kind: model.PlanDrain, State: model.PlanRunning, Cluster: model.DefaultCluster, NodeName: "n1", Request: request,
		CreatedAt: at(1), UpdatedAt: at(1),
	}
	site.Apply(state.Command{
		Kind: "drain node", Plans: []model.Plan{plan}, Expect: []state.Expectation{{Table: state.Plans, ID: plan.ID}},
	})
	plan.State, plan.UpdatedAt, plan.EndedAt = model.PlanDone, at(4), at(4)
	site.Apply(state.Command{
		Kind: "end plan", Plans: []model.Plan{plan}, VMs: []model.VM{{ID: "v1", Name: "web"}},
		Operations: []operation.Operation{{
			ID: "op1", Kind: operation.Migrate, VM: "v1", VMName: "web", Plan: plan.ID, Phase: operation.Ended, Result: operation.Done,
			CreatedAt: at(2), UpdatedAt: at(3), EndedAt: at(3),
		}},
		Expect: []state.Expectation{
			{Table: state.Plans, ID: plan.ID, Revision: site.Snapshot().Index()},
			{Table: state.Operations, ID: "op1"},
			{Table: state.VMs, ID: "v1"},
		},
	})
	await(t, "it to tell of the plan", func() bool {
		return slices.ContainsFunc(c.of("berth-coordinator"), func(span *tracepb.Span) bool { return span.GetName() == string(plan.Kind) })
	})
}

func await(t *testing.T, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !come(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waited in vain for ", what)
		}
	}
}
