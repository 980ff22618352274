package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/agent/tasks"
	berthv1 "berth/shared/gen/berth/v1"
)

type digging = connect.BidiStream[berthv1.TunnelRequest, berthv1.TunnelResponse]

func (l *leader) Tunnel(ctx context.Context, stream *digging) error { return l.tunnel(ctx, stream) }

// assign serves a session that gives tasks and hands on their answers.
func assign(given <-chan *berthv1.Task, answers chan<- *berthv1.TaskResult) func(context.Context, *stream) error {
	return func(ctx context.Context, stream *stream) error {
		if _, err := stream.Receive(); err != nil {
			return err
		}
		if err := stream.Send(welcome()); err != nil {
			return err
		}
		defer relay(ctx, given, func(task *berthv1.Task) {
			_ = stream.Send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Task{Task: task}})
		})()
		for {
			message, err := stream.Receive()
			if err != nil {
				return nil
			}
			if result := message.GetTaskResult(); result != nil {
				answers <- result
			}
		}
	}
}

const vmUUID = "11111111-2222-4333-8444-555555555555"

func consoleOf(ticket string) *berthv1.Task {
	return &berthv1.Task{Id: ticket, Action: &berthv1.Task_Console{Console: &berthv1.ConsoleTask{VmId: vmUUID, Ticket: ticket}}}
}

func bootGuest(t *testing.T, a *agent) {
	t.Helper()
	const xml = `<domain type="kvm"><name>web1</name><uuid>` + vmUUID + `</uuid><memory>65536</memory></domain>`
	if err := a.node.Start(t.Context(), xml); err != nil {
		t.Fatal(err)
	}
}

func TestAFileComesThroughATunnel(t *testing.T) {
	content := bytes.Repeat([]byte("berth "), 200_000)
	sum := sha256.Sum256(content)
	given, answers := make(chan *berthv1.Task, 4), make(chan *berthv1.TaskResult, 4)
	address, client := listen(t, &leader{
		serve: assign(given, answers),
		tunnel: func(_ context.Context, stream *digging) error {
			first, err := stream.Receive()
			if err != nil || first.GetTicket() == "old" {
				return connect.NewError(connect.CodePermissionDenied, errors.New("the ticket is not good"))
			}
			for rest := content; len(rest) > 0; {
				piece := rest[:min(len(rest), 256<<10)]
				if err := stream.Send(&berthv1.TunnelResponse{Data: piece}); err != nil {
					return err
				}
				if rest = rest[len(piece):]; first.GetTicket() == "broken" {
					return connect.NewError(connect.CodeUnavailable, errors.New("the spool is gone"))
				}
			}
			return nil
		},
	})
	a := run(t, client, nil, address)
	a.node.AddPool("local", 1<<30)
	for ticket, want := range map[string]string{"good": "", "broken": "the spool is gone", "old": "the ticket is not good"} {
		given <- &berthv1.Task{Id: ticket, Action: &berthv1.Task_Fetch{Fetch: &berthv1.FetchTask{
			Volume:    &berthv1.Volume{Pool: "local", Name: ticket, Format: "raw", CapacityBytes: int64(len(content))},
			SizeBytes: int64(len(content)), Sha256: hex.EncodeToString(sum[:]), Ticket: ticket,
		}}}
		result := wait(t, "the answer of "+ticket, answers)
		if result.GetId() != ticket || result.GetDone() != (want == "") || !strings.Contains(result.GetError(), want) {
			t.Errorf("%s: %v", ticket, result)
		}
	}
	if got := a.node.Volumes("local"); len(got) != 1 || !bytes.Equal(a.node.Content("local", "good"), content) {
		t.Errorf("the pool has %v", got)
	}
}

