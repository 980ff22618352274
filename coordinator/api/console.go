package api

import (
	"context"
	"sync"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Console joins the caller and the console of a running VM until either ends it, or this member stops or leads no more.
func (s *vmCalls) Console(
	ctx context.Context, stream *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse],
) error {
	interrupt, served := rpc.Interrupter(ctx, answer.Farewell)
	defer served()
	first, err := stream.Receive()
	if err != nil {
		return refusal.New(rpc.Invalid, "", "name the VM in the first message", "the stream does not say which console is meant: %w", err)
	}
	p, err := s.Verified(ctx)
	if err != nil {
		return err
	}
	vm, err := p.NamedVM(first.GetVm())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-s.Stopping:
			cancel(stopping())
		case <-ended:
		}
	}()
	s.Log.Info("a console is opened", "vm", vm.Name, "caller", gate.CallerOf(ctx), "force", first.GetForce())
	err = s.Control.Console(ctx, vm.ID, first.GetForce(), &terminal{stream: stream, interrupt: interrupt})
	s.Log.Info("a console is closed", "vm", vm.Name, "caller", gate.CallerOf(ctx), "reason", err)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// terminal is the caller's side of a console.
type terminal struct {
	stream    *connect.BidiStream[berthv1.ConsoleRequest, berthv1.ConsoleResponse]
	rest      []byte // of the last message
	interrupt func()
	close     sync.Once
}

// Read reads what the caller types.
func (t *terminal) Read(into []byte) (int, error) {
	for len(t.rest) == 0 {
		message, err := t.stream.Receive()
		if err != nil {
			return 0, err // io.EOF when the caller has ended it
		}
		t.rest = message.GetData()
	}
	n := copy(into, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// Write shows the caller what the guest says.
func (t *terminal) Write(data []byte) (int, error) {
	if err := t.stream.Send(&berthv1.ConsoleResponse{Data: data}); err != nil {
		return 0, err
	}
	return len(data), nil
}

// Close makes a Read or Write that waits return.
func (t *terminal) Close() error {
	t.close.Do(t.interrupt)
	return nil
}
