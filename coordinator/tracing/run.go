package tracing

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/state"
	"berth/shared/tracing"
)

// Config is what Run stands on.
type Config struct {
	Traces tracing.Config
	Member string // name
	State  func() *state.Snapshot
	Leads  func() bool
	Log    hclog.Logger
}

// Run sends spans of operations until the context ends, if traces are on. Each member follows the operations, so that a new leader knows
// how far they have come, and the leader alone tells of them.
func Run(ctx context.Context, c Config) {
	exporter := tracing.Start(c.Traces, "berth-coordinator", c.Member, c.Log)
	if exporter == nil {
		return
	}
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		exporter.Run(ctx)
	}()
	follower := &Follower{State: c.State, Now: time.Now, Sink: leading{exporter, c.Leads}}
	follower.Run(ctx)
	<-sent
}

// leading lets spans pass while this member leads.
type leading struct {
	Sink

	leads func() bool
}

func (l leading) Add(spans ...tracing.Span) {
	if l.leads() {
		l.Sink.Add(spans...)
	}
}
