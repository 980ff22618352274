package agents

import (
	"context"
	"net/http"
	"time"
)

type controllerKey struct{}

// withDeadlines lets the handler of a stream interrupt its own reads and writes, which connect has no way for.
func withDeadlines(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		controller := http.NewResponseController(w)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), controllerKey{}, controller)))
	})
}

// interrupter makes a blocked Receive of the stream return at once, and leaves a blocked Send the time of a farewell.
func interrupter(ctx context.Context) func() {
	controller, ok := ctx.Value(controllerKey{}).(*http.ResponseController)
	if !ok {
		return func() {}
	}
	return func() {
		now := time.Now()
		// Neither fails on HTTP/2, and streams in both directions are HTTP/2 always.
		_ = controller.SetReadDeadline(now)
		_ = controller.SetWriteDeadline(now.Add(farewell))
	}
}
