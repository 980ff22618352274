package tracing

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/tracing"
)

// A member tells a collector of operations while it leads, and not while it follows. Without a collector it does nothing.
func TestTheLeaderAloneTellsACollector(t *testing.T) {
	bodies := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer collector.Close()
	s := newSite(t)
	var leads atomic.Bool
	looks := make(chan struct{}, 100)
	c := Config{
		Traces: tracing.Config{Endpoint: collector.URL}, Member: "c1", Leads: leads.Load, Log: hclog.NewNullLogger(),
		State: func() *state.Snapshot {
			x := s.Snapshot()
			looks <- struct{}{} // whatever happens from now on is not in it
			return x
		},
	}
	if err := c.Traces.Complete(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		Run(ctx, c)
	}()
	<-looks
	ends := func(id string) {
		s.puts(0, operation.Operation{
			ID: id, Kind: operation.Start, Phase: operation.Ended, Result: operation.Done, CreatedAt: after(1), UpdatedAt: after(2),
			EndedAt: after(2),
		})
	}
	ends("followed1")
	<-looks
	ends("followed2") // once it has come to this one, it is done with the first
	<-looks
	leads.Store(true)
	ends("led1")
	var all []string
	for end := time.Now().Add(time.Minute); !strings.Contains(strings.Join(all, ""), `"led1"`) && time.Now().Before(end); {
		select {
		case body := <-bodies:
			all = append(all, body)
		case <-time.After(time.Second):
		}
	}
	stop()
	<-ended
	text := strings.Join(all, "")
	if !strings.Contains(text, `"led1"`) || strings.Contains(text, `"followed1"`) || !strings.Contains(text, "berth-coordinator") {
		t.Errorf("the collector got %s", text)
	}
	Run(t.Context(), Config{})
	wrong := Config{Traces: tracing.Config{Endpoint: collector.URL, CAFile: "/nothing/ca.pem"}}
	log := &strings.Builder{}
	wrong.Log = hclog.New(&hclog.LoggerOptions{Output: log})
	Run(t.Context(), wrong)
	if words := []string{"/nothing/ca.pem", "no traces are sent", "key traces"}; slices.ContainsFunc(words, func(word string) bool {
		return !strings.Contains(log.String(), word)
	}) {
		t.Errorf("the log says %s", log)
	}
}
