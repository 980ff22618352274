package agents

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/inventory"
	"berth/coordinator/operation"
	"berth/coordinator/wire"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// ticketLife is how long an agent has to open the tunnel that a task needs.
const ticketLife = 30 * time.Second

var (
	errNoSession = errors.New("its agent is not connected")
	errNotTaken  = fmt.Errorf("its agent did not take the task up within %s", ticketLife)
)

// Perform has a node's agent do a task and waits for its end. The error is a *control.TaskError when the agent answered.
// Any other one leaves open what became of the task: the node has no session, it lost it, the agent did not open the tunnel
// in time, or the context ended. What the task reads and writes is not touched any more when Perform returns, and a console's
// stream is closed.
func (s *Server) Perform(ctx context.Context, node string, task lead.Task) (lead.TaskDone, error) {
	return s.perform(ctx, s.session(node), node, task)
}

func (s *Server) perform(ctx context.Context, x *session, node string, task lead.Task) (lead.TaskDone, error) {
	tunnel := s.dig(node, task)
	defer s.fill(tunnel)
	if x == nil {
		return lead.TaskDone{}, s.unknown(node, errNoSession)
	}
	message := taskMessage(task, tunnel.ticket)
	if lacks := capability.Lacks(x.knows, message); len(lacks) > 0 {
		return lead.TaskDone{}, &lead.TaskError{Code: operation.Unsupported, Message: capability.Refused(x.name, x.release, lacks)}
	}
	results := x.expect(message.GetId())
	defer x.drop(message.GetId())
	if !x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Task{Task: message}}) {
		return lead.TaskDone{}, s.unknown(node, errNoSession)
	}
	late, taken := time.NewTimer(ticketLife), tunnel.taken
	defer late.Stop()
	for {
		select {
		case result := <-results:
			if !result.GetDone() {
				return lead.TaskDone{}, &lead.TaskError{Code: errorCode(result.GetCode(), result.GetErrorCode()), Message: result.GetError()}
			}
			tunnel.drain()
			return lead.TaskDone{
				Allocated: units.Bytes(result.GetAllocatedBytes()), DomainXML: result.GetDomainXml(), Reached: result.GetReached(),
				Locked: result.GetLocked(), Capacity: units.Bytes(max(result.GetCapacityBytes(), 0)),
				Devices: inventory.DevicesFrom(result.GetDevices()),
				Frozen:  result.GetFrozen(), Profile: wire.ProfileFrom(result.GetProfile()), Minutes: wire.ProfileFrom(result.GetMinutes()),
			}, nil
		case <-taken:
			late.Stop()
			taken = nil
		case <-late.C:
			if tunnel.ticket != "" {
				return lead.TaskDone{}, s.unknown(node, errNotTaken)
			}
		case <-x.ended:
			return lead.TaskDone{}, s.unknown(node, fmt.Errorf("its session ended: %s", reasonOf(x.cause)))
		case <-ctx.Done():
			return lead.TaskDone{}, s.unknown(node, context.Cause(ctx))
		}
	}
}

// unknown says that it is not known what became of a task on a node.
func (s *Server) unknown(node string, why error) error {
	name := node
	if record, known := s.Records.Snapshot().Node(node); known {
		name = record.Name
	}
	return fmt.Errorf("node %s: %w", name, why)
}

