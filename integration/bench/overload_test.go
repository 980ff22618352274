package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// filesPerAgent are a connection's ends, in the test and in the coordinator, and what a handshake needs besides.
const filesPerAgent = 4

// agentsVariable is how many simulated agents the test has; 200 if it is not set.
const agentsVariable = "AGENTS"

// goal prints the line of a goal. What takes too long on a busy machine is told, and fails nothing: report.Left judges what no machine
// explains.
func goal(t *testing.T, name string, good bool, wanted, format string, args ...any) {
	t.Helper()
	result := "met"
	if !good {
		result = "not met"
	}
	t.Logf("GOAL %s: %s | wanted %s | %s", name, fmt.Sprintf(format, args...), wanted, result)
}

// A fleet comes back to the next leader, and a leader that is asked for far more than it can do goes on doing what it can.
// Whatever it accepts, it does once.
func TestAFleetComesBackAndOverloadPasses(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "berth"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: 'make build' makes it", err)
	}
	nodes, _ := strconv.Atoi(os.Getenv(agentsVariable))
	if nodes <= 0 {
		nodes = 200
	}
	if err := testbed.RaiseFileLimit(uint64(filesPerAgent*nodes + 10_000)); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	c, err := testbed.RaiseLimited(ctx, program, t.TempDir(), 3, map[string]any{"rate": -1, "writes": 16, "waiting": 32})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { check(t, c.Close()) }()
	f, err := testbed.EnrolFleet(ctx, c, nodes)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	comeBack(ctx, t, c, nodes)
	accepted := overload(ctx, t, c)
	o := failover{acked: accepted}
	lost, err := o.lost(ctx, c, f)
	check(t, err)
	if len(lost) > 0 {
		t.Errorf("%d of %d accepted starts were lost or done twice, the first: %v", len(lost), len(accepted), lost[0])
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// comeBack kills the leader and waits until the next one has heard every node.
func comeBack(ctx context.Context, t *testing.T, c *testbed.Coordinators, nodes int) {
	t.Helper()
	lead, err := c.Leader(ctx)
	check(t, err)
	check(t, c.Stop(lead, syscall.SIGKILL))
	begun := time.Now()
	survivor := c.Running()[0]
	var term, elections uint64
	check(t, testbed.Await(ctx, "the fleet at the next leader", 5*time.Minute, func(ctx context.Context) error {
		status, err := survivor.API.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			return err
		}
		if term == 0 {
			term = status.Msg.GetTerm()
		}
		elections = status.Msg.GetTerm() - term
		if up := int(status.Msg.GetNodesUp()); up < nodes {
			return fmt.Errorf("%d of %d nodes are up", up, nodes)
		}
		return nil
	}))
	took := time.Since(begun)
	goal(t, "G12", took <= time.Minute && elections == 0, "<= 60 s, 0 extra elections",
		"%d agents back %s after the leader was killed, %d extra elections", nodes, took.Round(time.Millisecond), elections)
	check(t, c.Start(lead))
	check(t, c.AwaitWhole(ctx))
}

const (
	fewClients = 16
	shape      = 5 * time.Second // how long each load lasts
)

// overload asks for ten times as much as before, and then for as much as before. It returns what was accepted.
func overload(ctx context.Context, t *testing.T, c *testbed.Coordinators) []ack {
	t.Helper()
	lead, err := c.Leader(ctx)
	check(t, err)
	l := &load{lead: lead}
	peak := l.run(ctx, t, c, fewClients, shape)
	before := l.refused.Load()
	flooded, err := report.Left(peak, func() float64 { return l.run(ctx, t, c, 10*fewClients, shape) })
	if err != nil {
		t.Errorf("at ten times as many callers: %v", err)
	}
	refused := l.refused.Load() - before
	begun := time.Now()
	after := l.run(ctx, t, c, fewClients, shape)
	for after < 0.8*peak && time.Since(begun) < 30*time.Second {
		after = l.run(ctx, t, c, fewClients, shape)
	}
	if after < report.Floor*peak {
		t.Errorf("half a minute after the flood only %s of %s starts is back", report.PerSecond(after), report.PerSecond(peak))
	}
	if refused == 0 {
		t.Error("nobody was put off, with ten times as many callers as before")
	}
	goal(t, "G13", flooded >= 0.8*peak && after >= 0.8*peak, "goodput >= 80 % of peak, normal <= 30 s after",
		"peak %s starts, at 10x %s (%.0f %%, %d calls put off), afterwards %s within %s",
		report.PerSecond(peak), report.PerSecond(flooded), 100*flooded/peak,
		refused, report.PerSecond(after), time.Since(begun).Round(time.Second))
	return l.accepted
}

// load is a number of clients that ask for starts.
type load struct {
	lead    *testbed.Member
	number  atomic.Int64
	refused atomic.Int64

	mu       sync.Mutex
	accepted []ack
}

// run lets so many clients ask for as long as that, and returns how many starts a second were accepted.
func (l *load) run(ctx context.Context, t *testing.T, c *testbed.Coordinators, clients int, lasting time.Duration) float64 {
	t.Helper()
	callers, err := clientsOf(c, l.lead, clients)
	check(t, err)
	defer callers.close()
	var all sync.WaitGroup
	var accepted atomic.Int64
	begun := time.Now()
	for _, api := range callers.apis {
		all.Go(func() {
			for time.Since(begun) < lasting {
				made, err := l.start(ctx, api)
				switch {
				case err != nil:
					t.Errorf("a start that was neither accepted nor put off: %v", err)
					return
				case made:
					accepted.Add(1)
				default:
					_ = testbed.Pause(ctx, 50*time.Millisecond) // far too soon
				}
			}
		})
	}
	all.Wait()
	return float64(accepted.Load()) / time.Since(begun).Seconds()
}

// start is one call. It is false when it was put off, which has to say for how long.
func (l *load) start(ctx context.Context, api berthv1connect.BerthServiceClient) (bool, error) {
	number := l.number.Add(1)
	answer, err := api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
		Name: fmt.Sprintf("load%d", number), RequestId: fmt.Sprintf("load-%d", number),
		Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
	}))
	var refused *connect.Error
	if errors.As(err, &refused) && rpc.Detail(err).GetCode() == rpc.Overloaded {
		l.refused.Add(1)
		if seconds, parsed := strconv.Atoi(refused.Meta().Get("Retry-After")); parsed != nil || seconds < 1 {
			return false, fmt.Errorf("it does not say when to try again: %w", err)
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted = append(l.accepted, ack{answer.Msg.GetVm().GetName(), answer.Msg.GetVm().GetId()})
	return true, nil
}
