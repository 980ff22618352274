package rpc

import (
	"context"
	"net/http"
	"sync"
	"time"
)

type controllerKey struct{}

// WithInterrupts lets the handlers of streams interrupt their own reads and writes, which connect has no way for.
func WithInterrupts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), controllerKey{}, controller)))
	})
}

// Interrupter gives a handler what makes a blocked Receive of its stream return at once, and leaves a blocked Send the time
// of a farewell. It may be called by anybody at any time. The handler has to call served when it returns: after that the
// stream must not be touched, and interrupt does nothing.
func Interrupter(ctx context.Context, farewell time.Duration) (interrupt, served func()) {
	controller, ok := ctx.Value(controllerKey{}).(*http.ResponseController)
	if !ok {
		return func() {}, func() {}
	}
	var (
		mu   sync.Mutex
		over bool
	)
	interrupt = func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		now := time.Now()
		// Neither fails on HTTP/2, and streams in both directions are HTTP/2 always.
		_ = controller.SetReadDeadline(now)
		_ = controller.SetWriteDeadline(now.Add(farewell))
	}
	return interrupt, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
	}
}
