package main

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/units"
)

// simulatedSize is far more than the starts of one run need.
var simulatedSize = simagent.Size{Memory: 4 * units.TiB, CPUs: 512}

// simulatedVM is what the measured starts ask for.
func simulatedVM() *berthv1.VMSpec {
	return &berthv1.VMSpec{MemoryBytes: int64(64 * units.MiB), Vcpus: 1}
}

// fleet is a set of simulated nodes with sessions to the leader.
type fleet struct {
	agents []*simagent.Agent
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// enrolFleet enrols n simulated nodes and returns when VMs can be placed on them.
func enrolFleet(ctx context.Context, c *coordinators, n int) (_ *fleet, err error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &fleet{cancel: cancel}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	var nodes simagent.Fleet
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		token, err := c.token(ctx, pki.PurposeAgent, name)
		if err != nil {
			return nil, err
		}
		identity, err := simagent.Enrol(ctx, c.members[0].listen.API, token, name, filepath.Join(c.dir, name))
		if err != nil {
			return nil, err
		}
		agent, err := nodes.Add(identity, simulatedSize, hclog.NewNullLogger())
		if err != nil {
			return nil, err
		}
		f.agents = append(f.agents, agent)
		f.ended.Go(func() { _ = agent.Run(running) }) // it ends with its context only
	}
	return f, f.awaitReady(ctx, c.members[0].api)
}

// awaitReady waits until every node is a candidate for a VM.
func (f *fleet) awaitReady(ctx context.Context, api berthv1connect.BerthServiceClient) error {
	return await(ctx, "the simulated nodes", 30*time.Second, func(ctx context.Context) error {
		answer, err := api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
			Name: "candidate", Spec: simulatedVM(), DryRun: true,
		}))
		if err != nil {
			return err
		}
		for _, node := range answer.Msg.GetDecision().GetNodes() {
			if !node.GetAdmitted() {
				return fmt.Errorf("node %s is refused: %v", node.GetNode(), node.GetConstraints())
			}
		}
		return nil
	})
}

// runsOnce checks that exactly one node has the VM.
func (f *fleet) runsOnce(id string) error {
	var on []string
	for _, agent := range f.agents {
		for _, domain := range agent.Domains() {
			if domain.UUID == id {
				on = append(on, agent.Name)
			}
		}
	}
	if len(on) != 1 {
		return fmt.Errorf("VM %s runs on %d nodes %v", id, len(on), on)
	}
	return nil
}

func (f *fleet) close() {
	f.cancel()
	f.ended.Wait()
}

// patience is how long a call is repeated while the coordinators have no leader.
const patience = 30 * time.Second

// patiently repeats a call that nobody could answer, as the command line does. Calls that change something need a request
// ID, so that they do it once.
func patiently[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for deadline := time.Now().Add(patience); ; {
		answer, err := call()
		if connect.CodeOf(err) != connect.CodeUnavailable || time.Now().After(deadline) {
			return answer, err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return answer, err
		}
	}
}

// awaitEnd follows an operation to its end. Anything but done is an error.
func awaitEnd(ctx context.Context, api berthv1connect.BerthServiceClient, id string) (*berthv1.Operation, error) {
	last, err := patiently(ctx, func() (*berthv1.Operation, error) { return watchOperation(ctx, api, id) })
	if err != nil {
		return nil, err
	}
	if last.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
		return nil, fmt.Errorf("operation %s (%s of %s) ended %s: %s",
			id, last.GetKind(), last.GetVm(), last.GetResult(), last.GetMessage())
	}
	return last, nil
}

// watchOperation is the operation at the end of one stream.
func watchOperation(ctx context.Context, api berthv1connect.BerthServiceClient, id string) (*berthv1.Operation, error) {
	stream, err := api.WatchOperation(ctx, connect.NewRequest(&berthv1.WatchOperationRequest{Id: id}))
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	var last *berthv1.Operation
	for stream.Receive() {
		if operation := stream.Msg().GetOperation(); operation != nil {
			last = operation
		}
	}
	if err := stream.Err(); err != nil {
		return nil, fmt.Errorf("watch operation %s: %w", id, err)
	}
	return last, nil
}