func TestAConsoleIsJoinedUntilEitherEnds(t *testing.T) {
	given, answers := make(chan *berthv1.Task, 4), make(chan *berthv1.TaskResult, 4)
	ends := make(chan error, 1)
	var destroy atomic.Value // func(), when the guest ends and not the caller
	address, client := listen(t, &leader{
		serve: assign(given, answers),
		tunnel: func(_ context.Context, stream *digging) error {
			first, err := stream.Receive()
			if err != nil || first.GetTicket() == "" {
				return fmt.Errorf("the first message is %v, %w", first, err)
			}
			if err := stream.Send(&berthv1.TunnelResponse{Data: []byte("hello")}); err != nil {
				return err
			}
			var said []byte
			for string(said) != "hello" {
				message, err := stream.Receive()
				if err != nil {
					return err
				}
				said = append(said, message.GetData()...)
			}
			if end, ok := destroy.Load().(func()); ok {
				end()
				_, err = stream.Receive()
				ends <- err
			}
			return nil
		},
	})
	a := run(t, client, nil, address)
	bootGuest(t, a)
	given <- consoleOf("caller")
	if result := wait(t, "the end by the caller", answers); !result.GetDone() {
		t.Errorf("%v", result)
	}
	destroy.Store(func() { _ = a.node.Destroy(context.Background(), vmUUID, 0) })
	given <- consoleOf("guest")
	if err := wait(t, "the end by the guest", ends); !errors.Is(err, io.EOF) {
		t.Errorf("the tunnel ends with %v", err)
	}
	if result := wait(t, "the answer", answers); !result.GetDone() {
		t.Errorf("%v", result)
	}
}

// blocked are tasks that last until they are let go.
type blocked struct {
	running, most atomic.Int32
	release       chan struct{}
}

func (b *blocked) Do(ctx context.Context, task *berthv1.Task, _ tasks.Dig) *berthv1.TaskResult {
	now := b.running.Add(1)
	defer b.running.Add(-1)
	for most := b.most.Load(); now > most && !b.most.CompareAndSwap(most, now); most = b.most.Load() {
	}
	select {
	case <-b.release:
	case <-ctx.Done():
	}
	return &berthv1.TaskResult{Id: task.GetId(), Done: true}
}

func TestTasksAreBounded(t *testing.T) {
	const many = 3 * consolesAtOnce
	for name, c := range map[string]struct {
		task    *berthv1.Task
		bound   int32
		refused int // the others wait
	}{
		"tasks":    {&berthv1.Task{Action: &berthv1.Task_Remove{Remove: &berthv1.RemoveTask{}}}, tasksAtOnce, 0},
		"consoles": {consoleOf(""), consolesAtOnce, many - consolesAtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			given, answers := make(chan *berthv1.Task, many), make(chan *berthv1.TaskResult, many)
			address, client := listen(t, &leader{serve: assign(given, answers)})
			for range many {
				given <- c.task
			}
			work := &blocked{release: make(chan struct{})}
			runWith(t, client, work, nil, address)
			for range c.refused {
				if result := wait(t, "a refusal", answers); result.GetErrorCode() != "busy" {
					t.Errorf("%v", result)
				}
			}
			for deadline := time.Now().Add(20 * time.Second); work.running.Load() < c.bound; time.Sleep(time.Millisecond) {
				if time.Now().After(deadline) {
					t.Fatalf("%d run at once", work.running.Load())
				}
			}
			close(work.release)
			for range many - c.refused {
				if result := wait(t, "an answer", answers); !result.GetDone() {
					t.Errorf("%v", result)
				}
			}
			if most := work.most.Load(); most != c.bound {
				t.Errorf("%d ran at once, want %d", most, c.bound)
			}
		})
	}
}

// When the session breaks, its tasks end: nobody would hear their answers.
func TestTasksEndWithTheSession(t *testing.T) {
	given, answers := make(chan *berthv1.Task, 1), make(chan *berthv1.TaskResult, 1)
	address, client := listen(t, &leader{
		serve: assign(given, answers),
		tunnel: func(ctx context.Context, stream *digging) error {
			_, _ = stream.Receive()
			<-ctx.Done()
			return ctx.Err()
		},
	})
	a := run(t, client, nil, address)
	bootGuest(t, a)
	given <- consoleOf("t")
	held := func() bool {
		console, err := a.node.OpenConsole(t.Context(), vmUUID, false)
		if err == nil {
			_ = console.Close()
		}
		return err != nil
	}
	for deadline := time.Now().Add(20 * time.Second); !held(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the console was not taken")
		}
	}
	a.stop()
	for deadline := time.Now().Add(20 * time.Second); held(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the console is still held")
		}
	}
}
