package refusal

import (
	"context"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
)

// Interceptor is the interceptor that gives every error its code and next step, and logs the defects among them.
type Interceptor struct {
	Log hclog.Logger
	// Refused is told of every refusal; nil: nobody is.
	Refused func(ctx context.Context, procedure string, refused *connect.Error)
}

// WrapUnary words the refusals of calls with one answer.
func (a Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		response, err := next(ctx, request)
		if err != nil {
			return nil, a.translate(ctx, request.Spec().Procedure, err)
		}
		return response, nil
	}
}

// WrapStreamingHandler words the refusals of streams.
func (a Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := next(ctx, conn); err != nil {
			return a.translate(ctx, conn.Spec().Procedure, err)
		}
		return nil
	}
}

// WrapStreamingClient changes nothing: streams to others are worded there.
func (Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func (a Interceptor) translate(ctx context.Context, procedure string, err error) error {
	translated := Of(err)
	if a.Refused != nil {
		a.Refused(ctx, procedure, translated)
	}
	if translated.Code() == connect.CodeInternal {
		a.Log.Error("a call failed", "procedure", procedure, "error", err)
	}
	return translated
}
