package term

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/tracing"
)

// traces are the operations and plans that a command has asked for. Each is a trace, and the command is above all of it. A nil one is off.
type traces struct {
	config tracing.Config
	now    func() time.Time
	asked  map[string]asked // by ID
}

// asked is when something was asked for, and what the span calls its ID.
type asked struct {
	begun time.Time
	what  string
}

// traced are the traces of this invocation; nil: the environment names no collector, or one that cannot be used.
func (a *App) traced() *traces {
	config, err := tracing.FromEnvironment(a.Env)
	switch {
	case err != nil:
		a.note(err.Error() + "; no traces are sent")
	case a.traces == nil && config.On():
		a.traces = &traces{config: config, now: a.Now, asked: map[string]asked{}}
	}
	return a.traces
}

// begin says in a request that it is traced, and when it was made.
func (t *traces) begin(question any) time.Time {
	if t == nil {
		return time.Time{}
	}
	if message, field := requestOf(question); field != nil {
		message.Set(field, protoreflect.ValueOfString(tracing.Marked(message.Get(field).String())))
	}
	return t.now()
}

// requestOf is a request that changes something, and its field that says which one it is; nil: it has none. Those that go on with what
// others have begun, or end it, are not the begin of it.
func requestOf(question any) (protoreflect.Message, protoreflect.FieldDescriptor) {
	switch question.(type) {
	case *berthv1.CancelOperationRequest, *berthv1.ResolveOperationRequest,
		*berthv1.ApplyPlanRequest, *berthv1.DiscardPlanRequest, *berthv1.CancelPlanRequest:
		return nil, nil
	}
	request, is := question.(proto.Message)
	if !is {
		return nil, nil
	}
	if trial, is := question.(interface{ GetDryRun() bool }); is && trial.GetDryRun() {
		return nil, nil
	}
	message := request.ProtoReflect()
	field := message.Descriptor().Fields().ByName("request_id")
	if field == nil || message.Get(field).String() == "" {
		return nil, nil
	}
	return message, field
}

// note takes note of the operations and plans that an answer tells of.
func (t *traces) note(begun time.Time, question, answer any) {
	if t == nil {
		return
	}
	if _, field := requestOf(question); field == nil {
		return
	}
	if told, is := answer.(proto.Message); is {
		t.walk(begun, told.ProtoReflect())
	}
}

func (t *traces) walk(begun time.Time, message protoreflect.Message) {
	id, one := "", asked{begun: begun}
	switch told := message.Interface().(type) {
	case *berthv1.Operation:
		id, one.what = told.GetId(), "berth.operation"
	case *berthv1.Plan:
		id, one.what = told.GetId(), "berth.plan"
	}
	if one.what != "" {
		if _, known := t.asked[id]; !known && id != "" {
			t.asked[id] = one
		}
		return
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range value.List().Len() {
				t.walk(begun, value.List().Get(i).Message())
			}
		default:
			t.walk(begun, value.Message())
		}
		return true
	})
}

// SendTraces tells the collector what a command, by its name, has asked for. What it does not take in a moment is not sent.
func (a *App) SendTraces(ctx context.Context, command string, failure error) {
	if a.traces == nil || len(a.traces.asked) == 0 {
		return
	}
	log := hclog.New(&hclog.LoggerOptions{Name: "berth", Output: a.Notes, Level: hclog.Warn, DisableTime: true})
	if a.Quiet || a.Format.Structured() {
		log = hclog.NewNullLogger()
	}
	exporter, err := tracing.New(a.traces.config, "berth-cli", a.Version, log)
	if err != nil {
		a.note(err.Error() + "; no traces are sent")
		return
	}
	said := ""
	if failure != nil {
		said = failure.Error()
	}
	for id, one := range a.traces.asked {
		exporter.Add(tracing.Span{
			Operation: id, Name: command, Calls: true, Begun: one.begun, Ended: a.Now(), Failed: said,
			About: map[string]string{one.what: id},
		})
	}
	exporter.Flush(ctx)
}
