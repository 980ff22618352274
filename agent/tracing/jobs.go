// Package tracing makes spans of the orders that an agent carries out. They are parts of the traces that the leader makes.
package tracing

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"berth/agent/session"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/tracing"
)

// Sink takes spans and does not wait. An Exporter does.
type Sink interface{ Add(spans ...tracing.Span) }

// Jobs are a session's jobs whose orders are told of. Only a node whose traces are on has them.
type Jobs struct {
	session.Jobs

	node    string // name
	sink    Sink
	results chan *berthv1.CommandResult

	mu    sync.Mutex
	begun map[string]order // by operation and step
}

type order struct {
	at     time.Time
	action string
}

// mostOrders bounds what is remembered of orders that have no end. More orders than guests on a large host are never at work.
const mostOrders = 4096

// Traced are jobs of a node by its name. Run passes their results on.
func Traced(jobs session.Jobs, node string, sink Sink) *Jobs {
	return &Jobs{Jobs: jobs, node: node, sink: sink, results: make(chan *berthv1.CommandResult), begun: map[string]order{}}
}

// Do begins a command. One that is repeated goes on from when it was given first.
func (j *Jobs) Do(ctx context.Context, command *berthv1.Command) {
	j.mu.Lock()
	key := keyOf(command.GetOperationId(), command.GetStep())
	if _, known := j.begun[key]; !known && len(j.begun) < mostOrders {
		j.begun[key] = order{time.Now(), actionOf(command)}
	}
	j.mu.Unlock()
	j.Jobs.Do(ctx, command)
}

// Results are those of the jobs.
func (j *Jobs) Results() <-chan *berthv1.CommandResult { return j.results }

// Run tells of each order that has ended, and passes its result on, until the context ends.
func (j *Jobs) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case result := <-j.Jobs.Results():
			j.tell(result)
			select {
			case j.results <- result:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (j *Jobs) tell(result *berthv1.CommandResult) {
	key := keyOf(result.GetOperationId(), result.GetStep())
	j.mu.Lock()
	begun, known := j.begun[key]
	delete(j.begun, key)
	j.mu.Unlock()
	if !known || result.GetRepeated() {
		return
	}
	outcome := strings.ToLower(strings.TrimPrefix(result.GetOutcome().String(), "COMMAND_OUTCOME_"))
	span := tracing.Span{
		Operation: result.GetOperationId(), Name: "order " + begun.action, Part: fmt.Sprint(j.node, " ", result.GetStep()),
		Begun: begun.at, Ended: time.Now(), About: map[string]string{"berth.node": j.node, "berth.outcome": outcome},
	}
	if result.GetOutcome() != berthv1.CommandOutcome_COMMAND_OUTCOME_DONE {
		span.Failed = cmp.Or(result.GetError(), outcome)
	}
	j.sink.Add(span)
}

func keyOf(operation string, step uint32) string { return fmt.Sprint(operation, "/", step) }

// actionOf is the word for what a command asks for.
func actionOf(command *berthv1.Command) string {
	message := command.ProtoReflect()
	field := message.WhichOneof(message.Descriptor().Oneofs().ByName("action"))
	if field == nil {
		return "nothing"
	}
	return string(field.Name())
}
