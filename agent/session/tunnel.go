package session

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	"berth/agent/errorcode"
	"berth/agent/tasks"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
)

const (
	// tasksAtOnce is how many tasks are in work at once. The others wait.
	tasksAtOnce = 4
	// consolesAtOnce is how many consoles are open at once. They last as long as people like, so one more does not wait but
	// fails.
	consolesAtOnce = 16
	// pieceSize is the largest content of one message of a tunnel, in bytes.
	pieceSize = 256 << 10
)

// do does a task in its own goroutine and sends its answer. A task does not outlive the connection that started it, except
// for its clean-up.
func (c *connection) do(ctx context.Context, task *berthv1.Task) {
	slots := c.slots
	if !lasting(task) {
		// Short tasks never wait for those that take minutes: a surplus copy of a VM runs until it is suspended.
		c.tasks.Go(func() { c.putResult(ctx, c.Tasks.Do(ctx, task, c.dig)) })
		return
	}
	if task.GetConsole() != nil {
		slots = c.consoles
		select {
		case slots <- struct{}{}:
		default:
			code := berthv1.AgentErrorCode_AGENT_ERROR_CODE_BUSY
			c.putResult(ctx, &berthv1.TaskResult{
				Id: task.GetId(), Code: code, ErrorCode: errorcode.TaskWord(code),
				Error: fmt.Sprintf("%d consoles of this node are open already: close one", consolesAtOnce),
			})
			return
		}
	}
	c.tasks.Go(func() {
		if task.GetConsole() == nil {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
		}
		defer func() { <-slots }()
		c.putResult(ctx, c.Tasks.Do(ctx, task, c.dig))
		if task.GetConsole() == nil {
			c.askInventory() // its pool has one volume more or less, or a larger one
		}
	})
}

// lasting tells whether a task copies or removes content, or lasts as long as somebody likes.
func lasting(task *berthv1.Task) bool {
	switch task.GetAction().(type) {
	case *berthv1.Task_Suspend, *berthv1.Task_Describe, *berthv1.Task_Refuse, *berthv1.Task_Undefine, *berthv1.Task_Discard,
		*berthv1.Task_Unpause, *berthv1.Task_EndCrashed, *berthv1.Task_Devices,
		*berthv1.Task_Profile:
		return false
	default:
		return true
	}
}

func (c *connection) putResult(ctx context.Context, result *berthv1.TaskResult) {
	c.put(ctx, &berthv1.SessionRequest{Message: &berthv1.SessionRequest_TaskResult{TaskResult: result}}, false)
}

// dig opens the tunnel of a ticket at the coordinator of this connection.
func (c *connection) dig(ctx context.Context, ticket string) (tasks.Tunnel, error) {
	ctx, cancel := context.WithCancel(ctx)
	t := &tunnel{cancel: cancel, stream: berthv1connect.NewAgentServiceClient(c.Client, "https://"+c.address).Tunnel(ctx)}
	// As with the session's stream, Receive on a cancelled tunnel would hang until its request side has ended.
	t.hangUp = context.AfterFunc(ctx, func() { _ = t.stream.CloseRequest() })
	if err := t.stream.Send(&berthv1.TunnelRequest{Ticket: ticket}); err != nil {
		_, said := t.stream.Receive()
		_ = t.Close()
		if said != nil && !errors.Is(said, io.EOF) {
			err = said
		}
		return nil, fmt.Errorf("open the tunnel: %w", err)
	}
	return t, nil
}

// tunnel is one tunnel. It may be read and written at the same time.
type tunnel struct {
	stream *connect.BidiStreamForClient[berthv1.TunnelRequest, berthv1.TunnelResponse]
	cancel context.CancelFunc
	hangUp func() bool
	unread []byte
}

// Read implements io.Reader.
func (t *tunnel) Read(into []byte) (int, error) {
	for len(t.unread) == 0 {
		message, err := t.stream.Receive()
		if errors.Is(err, io.EOF) {
			return 0, io.EOF
		}
		if err != nil {
			return 0, fmt.Errorf("the tunnel broke: %w", err)
		}
		t.unread = message.GetData()
	}
	n := copy(into, t.unread)
	t.unread = t.unread[n:]
	return n, nil
}

// Write implements io.Writer.
func (t *tunnel) Write(data []byte) (int, error) {
	sent := 0
	for sent < len(data) {
		piece := data[sent:min(len(data), sent+pieceSize)]
		if err := t.stream.Send(&berthv1.TunnelRequest{Data: piece}); err != nil {
			return sent, fmt.Errorf("the tunnel broke: %w", err)
		}
		sent += len(piece)
	}
	return sent, nil
}

// CloseWrite implements tasks.Tunnel.
func (t *tunnel) CloseWrite() error { return t.stream.CloseRequest() }

// Close implements io.Closer. It ends reads and writes that are waiting.
func (t *tunnel) Close() error {
	t.hangUp()
	_ = t.stream.CloseRequest()
	t.cancel()
	return t.stream.CloseResponse()
}
