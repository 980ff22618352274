package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/hostile"
	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
)

// One node of a hundred belongs to somebody else by now. Each start on the others is accepted and comes to its end, and at no
// small part of the rate without it.
func TestAHostileAgentStopsNoStarts(t *testing.T) {
	program, err := filepath.Abs(filepath.Join("..", "..", "bin", "berth"))
	check(t, err)
	if _, err := os.Stat(program); err != nil {
		t.Fatalf("%v: 'make build' makes it", err)
	}
	nodes, _ := strconv.Atoi(os.Getenv(agentsVariable))
	if nodes <= 0 {
		nodes = 100
	}
	check(t, testbed.RaiseFileLimit(uint64(filesPerAgent*nodes+5000)))
	ctx := t.Context()
	c, err := testbed.RaiseCoordinators(ctx, program, t.TempDir(), 3)
	check(t, err)
	defer func() { check(t, c.Close()) }()
	f, err := testbed.EnrolFleet(ctx, c, nodes-1)
	check(t, err)
	defer f.Close()
	token, err := c.Token(ctx, pki.PurposeAgent, "evil")
	check(t, err)
	identity, err := simagent.Enrol(ctx, c.Members[0].Listen.API, token, "evil", filepath.Join(c.Dir, "evil"))
	check(t, err)
	h := &hostile.Agent{NodeID: identity.NodeID, ClusterID: identity.ClusterID, Files: identity.Files, Addresses: identity.Addresses}

	s := &starts{fleet: f, hostile: h}
	s.run(ctx, t, c, time.Second) // what is new is slow
	alone := s.run(ctx, t, c, shape)
	running, end := context.WithCancel(ctx)
	var mischief sync.WaitGroup
	mischief.Go(func() {
		if err := h.Run(running); err != nil {
			t.Error(err)
		}
	})
	beside, err := report.Left(alone, func() float64 { return s.run(ctx, t, c, shape) })
	if err != nil {
		t.Errorf("beside a hostile agent: %v", err)
	}
	end()
	mischief.Wait()
	if h.Said() < 100 {
		t.Errorf("it has said only %d things", h.Said())
	}
	goal(t, "hostile agent", beside >= 0.5*alone, "goodput beside it >= 50 %",
		"%d nodes: %s starts alone, %s beside a hostile one that says %d things (%.0f %%)",
		nodes, report.PerSecond(alone), report.PerSecond(beside), h.Said(), 100*beside/alone)
}

// starts are VMs that are started one after the other by a few clients.
type starts struct {
	fleet   *testbed.Fleet
	hostile *hostile.Agent
	number  atomic.Int64
}

// run starts VMs for as long as that, and returns how many a second ran. Each has to.
func (s *starts) run(ctx context.Context, t *testing.T, c *testbed.Coordinators, lasting time.Duration) float64 {
	t.Helper()
	lead, err := c.Leader(ctx)
	check(t, err)
	callers, err := clientsOf(c, lead, fewClients)
	check(t, err)
	defer callers.close()
	var all sync.WaitGroup
	var ran atomic.Int64
	begun := time.Now()
	for _, api := range callers.apis {
		all.Go(func() {
			for time.Since(begun) < lasting {
				uuid, err := s.start(ctx, api)
				if err != nil {
					t.Errorf("a start failed: %v", err)
					return
				}
				s.hostile.Saw(uuid)
				ran.Add(1)
			}
		})
	}
	all.Wait()
	return float64(ran.Load()) / time.Since(begun).Seconds()
}

// start starts one VM and waits until it runs, on one node.
func (s *starts) start(ctx context.Context, api berthv1connect.BerthServiceClient) (uuid string, err error) {
	name := fmt.Sprintf("start%d", s.number.Add(1))
	answer, err := testbed.Patiently(ctx, func() (*connect.Response[berthv1.StartVMResponse], error) {
		return api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
			Name: name, RequestId: name, Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
		}))
	})
	if err != nil {
		return "", err
	}
	if _, err := testbed.AwaitEnd(ctx, api, answer.Msg.GetOperation().GetId()); err != nil {
		return "", err
	}
	uuid = answer.Msg.GetVm().GetId()
	return uuid, s.fleet.RunsOnce(uuid)
}
