package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/control/answering"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/integration/bench/report"
	"berth/integration/bench/testbed"
	"berth/integration/hostile"
	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
)

// One node of a hundred looks better than all others: it has the most memory, runs nothing, reports as it should, and never answers an
// order. It keeps what one node works on at a time. All other starts come to their end, those that waited for their turn there too.
func TestANodeThatNeverAnswersStopsNoStarts(t *testing.T) {
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
	operator := []string{"--client-config", filepath.Join(c.Dir, "client.yaml")}
	check(t, c.Command(ctx, append([]string{"policy", "add", "roomy", "--gate", "off", "--weigher", "memory-free=1"}, operator...)...))
	check(t, c.Command(ctx, append([]string{"cluster", "set", model.DefaultCluster, "--policy", "roomy"}, operator...)...))
	f, err := testbed.EnrolFleet(ctx, c, nodes-1)
	check(t, err)
	defer f.Close()
	s := &starts{fleet: f, hostile: &hostile.Agent{}}
	s.run(ctx, t, c, time.Second) // what is new is slow
	alone := s.run(ctx, t, c, shape)

	token, err := c.Token(ctx, pki.PurposeAgent, "mute")
	check(t, err)
	identity, err := simagent.Enrol(ctx, c.Members[0].Listen.API, token, "mute", filepath.Join(c.Dir, "mute"))
	check(t, err)
	size := simagent.Size{Memory: 64 * testbed.SimulatedSize.Memory, CPUs: 64 * testbed.SimulatedSize.CPUs}
	liar, err := f.Nodes.Add(identity, size, hclog.NewNullLogger())
	check(t, err)
	liar.Mute()
	running, end := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		_ = liar.Run(running)
		close(ended)
	}()
	defer func() { end(); <-ended }()
	check(t, f.AwaitReady(ctx, c.Members[0].API))

	lead, err := c.Leader(ctx)
	check(t, err)
	begun := time.Now()
	drawn, lost := s.draw(ctx, t, lead.API, 3*model.DefaultParallelStarts)
	waited := time.Since(begun)
	if drawn < 2*model.DefaultParallelStarts {
		t.Errorf("the run is worth nothing: it drew only %d starts", drawn)
	}
	if lost != model.DefaultParallelStarts {
		t.Errorf("it keeps %d starts, and works on %d at a time", lost, model.DefaultParallelStarts)
	}
	beside, err := report.Left(alone, func() float64 { return s.run(ctx, t, c, shape) })
	if err != nil {
		t.Errorf("beside a node that never answers: %v", err)
	}
	goal(t, "a node that never answers", beside >= 0.5*alone, "goodput beside it >= 50 %",
		"%d nodes: %s starts alone, %s beside one with the most memory that never answers (%.0f %%)",
		nodes, report.PerSecond(alone), report.PerSecond(beside), 100*beside/alone)
	bound := answering.Patience + operation.ResendEvery
	goal(t, "starts in its queue", waited <= bound, "all elsewhere within "+bound.String(),
		"of %d starts that it drew %d ran elsewhere after %s", drawn, drawn-lost, waited.Round(time.Second))
}

// draw begins starts at once and waits until all have ended but those that the node was ordered. It returns how many went to the node
// first, and how many stay there.
func (s *starts) draw(ctx context.Context, t *testing.T, api berthv1connect.BerthServiceClient, count int) (drawn, lost int) {
	t.Helper()
	var ids []string
	for i := range count {
		name := fmt.Sprintf("drawn%d", i)
		answer, err := api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
			Name: name, RequestId: name, Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
		}))
		check(t, err)
		if answer.Msg.GetOperation().GetTarget() == "mute" {
			drawn++
		}
		ids = append(ids, answer.Msg.GetOperation().GetId())
	}
	check(t, testbed.Await(ctx, "the starts that wait for their turn", 3*time.Minute, func(ctx context.Context) error {
		lost = 0
		for _, id := range ids {
			answer, err := api.GetOperation(ctx, connect.NewRequest(&berthv1.GetOperationRequest{Id: id}))
			if err != nil {
				return err
			}
			switch op := answer.Msg.GetOperation(); {
			case op.GetResult() == berthv1.OperationResult_OPERATION_RESULT_DONE:
			case op.GetTarget() == "mute" && op.GetPhase() == string(operation.Dispatched):
				lost++
			default:
				return fmt.Errorf("operation %s is %s on %s", id, op.GetPhase(), op.GetTarget())
			}
		}
		return nil
	}))
	return drawn, lost
}
