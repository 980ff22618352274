package term

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"berth/shared/pause"
)

// Watcher is who looks at a stream.
type Watcher[A any] struct {
	Over func() bool // nothing more will come
	See  func(*A)
	Lost func() // told once, when the stream broke and is looked for elsewhere
}

// Watch reads a stream until it is over. When the stream breaks, because its coordinator died or lost the lead, it is
// opened again on any coordinator until the context ends, whose cause is then returned.
func Watch[Q, A any](
	ctx context.Context, s *Session,
	open func(Client, context.Context, *connect.Request[Q]) (*connect.ServerStreamForClient[A], error), question *Q, w Watcher[A],
) error {
	for told := false; !w.Over(); {
		err := s.Call(ctx, func(ctx context.Context, c Client) error {
			stream, err := open(c, ctx, connect.NewRequest(question))
			if err != nil {
				return err
			}
			defer stream.Close()
			for stream.Receive() {
				w.See(stream.Msg())
			}
			if w.Over() {
				return nil // whatever ended the stream
			}
			return stream.Err()
		})
		switch {
		case w.Over():
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && Answered(err) && !CutShort(err):
			return err
		}
		if deadline, limited := ctx.Deadline(); !told && (!limited || time.Until(deadline) > RoundPause) { // else there is no time
			told = true
			w.Lost()
		}
		if !pause.For(ctx, jittered(RoundPause)) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// CutShort tells a stream that its server ended, by our own deadline or because it stops, from a refusal.
func CutShort(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeDeadlineExceeded || code == connect.CodeCanceled
}
