package tracing

import (
	"context"
	"testing"

	"berth/agent/session"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/tracing"
)

// work ends each order when the test says so.
type work struct {
	session.Jobs // nothing else is asked of it

	given   []*berthv1.Command
	results chan *berthv1.CommandResult
}

func (w *work) Do(_ context.Context, command *berthv1.Command) { w.given = append(w.given, command) }
func (w *work) Results() <-chan *berthv1.CommandResult         { return w.results }

type told []tracing.Span

func (t *told) Add(spans ...tracing.Span) { *t = append(*t, spans...) }

// Each order that was carried out here is told of once, and every result is passed on as it came.
func TestOrdersBecomeSpans(t *testing.T) {
	under, spans := &work{results: make(chan *berthv1.CommandResult)}, &told{}
	jobs := Traced(under, "hv1", spans)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		jobs.Run(ctx)
	}()
	start := &berthv1.Command{OperationId: "op1", Step: 1, Action: &berthv1.Command_Start{Start: &berthv1.StartCommand{}}}
	stopping := &berthv1.Command{OperationId: "op2", Step: 3, Action: &berthv1.Command_Stop{Stop: &berthv1.StopCommand{}}}
	for _, command := range []*berthv1.Command{start, start, stopping} {
		jobs.Do(ctx, command)
	}
	if len(under.given) != 3 {
		t.Errorf("%d orders are passed on", len(under.given))
	}
	const done, failed = berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED
	for _, result := range []*berthv1.CommandResult{
		{OperationId: "op1", Step: 1, Outcome: done},
		{OperationId: "op1", Step: 1, Outcome: done, Repeated: true},
		{OperationId: "op2", Step: 3, Outcome: failed, Error: "it does not end"},
		{OperationId: "op9", Step: 1, Outcome: done}, // of before a restart
	} {
		under.results <- result
		if got := <-jobs.Results(); got != result {
			t.Errorf("passed on %v, want %v", got, result)
		}
	}
	stop()
	<-ended
	if len(*spans) != 2 {
		t.Fatalf("%d spans: %+v", len(*spans), *spans)
	}
	first, second := (*spans)[0], (*spans)[1]
	if first.Operation != "op1" || first.Name != "order start" || first.Failed != "" || first.About["berth.node"] != "hv1" ||
		first.Part != "hv1 1" || first.Ended.Before(first.Begun) {
		t.Errorf("%+v", first)
	}
	if second.Operation != "op2" || second.Name != "order stop" || second.Failed != "it does not end" ||
		second.About["berth.outcome"] != "failed" {
		t.Errorf("%+v", second)
	}
	if len(jobs.begun) > 0 {
		t.Errorf("it remembers %v", jobs.begun)
	}
}
