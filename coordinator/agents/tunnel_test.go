package agents

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/control/lead"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// onLoopback is a rig that serves, an agent of it with its session open, and the agent's client.
type onLoopback struct {
	*rig
	t       *testing.T
	api     berthv1connect.AgentServiceClient
	session *clientStream
	said    uint64
}

func newLoopback(t *testing.T) *onLoopback {
	t.Helper()
	authority, err := pki.NewAuthority(testCluster, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, "n1")
	r.Lead(1)
	own := pki.Identity{Role: pki.RoleAgent, ID: "n1", Name: "name-n1", ClusterID: testCluster}
	o := &onLoopback{rig: r, t: t, api: client(t, r.listen(t, authority), authority, own), said: 1}
	o.session = o.api.Session(t.Context())
	sayHello(t, o.session, "n1")
	if _, err := o.session.Receive(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = o.session.CloseRequest()
		_ = o.session.CloseResponse()
	})
	return o
}

// begin begins a task, and opens the tunnel that it asks for.
func (o *onLoopback) begin(ctx context.Context, task lead.Task) (<-chan performed, *berthv1.Task, *tunnelStream) {
	o.t.Helper()
	ended := make(chan performed, 1)
	go func() {
		done, err := o.Perform(ctx, "n1", task)
		ended <- performed{done, err}
	}()
	message, err := o.session.Receive()
	if err != nil {
		o.t.Fatal(err)
	}
	order := message.GetTask()
	stream := o.api.Tunnel(o.t.Context())
	o.t.Cleanup(func() {
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
	})
	ticket := order.GetFetch().GetTicket() + order.GetConsole().GetTicket()
	if err := stream.Send(&berthv1.TunnelRequest{Ticket: ticket}); err != nil {
		o.t.Fatal(err)
	}
	return ended, order, stream
}

type tunnelStream = connect.BidiStreamForClient[berthv1.TunnelRequest, berthv1.TunnelResponse]

func (o *onLoopback) finish(result *berthv1.TaskResult) {
	o.t.Helper()
	o.said++
	err := o.session.Send(&berthv1.SessionRequest{Sequence: o.said, Message: &berthv1.SessionRequest_TaskResult{TaskResult: result}})
	if err != nil {
		o.t.Fatal(err)
	}
}

// counting tells how much of it was read.
type counting struct {
	io.Reader
	read atomic.Int64
}

func (c *counting) Read(into []byte) (int, error) {
	n, err := c.Reader.Read(into)
	c.read.Add(int64(n))
	return n, err
}

func TestAFileGoesThroughATunnel(t *testing.T) {
	o := newLoopback(t)
	content := make([]byte, 5*pieceSize+17)
	noise := rand.New(rand.NewPCG(1, 2))
	for i := range content {
		content[i] = byte(noise.Uint32())
	}
	ended, order, stream := o.begin(t.Context(), lead.Task{Fetch: &lead.FetchVolume{Content: bytes.NewReader(content)}})
	var got []byte
	for {
		piece, err := stream.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, piece.GetData()...)
	}
	if !bytes.Equal(got, content) {
		t.Errorf("%d bytes arrived that are not the %d that were sent", len(got), len(content))
	}
	o.finish(&berthv1.TaskResult{Id: order.GetId(), Done: true, AllocatedBytes: 42})
	if end := <-ended; end.err != nil || end.done.Allocated != 42 {
		t.Errorf("ended with %+v", end)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(into []byte) (int, error) { return len(into), nil }

// An agent that does not read holds the file up: no more of it is read than what fits on the way. When the task is given up
// the file is not touched any more, though the agent still does not read.
func TestAnAgentThatDoesNotRead(t *testing.T) {
	o := newLoopback(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	content := &counting{Reader: endless{}}
	ended, _, _ := o.begin(ctx, lead.Task{Fetch: &lead.FetchVolume{Content: content}})
	const most = 64 << 20
	before := int64(-1)
	for deadline := time.Now().Add(10 * time.Second); content.read.Load() == 0 || content.read.Load() != before; {
		if before = content.read.Load(); before > most || time.Now().After(deadline) {
			t.Fatalf("%d bytes were read for an agent that reads none", before)
		}
		time.Sleep(200 * time.Millisecond)
	}
	cancel()
	select {
	case end := <-ended:
		if !errors.Is(end.err, context.Canceled) {
			t.Errorf("ended with %v", end.err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the task did not end")
	}
	after := content.read.Load()
	time.Sleep(50 * time.Millisecond)
	if content.read.Load() != after {
		t.Error("the file is read after the task's end")
	}
}

// A console is joined until either side ends: what was said before arrives, and the other side learns of the end.
func TestAConsoleGoesThroughATunnel(t *testing.T) {
	for _, who := range []string{"the guest ends", "the person ends", "the task is cancelled", "the leadership is lost"} {
		t.Run(who, func(t *testing.T) {
			o := newLoopback(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			person, inside := net.Pipe()
			ended, order, guest := o.begin(ctx, lead.Task{Console: &lead.OpenConsole{VM: "u1", Stream: inside}})
			if _, err := person.Write([]byte("ls\r")); err != nil {
				t.Fatal(err)
			}
			if typed, err := guest.Receive(); err != nil || string(typed.GetData()) != "ls\r" {
				t.Fatalf("the guest got %q, %v", typed.GetData(), err)
			}
			if err := guest.Send(&berthv1.TunnelRequest{Data: []byte("bin etc")}); err != nil {
				t.Fatal(err)
			}
			shown := make([]byte, 7)
			if _, err := io.ReadFull(person, shown); err != nil || string(shown) != "bin etc" {
				t.Fatalf("the person got %q, %v", shown, err)
			}
			switch who {
			case "the guest ends":
				o.finish(&berthv1.TaskResult{Id: order.GetId(), Done: true}) // overtakes the last words
				go func() {
					_ = guest.Send(&berthv1.TunnelRequest{Data: []byte("bye")})
					_ = guest.CloseRequest()
				}()
				if last, err := io.ReadAll(person); string(last) != "bye" || err != nil {
					t.Errorf("the last words were %q, %v", last, err)
				}
			case "the person ends":
				person.Close()
				if _, err := guest.Receive(); !errors.Is(err, io.EOF) {
					t.Errorf("the guest learned of the end as %v", err)
				}
				o.finish(&berthv1.TaskResult{Id: order.GetId(), Done: true})
			case "the task is cancelled":
				cancel()
			default:
				o.Follow()
			}
			select {
			case end := <-ended:
				if good := who == "the guest ends" || who == "the person ends"; good != (end.err == nil) {
					t.Errorf("ended with %v", end.err)
				}
			case <-time.After(10 * time.Second):
				t.Fatal("the task did not end")
			}
			if _, err := person.Read(make([]byte, 1)); err == nil {
				t.Error("the person's side is still open")
			}
			if _, err := guest.Receive(); err == nil {
				t.Error("the guest's side is still open")
			}
		})
	}
}

func TestATunnelNeedsATicket(t *testing.T) {
	o := newLoopback(t)
	for _, ticket := range []string{"", "guessed"} {
		stream := o.api.Tunnel(t.Context())
		if err := stream.Send(&berthv1.TunnelRequest{Ticket: ticket}); err != nil && !errors.Is(err, io.EOF) { // the answer says why
			t.Fatal(err)
		}
		if _, err := stream.Receive(); rpc.Detail(err).GetCode() != rpc.Denied {
			t.Errorf("ticket %q: %v, want denied", ticket, err)
		}
		_ = stream.CloseRequest()
		_ = stream.CloseResponse()
	}
}
