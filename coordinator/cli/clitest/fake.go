package clitest

import (
	"context"
	"net/http"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Fake is a coordinator that answers what a test tells it to. What it is asked about one noun, and what it answers unless a
// test says otherwise, is in the file of the noun. A procedure in no file is not implemented.
type Fake struct {
	recording

	nodeFake
	vmFake
	operationFake
	decisionFake
	estateFake
	groupFake
	planFake
	storageFake
	memberFake
	webhookFake
}

// handler serves all procedures of the fake.
func (f *Fake) handler() http.Handler {
	l := listener{recording: &f.recording, mux: http.NewServeMux()}
	for _, noun := range []interface{ listen(l listener) }{
		&f.nodeFake, &f.vmFake, &f.operationFake, &f.decisionFake, &f.estateFake, &f.groupFake, &f.planFake, &f.storageFake,
		&f.memberFake, &f.webhookFake,
	} {
		noun.listen(l)
	}
	return l.mux
}

// Handler serves all procedures of the fake to a face that has no address for it.
func (f *Fake) Handler() http.Handler { return f.handler() }

// listener is where the parts of a fake say which procedures they answer.
type listener struct {
	*recording
	mux *http.ServeMux
}

// unary records each request of a procedure and answers it as how says by then.
func unary[Q, A any](l listener, procedure string, how *func(*Q) (*A, error)) {
	l.mux.Handle(procedure, connect.NewUnaryHandler(
		procedure, func(_ context.Context, r *connect.Request[Q]) (*connect.Response[A], error) {
			l.record(r.Msg)
			if *how == nil {
				return nil, unexpected(r.Msg)
			}
			answer, err := response((*how)(r.Msg))
			if err == nil && l.Taint != nil {
				l.Taint(answer.Any())
			}
			return answer, err
		},
	))
}

// serverStream records each request of a procedure and sends what how sends by then.
func serverStream[Q, A any](l listener, procedure string, how *func(context.Context, *Q, func(*A) error) error) {
	l.mux.Handle(procedure, connect.NewServerStreamHandler(
		procedure, func(ctx context.Context, r *connect.Request[Q], stream *connect.ServerStream[A]) error {
			l.record(r.Msg)
			if *how == nil {
				return unexpected(r.Msg)
			}
			return (*how)(ctx, r.Msg, func(a *A) error {
				if l.Taint != nil {
					l.Taint(a)
				}
				return stream.Send(a)
			})
		},
	))
}

// upload collects the messages of each call of a procedure and answers them together. What it records is for how to say.
func upload[Q, A any](l listener, procedure string, how func([]*Q) (*A, error)) {
	l.mux.Handle(procedure, connect.NewClientStreamHandler(
		procedure, func(_ context.Context, stream *connect.ClientStream[Q]) (*connect.Response[A], error) {
			var sent []*Q
			for stream.Receive() {
				sent = append(sent, stream.Msg()) // a new one for each message
			}
			if err := stream.Err(); err != nil {
				return nil, err
			}
			return response(how(sent))
		},
	))
}

func response[A any](message *A, err error) (*connect.Response[A], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(message), nil
}

func unexpected(request any) error {
	return rpc.Errorf(connect.CodeInternal, &berthv1.ErrorDetail{Code: rpc.Internal}, "the test did not expect %T", request)
}

// recording keeps what a fake was asked.
type recording struct {
	mu    sync.Mutex
	calls []any // the requests, in order

	// Taint, unless nil, changes every answer before it is sent.
	Taint func(answer any)
}

func (r *recording) record(message any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, message)
}

// Last is the last recorded request of the same kind as like.
func (r *recording) Last(like proto.Message) proto.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.calls) - 1; i >= 0; i-- {
		if m, ok := r.calls[i].(proto.Message); ok && m.ProtoReflect().Descriptor() == like.ProtoReflect().Descriptor() {
			return m
		}
	}
	return like.ProtoReflect().New().Interface()
}

// Asked are the recorded requests of one kind.
func Asked[Q any](f *Fake) []*Q {
	f.mu.Lock()
	defer f.mu.Unlock()
	var found []*Q
	for _, call := range f.calls {
		if request, ok := call.(*Q); ok {
			found = append(found, request)
		}
	}
	return found
}
