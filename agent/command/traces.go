package command

import (
	"context"

	"github.com/hashicorp/go-hclog"

	"berth/agent/session"
	"berth/agent/tracing"
	exporting "berth/shared/tracing"
)

// traced are the jobs themselves, or those that tell a collector of their orders if traces are on.
func (s *Settings) traced(ctx context.Context, work session.Jobs, node string, log hclog.Logger) session.Jobs {
	exporter := exporting.Start(s.Traces, "berth-agent", node, log)
	if exporter == nil {
		return work
	}
	told := tracing.Traced(work, node, exporter)
	go exporter.Run(ctx)
	go told.Run(ctx)
	return told
}
