package testbed

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"golang.org/x/sync/errgroup"

	"berth/integration/simagent"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/units"
)

// SimulatedSize is far more than the starts of one run need.
var SimulatedSize = simagent.Size{Memory: 4 * units.TiB, CPUs: 512}

// SimulatedVM is what the measured starts ask for.
func SimulatedVM() *berthv1.VMSpec {
	return &berthv1.VMSpec{MemoryBytes: int64(64 * units.MiB), Vcpus: 1}
}

// Fleet is a set of simulated nodes with sessions to the leader.
type Fleet struct {
	Nodes  simagent.Fleet
	agents []*simagent.Agent
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

// EnrolFleet enrols n simulated nodes and returns when VMs can be placed on them.
func EnrolFleet(ctx context.Context, c *Coordinators, n int) (_ *Fleet, err error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &Fleet{cancel: cancel}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		token, err := c.Token(ctx, pki.PurposeAgent, name)
		if err != nil {
			return nil, err
		}
		identity, err := simagent.Enrol(ctx, c.Members[0].Listen.API, token, name, filepath.Join(c.Dir, name))
		if err != nil {
			return nil, err
		}
		agent, err := f.Nodes.Add(identity, SimulatedSize, hclog.NewNullLogger())
		if err != nil {
			return nil, err
		}
		f.agents = append(f.agents, agent)
		f.ended.Go(func() { _ = agent.Run(running) }) // it ends with its context only
	}
	return f, f.AwaitReady(ctx, c.Members[0].API)
}

// AwaitReady waits until every node is a candidate for a VM.
func (f *Fleet) AwaitReady(ctx context.Context, api berthv1connect.BerthServiceClient) error {
	return Await(ctx, "the simulated nodes", 30*time.Second, func(ctx context.Context) error {
		answer, err := api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
			Name: "candidate", DryRun: true,
			Vm: &berthv1.NewVM{Spec: SimulatedVM()},
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

// RunsOnce checks that exactly one node has the VM.
func (f *Fleet) RunsOnce(id string) error {
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

// Close ends all of its nodes.
func (f *Fleet) Close() {
	f.cancel()
	f.ended.Wait()
}

// Patience is how long a call is repeated while the coordinators have no leader.
const Patience = 30 * time.Second

// Patiently repeats a call that nobody could answer, as the command line does. Calls that change something need a request
// ID, so that they do it once.
func Patiently[T any](ctx context.Context, call func() (T, error)) (T, error) {
	for deadline := time.Now().Add(Patience); ; {
		answer, err := call()
		if connect.CodeOf(err) != connect.CodeUnavailable || time.Now().After(deadline) {
			return answer, err
		}
		if err := Pause(ctx, 50*time.Millisecond); err != nil {
			return answer, err
		}
	}
}

// AwaitEnd follows an operation to its end. Anything but done is an error.
func AwaitEnd(ctx context.Context, api berthv1connect.BerthServiceClient, id string) (*berthv1.Operation, error) {
	last, err := Patiently(ctx, func() (*berthv1.Operation, error) { return watchOperation(ctx, api, id) })
	if err != nil {
		return nil, err
	}
	if last.GetResult() != berthv1.OperationResult_OPERATION_RESULT_DONE {
		return nil, fmt.Errorf("operation %s (%s of %s) ended %s: %s",
			id, last.GetKind(), last.GetVm(), last.GetResult(), last.GetMessage())
	}
	return last, nil
}

// startsAtOnce is how many calls of Populate are under way.
const startsAtOnce = 64

// Populate starts so many VMs that stay, each on a node that is named by its number, and returns when all run.
func Populate(ctx context.Context, api berthv1connect.BerthServiceClient, vms int, node func(vm int) string) error {
	starting, ctx := errgroup.WithContext(ctx)
	starting.SetLimit(startsAtOnce)
	for i := range vms {
		starting.Go(func() error {
			name := fmt.Sprintf("vm%05d", i)
			answer, err := Patiently(ctx, func() (*connect.Response[berthv1.StartVMResponse], error) {
				return api.StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
					Name: name, Node: node(i), RequestId: "start-" + name, Vm: &berthv1.NewVM{Spec: SimulatedVM()},
				}))
			})
			if err != nil {
				return fmt.Errorf("start %s: %w", name, err)
			}
			_, err = AwaitEnd(ctx, api, answer.Msg.GetOperation().GetId())
			return err
		})
	}
	return starting.Wait()
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

// Pause waits, or ends with the context.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
