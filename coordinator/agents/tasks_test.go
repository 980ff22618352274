package agents

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/profile"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
	"berth/shared/units"
)

// performed is how a task ended.
type performed struct {
	done lead.TaskDone
	err  error
}

// perform begins a task and gives its message, once the agent has it.
func (r *rig) perform(ctx context.Context, a *agent, task lead.Task) (<-chan performed, *berthv1.Task) {
	ended := make(chan performed, 1)
	go func() {
		done, err := r.Perform(ctx, a.node, task)
		ended <- performed{done, err}
	}()
	for {
		if message := (<-a.down).(*berthv1.SessionResponse).GetTask(); message != nil {
			return ended, message
		}
	}
}

func (a *agent) finish(result *berthv1.TaskResult) {
	a.say(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_TaskResult{TaskResult: result}})
}

func TestTasksOnTheWire(t *testing.T) {
	order := model.VolumeOrder{Disk: "d1", PoolName: "fast", Name: "berth-d1.qcow2", Format: "qcow2", Capacity: 2 * units.GiB}
	wire := &berthv1.Volume{Pool: "fast", Name: "berth-d1.qcow2", Format: "qcow2", CapacityBytes: 2 << 30}
	for name, tc := range map[string]struct {
		task lead.Task
		want *berthv1.Task
	}{
		"grow": {
			lead.Task{Grow: &lead.GrowVolume{Volume: order, VM: "u1"}},
			&berthv1.Task{Action: &berthv1.Task_Grow{Grow: &berthv1.GrowTask{Volume: wire, VmId: "u1"}}},
		},
		"remove": {
			lead.Task{Remove: []model.VolumeOrder{order}},
			&berthv1.Task{Action: &berthv1.Task_Remove{Remove: &berthv1.RemoveTask{Volumes: []*berthv1.Volume{wire}}}},
		},
		"fetch": {
			lead.Task{Fetch: &lead.FetchVolume{Volume: order, Size: 5, Checksum: "abc"}},
			&berthv1.Task{Action: &berthv1.Task_Fetch{Fetch: &berthv1.FetchTask{
				Volume: wire, SizeBytes: 5, Sha256: "abc", Ticket: "ticket",
			}}},
		},
		"reach": {
			lead.Task{Reach: []string{"n1:16514"}},
			&berthv1.Task{Action: &berthv1.Task_Reach{Reach: &berthv1.ReachTask{Addresses: []string{"n1:16514"}}}},
		},
		"profile": {
			lead.Task{Profile: &lead.ProfileOf{VM: "u1"}}, &berthv1.Task{Action: &berthv1.Task_Profile{Profile: &berthv1.ProfileTask{VmId: "u1"}}},
		},
		"suspend": {
			lead.Task{Suspend: &lead.CopyOf{VM: "u1", Epoch: 3}},
			&berthv1.Task{Action: &berthv1.Task_Suspend{Suspend: &berthv1.SuspendTask{VmId: "u1", Epoch: 3}}},
		},
		"document": {
			lead.Task{Document: "u1"}, &berthv1.Task{Action: &berthv1.Task_Describe{Describe: &berthv1.DescribeTask{VmId: "u1", Running: true}}},
		},
		"describe": {
			lead.Task{Describe: "u1"}, &berthv1.Task{Action: &berthv1.Task_Describe{Describe: &berthv1.DescribeTask{VmId: "u1"}}},
		},
		"refuse": {
			lead.Task{Refuse: &lead.CopyOf{VM: "u1", Epoch: 3}},
			&berthv1.Task{Action: &berthv1.Task_Refuse{Refuse: &berthv1.RefuseTask{VmId: "u1", Epoch: 3}}},
		},
		"undefine": {
			lead.Task{Undefine: &lead.CopyOf{VM: "u1", Epoch: 3}},
			&berthv1.Task{Action: &berthv1.Task_Undefine{Undefine: &berthv1.UndefineTask{VmId: "u1", Epoch: 3}}},
		},
		"discard": {
			lead.Task{Discard: &lead.CopyOf{VM: "u1", Epoch: 3}},
			&berthv1.Task{Action: &berthv1.Task_Discard{Discard: &berthv1.DiscardTask{VmId: "u1", Epoch: 3}}},
		},
		"console": {
			lead.Task{Console: &lead.OpenConsole{VM: "u1", Epoch: 3, Force: true}},
			&berthv1.Task{Action: &berthv1.Task_Console{Console: &berthv1.ConsoleTask{
				VmId: "u1", Epoch: 3, Force: true, Ticket: "ticket",
			}}},
		},
	} {
		got := taskMessage(tc.task, "ticket")
		if got.GetId() == "" || got.GetId() == taskMessage(tc.task, "ticket").GetId() {
			t.Errorf("%s: the ID %q does not tell two tasks apart", name, got.GetId())
		}
		if diff := cmp.Diff(tc.want, got, protocmp.Transform(), protocmp.IgnoreFields(tc.want, "id")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A task ends with its own answer, and with no other one's.
func TestATaskWaitsForItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1")
		r.Lead(1)
		a := r.dial("n1")
		a.hello()
		synctest.Wait()
		first, one := r.perform(t.Context(), a, lead.Task{Remove: []model.VolumeOrder{{Name: "a"}}})
		second, two := r.perform(t.Context(), a, lead.Task{Grow: &lead.GrowVolume{}})
		a.telemetry()
		a.finish(&berthv1.TaskResult{Id: "nobody's", Done: true})
		a.finish(&berthv1.TaskResult{Id: two.GetId(), ErrorCode: "no_space", Error: "the pool is full"})
		got := <-second
		var refused *lead.TaskError
		if !errors.As(got.err, &refused) || *refused != (lead.TaskError{Code: "no_space", Message: "the pool is full"}) {
			t.Errorf("the second task ended with %v", got.err)
		}
		select {
		case got := <-first:
			t.Errorf("the first task ended with the answer of the second: %+v", got)
		default:
		}
		time.Sleep(model.UnreachableAfter / 2) // a task without a tunnel has no haste of its own
		a.telemetry()
		a.finish(&berthv1.TaskResult{Id: one.GetId(), Done: true, AllocatedBytes: 7})
		a.finish(&berthv1.TaskResult{Id: one.GetId(), Done: true, AllocatedBytes: 8}) // once more: nothing
		if got := <-first; got.err != nil || got.done.Allocated != 7 {
			t.Errorf("the first task ended with %+v", got)
		}
		a.hangUp()
		<-a.result
	})
}