// taskMessage puts a task on the wire.
func taskMessage(task lead.Task, ticket string) *berthv1.Task {
	m := &berthv1.Task{Id: randomWord()}
	switch {
	case task.Grow != nil:
		m.Action = &berthv1.Task_Grow{Grow: &berthv1.GrowTask{Volume: volume(&task.Grow.Volume), VmId: task.Grow.VM}}
	case task.Fetch != nil:
		m.Action = &berthv1.Task_Fetch{Fetch: &berthv1.FetchTask{
			Volume: volume(&task.Fetch.Volume), SizeBytes: int64(task.Fetch.Size), Sha256: task.Fetch.Checksum, Ticket: ticket,
		}}
	case task.Console != nil:
		m.Action = &berthv1.Task_Console{Console: &berthv1.ConsoleTask{
			VmId: task.Console.VM, Epoch: task.Console.Epoch, Force: task.Console.Force, Ticket: ticket,
		}}
	case task.Suspend != nil:
		m.Action = &berthv1.Task_Suspend{Suspend: &berthv1.SuspendTask{VmId: task.Suspend.VM, Epoch: task.Suspend.Epoch}}
	case task.Document != "":
		m.Action = &berthv1.Task_Describe{Describe: &berthv1.DescribeTask{VmId: task.Document, Running: true}}
	case task.Describe != "":
		m.Action = &berthv1.Task_Describe{Describe: &berthv1.DescribeTask{VmId: task.Describe}}
	case task.Refuse != nil:
		m.Action = &berthv1.Task_Refuse{Refuse: &berthv1.RefuseTask{VmId: task.Refuse.VM, Epoch: task.Refuse.Epoch}}
	case task.Undefine != nil:
		m.Action = &berthv1.Task_Undefine{Undefine: &berthv1.UndefineTask{VmId: task.Undefine.VM, Epoch: task.Undefine.Epoch}}
	case task.Unpause != nil:
		m.Action = &berthv1.Task_Unpause{Unpause: &berthv1.UnpauseTask{VmId: task.Unpause.VM, Epoch: task.Unpause.Epoch}}
	case task.Crashed != nil:
		m.Action = &berthv1.Task_EndCrashed{EndCrashed: &berthv1.EndCrashedTask{VmId: task.Crashed.VM, Epoch: task.Crashed.Epoch}}
	case task.Lock != nil:
		m.Action = &berthv1.Task_Lock{Lock: &berthv1.LockTask{
			Pool: task.Lock.Pool, Volume: task.Lock.Volume, Step: berthv1.LockStep(task.Lock.Step),
		}}
	case task.Devices != nil:
		m.Action = &berthv1.Task_Devices{Devices: &berthv1.DevicesTask{VmId: task.Devices.VM, Epoch: task.Devices.Epoch}}
	case task.Sizes != nil:
		m.Action = &berthv1.Task_Devices{Devices: &berthv1.DevicesTask{VmId: task.Sizes.VM, Epoch: task.Sizes.Epoch, Capacities: true}}
	case task.Frozen != nil:
		m.Action = &berthv1.Task_Devices{Devices: &berthv1.DevicesTask{VmId: task.Frozen.VM, Epoch: task.Frozen.Epoch, Frozen: true}}
	case task.Discard != nil:
		m.Action = &berthv1.Task_Discard{Discard: &berthv1.DiscardTask{VmId: task.Discard.VM, Epoch: task.Discard.Epoch}}
	case task.Profile != nil:
		m.Action = &berthv1.Task_Profile{Profile: &berthv1.ProfileTask{VmId: task.Profile.VM}}
	case len(task.Reach) > 0:
		m.Action = &berthv1.Task_Reach{Reach: &berthv1.ReachTask{Addresses: task.Reach}}
	default:
		m.Action = &berthv1.Task_Remove{Remove: &berthv1.RemoveTask{Volumes: volumes(task.Remove)}}
	}
	return m
}

// randomWord cannot be guessed.
func randomWord() string {
	var bits [16]byte
	_, _ = rand.Read(bits[:]) // never fails: crypto/rand ends the process instead
	return hex.EncodeToString(bits[:])
}

// expect makes a place for the result of a task, and drop takes it away.
func (x *session) expect(task string) <-chan *berthv1.TaskResult {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.tasks == nil {
		x.tasks = make(map[string]chan *berthv1.TaskResult)
	}
	x.tasks[task] = make(chan *berthv1.TaskResult, 1)
	return x.tasks[task]
}

func (x *session) drop(task string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.tasks, task)
}

// finish takes the result of a task in. One that nobody waits for any more, or that has come before, is nothing.
func (x *session) finish(result *berthv1.TaskResult) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if waiting := x.tasks[result.GetId()]; waiting != nil {
		waiting <- result
		delete(x.tasks, result.GetId())
	}
}
