package storms

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"berth/integration/bench/testbed"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

// clients are how many ask for VMs at once.
const clients = 256

// callers are clients with connections of their own.
type callers struct {
	members []*testbed.Member
	https   []*http.Client
	apis    [][]berthv1connect.BerthServiceClient // by client and member
	through []atomic.Int32                        // the member that each client asks
	next    atomic.Int64

	mu       sync.Mutex
	accepted map[string]string // name by ID
}

func newCallers(c *testbed.Coordinators) (*callers, error) {
	all := &callers{members: c.Members, through: make([]atomic.Int32, clients), accepted: map[string]string{}}
	for range clients {
		one, err := testbed.OperatorClient(filepath.Join(c.Dir, "client.yaml"))
		if err != nil {
			return nil, err
		}
		var apis []berthv1connect.BerthServiceClient
		for _, m := range c.Members {
			apis = append(apis, berthv1connect.NewBerthServiceClient(one, "https://"+m.Listen.API))
		}
		all.https, all.apis = append(all.https, one), append(all.apis, apis)
	}
	return all, nil
}

// ask has every client ask this member first.
func (c *callers) ask(member *testbed.Member) {
	for at, m := range c.members {
		if m == member {
			for i := range c.through {
				c.through[i].Store(int32(at))
			}
		}
	}
}

// tryFor is how long a start is asked for again under the same request ID, and callFor how long one call may take.
const (
	tryFor  = time.Minute
	callFor = 10 * time.Second
)

// start starts one more VM as a client. It asks one member after the other until one has accepted, and tells when that was asked.
func (c *callers) start(ctx context.Context, client int) (asked time.Time, err error) {
	name := fmt.Sprintf("vm%06d", c.next.Add(1))
	for deadline := time.Now().Add(tryFor); ; {
		at := c.through[client].Load()
		asked = time.Now()
		if err = c.call(ctx, client, at, name); err == nil {
			return asked, nil
		}
		if code := connect.CodeOf(err); code == connect.CodeInvalidArgument || time.Now().After(deadline) || ctx.Err() != nil {
			return asked, fmt.Errorf("start %s: %w", name, err)
		}
		c.through[client].CompareAndSwap(at, (at+1)%int32(len(c.members)))
		if err := testbed.Pause(ctx, 50*time.Millisecond); err != nil {
			return asked, err
		}
	}
}

// call asks one member once.
func (c *callers) call(ctx context.Context, client int, at int32, name string) error {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	answer, err := c.apis[client][at].StartVM(ctx, connect.NewRequest(&berthv1.StartVMRequest{
		Name: name, RequestId: name, Vm: &berthv1.NewVM{Spec: testbed.SimulatedVM()},
	}))
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accepted[answer.Msg.GetVm().GetId()] = name
	return nil
}

// together lets all clients start so many VMs, and tells of each that was accepted when it was asked for.
func (c *callers) together(ctx context.Context, vms int, accepted func(number int64, asked time.Time)) error {
	var number atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for client := range clients {
		group.Go(func() error {
			for number.Add(1) <= int64(vms) {
				asked, err := c.start(ctx, client)
				if err != nil {
					return err
				}
				accepted(number.Load(), asked)
			}
			return nil
		})
	}
	return group.Wait()
}

func (c *callers) close() {
	for _, one := range c.https {
		one.CloseIdleConnections()
	}
}

// awaitRest waits until no operation runs.
func awaitRest(ctx context.Context, api berthv1connect.BerthServiceClient) error {
	return testbed.Await(ctx, "the operations to end", patience, func(ctx context.Context) error {
		status, err := api.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err == nil && status.Msg.GetOperationsRunning() > 0 {
			err = fmt.Errorf("%d operations run", status.Msg.GetOperationsRunning())
		}
		return err
	})
}

// account compares what was accepted with what the leader has on record and with what the nodes have.
func (s *site) account(ctx context.Context) error {
	defer s.callers.close()
	lead, err := s.leader(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(awaitRest(ctx, lead.API), s.up(ctx)); err != nil {
		return err
	}
	running := map[string]bool{}
	for question := (&berthv1.ListVMsRequest{}); ; {
		page, err := lead.API.ListVMs(ctx, connect.NewRequest(question))
		if err != nil {
			return err
		}
		for _, vm := range page.Msg.GetVms() {
			running[vm.GetId()] = vm.GetState() == berthv1.VMState_VM_STATE_RUNNING
		}
		if question.PageToken = page.Msg.GetNextPageToken(); question.PageToken == "" {
			break
		}
	}
	domains, err := s.agents.Domains()
	if err != nil {
		return err
	}
	bad := 0
	complain := func(format string, arguments ...any) {
		if bad++; bad <= 3 {
			s.tell("%d nodes: "+format, append([]any{s.size.Nodes}, arguments...)...)
		}
	}
	for id, name := range s.callers.accepted {
		if on := domains[id]; len(on) != 1 || !running[id] {
			complain("VM %s was accepted; it runs on %v, and the leader says that it runs: %t", name, on, running[id])
		}
	}
	for id, on := range domains {
		if _, asked := s.callers.accepted[id]; !asked {
			complain("VM %s runs on %v, and nobody was told that it was accepted", id, on)
		}
	}
	s.tell(
		"%d nodes: %d starts were accepted, %d VMs are on record, %d run", s.size.Nodes, len(s.callers.accepted), len(running), len(domains),
	)
	s.is(lost, float64(bad))
	return nil
}