// A node tells of its week what it knows. One whose agent keeps none is not asked.
func TestAWeekOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, "n1", "n2")
		r.Lead(1)
		a, old := r.dial("n1"), r.dial("n2")
		old.knows = nil
		a.hello()
		old.hello()
		synctest.Wait()
		ended, task := r.perform(t.Context(), a, lead.Task{Profile: &lead.ProfileOf{}})
		began := time.Date(2026, 11, 23, 5, 0, 0, 0, time.UTC)
		a.finish(&berthv1.TaskResult{Id: task.GetId(), Done: true, Profile: []*berthv1.ProfileHour{
			{BeganAt: timestamppb.New(began), CpuRatio: new(0.5), MemoryBytes: new(int64(7))},
			{BeganAt: timestamppb.New(began), VcpuDelayRatio: new(0.1)},
		}, Minutes: []*berthv1.ProfileHour{{BeganAt: timestamppb.New(began.Add(time.Minute)), CpuRatio: new(0.25)}}})
		got := <-ended
		want := []profile.Hour{{Began: began, CPU: new(0.5), Memory: new(units.Bytes(7))}, {Began: began, Delay: new(0.1)}}
		if diff := cmp.Diff(want, got.done.Profile); diff != "" || got.err != nil {
			t.Errorf("%v\n%s", got.err, diff)
		}
		if diff := cmp.Diff([]profile.Hour{{Began: began.Add(time.Minute), CPU: new(0.25)}}, got.done.Minutes); diff != "" {
			t.Error(diff)
		}
		_, err := r.Perform(t.Context(), "n2", lead.Task{Profile: &lead.ProfileOf{}})
		var refused *lead.TaskError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, "it keeps no weekly profiles") {
			t.Errorf("an old agent: %v", err)
		}
		a.hangUp()
		old.hangUp()
		<-a.result
		<-old.result
	})
}

