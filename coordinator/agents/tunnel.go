package agents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/control/lead"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

const (
	// pieceSize is how much of a file one message carries, in bytes.
	pieceSize = 256 << 10
	// consolePiece is how much of what is typed one message carries at most, in bytes.
	consolePiece = 4 << 10
)

// tunnel is what the bytes of one task go through: those of a file to the agent, or a console's both ways. Nothing is kept in
// between: either side waits for the other.
type tunnel struct {
	ticket  string // empty: the task needs none
	node    string
	content io.Reader          // of a file
	console io.ReadWriteCloser // or a console's

	redeemed bool          // under Server.mu
	taken    chan struct{} // closed when the agent has come with the ticket
	over     chan struct{} // closed when the task has ended
	left     chan struct{} // closed when nothing is read or written any more
}

// dig makes the tunnel of a task, if it needs one. The ticket is good once, for the task's node, until fill.
func (s *Server) dig(node string, task lead.Task) *tunnel {
	t := &tunnel{node: node, taken: make(chan struct{}), over: make(chan struct{}), left: make(chan struct{})}
	switch {
	case task.Fetch != nil:
		t.content = task.Fetch.Content
	case task.Console != nil:
		t.console = task.Console.Stream
	default:
		return t
	}
	t.ticket = randomWord()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tunnels[t.ticket] = t
	return t
}

// fill ends a tunnel, and waits until nothing is read or written any more.
func (s *Server) fill(t *tunnel) {
	s.mu.Lock()
	delete(s.tunnels, t.ticket)
	redeemed := t.redeemed
	s.mu.Unlock()
	close(t.over)
	if t.console != nil {
		_ = t.console.Close() // there is nobody left to tell
	}
	if redeemed {
		<-t.left
	}
}

// drain lets what is under way to a console arrive: the word that the task is done may overtake it.
func (t *tunnel) drain() {
	if t.console == nil {
		return
	}
	timer := time.NewTimer(farewell)
	defer timer.Stop()
	select {
	case <-t.left:
	case <-timer.C:
	}
}

// redeem gives the tunnel of a ticket to the agent of the node that it was made for, once.
func (s *Server) redeem(ticket string, caller pki.Identity) (*tunnel, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tunnels[ticket]
	if t == nil || t.node != caller.ID || t.redeemed {
		return nil, denied("node/"+caller.Name, "nothing is to be done: the caller of the task is told, and may ask for it again",
			"the ticket is not good, or not any more")
	}
	t.redeemed = true
	close(t.taken)
	return t, nil
}

// pipe is the stream of a tunnel, as connect.BidiStream has it.
type pipe interface {
	Receive() (*berthv1.TunnelRequest, error)
	Send(response *berthv1.TunnelResponse) error
}

// Tunnel carries the bytes of one task. It implements berthv1connect.AgentServiceHandler.
func (s *Server) Tunnel(
	ctx context.Context, stream *connect.BidiStream[berthv1.TunnelRequest, berthv1.TunnelResponse],
) error {
	caller, err := s.agentOf(ctx)
	if err != nil {
		return err
	}
	interrupt, served := rpc.Interrupter(ctx, farewell)
	defer served()
	return s.carry(caller, stream, interrupt)
}

// carry serves the tunnel of an agent whose certificate is good. Interrupt makes a blocked Receive return at once and a
// blocked Send soon.
func (s *Server) carry(caller pki.Identity, stream pipe, interrupt func()) error {
	silence := time.AfterFunc(helloWithin, interrupt)
	first, err := stream.Receive()
	silence.Stop()
	if err != nil {
		return rpc.Errorf(connect.CodeInvalidArgument, nil, "a tunnel begins with its ticket: %w", err)
	}
	t, err := s.redeem(first.GetTicket(), caller)
	if err != nil {
		return err
	}
	defer close(t.left)
	done := make(chan struct{})
	defer close(done)
	go func() {
		select {
		case <-t.over:
			interrupt()
		case <-done:
		}
	}()
	if t.content != nil {
		return t.feed(stream)
	}
	t.join(s.Log, stream, interrupt)
	return nil
}

var errTaskOver = errors.New("the task has ended")

// feed sends the file to its end, as fast as the agent takes it.
func (t *tunnel) feed(stream pipe) error {
	piece := make([]byte, pieceSize)
	for {
		select {
		case <-t.over:
			return rpc.Errorf(connect.CodeAborted, nil, "%w", errTaskOver)
		default:
		}
		n, err := io.ReadFull(t.content, piece)
		if n > 0 {
			if err := stream.Send(&berthv1.TunnelResponse{Data: piece[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the file: %w", err)
		}
	}
}

// join carries bytes both ways until either side ends, and ends the other one.
func (t *tunnel) join(log hclog.Logger, stream pipe, interrupt func()) {
	var typed sync.WaitGroup
	typed.Go(func() {
		defer interrupt()
		_ = lead.Survive(log, "a console", func() error {
			piece := make([]byte, consolePiece)
			for {
				n, err := t.console.Read(piece)
				if n > 0 && stream.Send(&berthv1.TunnelResponse{Data: piece[:n]}) != nil {
					return nil
				}
				if err != nil {
					return nil
				}
			}
		})
	})
	for {
		shown, err := stream.Receive()
		if err != nil {
			break
		}
		if _, err := t.console.Write(shown.GetData()); err != nil {
			break
		}
	}
	_ = t.console.Close() // wakes the reader; there is nobody left to tell
	typed.Wait()
}