// Whatever comes between a task and its answer: it ends, with an error that is not the agent's, and nothing of it is left.
func TestATaskThatGetsNoAnswer(t *testing.T) {
	fetch := lead.Task{Fetch: &lead.FetchVolume{Content: strings.NewReader("content")}}
	grow := lead.Task{Grow: &lead.GrowVolume{}}
	for name, tc := range map[string]struct {
		task   lead.Task
		happen func(*rig, *agent, context.CancelFunc)
		after  time.Duration
		say    string
	}{
		"the agent hangs up": {
			grow, func(_ *rig, a *agent, _ context.CancelFunc) { a.hangUp() }, 0, "node name-n1: its session ended: the agent closed it",
		},
		"the leadership is lost":     {grow, func(r *rig, _ *agent, _ context.CancelFunc) { r.Follow() }, 0, "leads no more"},
		"nobody wants it any more":   {grow, func(_ *rig, _ *agent, cancel context.CancelFunc) { cancel() }, 0, "context canceled"},
		"the ticket is not redeemed": {fetch, func(*rig, *agent, context.CancelFunc) {}, ticketLife, "did not take the task up within 30s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, "n1")
				r.Lead(1)
				a := r.dial("n1")
				a.hello()
				synctest.Wait()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				ended, _ := r.perform(ctx, a, tc.task)
				tc.happen(r, a, cancel)
				stop := a.keepTalking()
				got := <-ended
				stop()
				if got.err == nil || errors.As(got.err, new(*lead.TaskError)) || !strings.Contains(got.err.Error(), tc.say) {
					t.Errorf("ended with %v, want it not to be known, and %q", got.err, tc.say)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("that took %s, want %s", took, tc.after)
				}
				if x := r.session("n1"); len(r.tunnels) != 0 || x != nil && len(x.tasks) != 0 {
					t.Errorf("left behind: %d tunnels, session %+v", len(r.tunnels), x)
				}
				a.hangUp()
				<-a.result
			})
		})
	}
}

// keepTalking lets an agent send telemetry, so that its session does not end for silence, until stop is called.
func (a *agent) keepTalking() (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-done:
				return
			case <-time.After(model.UnreachableAfter / 3):
				a.telemetry()
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}

func TestATaskForANodeWithoutASession(t *testing.T) {
	r := newRig(t, "n1")
	r.Lead(1)
	_, err := r.Perform(t.Context(), "n1", lead.Task{Fetch: &lead.FetchVolume{Content: strings.NewReader("x")}})
	if !errors.Is(err, errNoSession) || !strings.Contains(err.Error(), "name-n1") || len(r.tunnels) != 0 {
		t.Errorf("%v, %d tunnels; want that its agent is not connected", err, len(r.tunnels))
	}
}

// A ticket is good once, and for the node that it was made for.
func TestTickets(t *testing.T) {
	r := newRig(t, "n1", "n2")
	dug := r.dig("n1", lead.Task{Fetch: &lead.FetchVolume{Content: strings.NewReader("content")}})
	own, other := (&agent{node: "n1"}).identity(), (&agent{node: "n2"}).identity()
	refused := func(what, ticket string, of *agent) {
		t.Helper()
		if _, err := r.redeem(ticket, of.identity()); rpc.Detail(err).GetCode() != rpc.Denied {
			t.Errorf("%s: %v, want denied", what, err)
		}
	}
	refused("another node's", dug.ticket, &agent{node: other.ID})
	refused("a guessed one", "guessed", &agent{node: "n1"})
	refused("none", "", &agent{node: "n1"})
	if got, err := r.redeem(dug.ticket, own); err != nil || got != dug {
		t.Fatalf("its own: %v", err)
	}
	refused("the same once more", dug.ticket, &agent{node: "n1"})
	close(dug.left) // as the handler does
	r.fill(dug)
	refused("after the task's end", dug.ticket, &agent{node: "n1"})
}
