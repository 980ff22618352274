package api

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/wire"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Bounds of a pause of high availability.
const (
	minPause = time.Minute
	maxPause = 30 * 24 * time.Hour
)

// PauseHA stops automatic fencing and restarts, or lets them go on. Watchdogs are disarmed by the leader once that is stored.
func (s *nodeCalls) PauseHA(
	ctx context.Context, request *connect.Request[berthv1.PauseHARequest],
) (*connect.Response[berthv1.PauseHAResponse], error) {
	const subject = "cluster"
	message := request.Msg
	lasts := time.Duration(message.GetSeconds() * float64(time.Second))
	switch {
	case message.GetOn() && message.GetReason() == "":
		return nil, refusal.New(rpc.Invalid, subject, "say with --reason why, for everybody who looks at the status", "a pause takes a reason")
	case message.GetOn() && lasts != 0 && (lasts < minPause || lasts > maxPause):
		return nil, refusal.New(rpc.Invalid, subject, fmt.Sprintf("give a time of %s to %s, or none", minPause, maxPause),
			"high availability cannot be paused for %s", lasts)
	}
	if err := checkReason(subject, message.GetReason()); err != nil {
		return nil, err
	}
	p, err := s.Propose(ctx, message.GetRequestId(), func(p *answer.Moment) (state.Command, error) {
		stored := ""
		kind, said := "cluster.ha-resumed", "nodes are fenced and VMs restarted by themselves again"
		if message.GetOn() {
			pause := model.HAPause{Reason: message.GetReason(), Caller: gate.CallerOf(ctx).String(), Since: p.At.UTC()}
			until := "until somebody resumes it"
			if lasts > 0 {
				pause.Until = p.At.Add(lasts).UTC()
				until = "until " + pause.Until.Format(time.RFC3339)
			}
			stored = pause.Stored()
			kind, said = "cluster.ha-paused", answer.Because("nothing is fenced or restarted by itself, "+until, pause.Reason)
		} else if p.Meta(model.MetaHAPause) == "" {
			return state.Command{}, answer.ErrUnchanged
		}
		return state.Command{
			Kind: "pause high availability", Meta: map[string]string{model.MetaHAPause: stored},
			Expect: []state.Expectation{{Table: state.Meta, ID: model.MetaHAPause, Revision: p.MetaRevision(model.MetaHAPause)}},
			Events: []model.Event{p.Event(ctx, kind, subject, "%s", said)},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&berthv1.PauseHAResponse{SchemaVersion: wire.SchemaVersion, Pause: haPause(p)}), nil
}

// haPause is the message of the pause of a moment; nil: there is none.
func haPause(p *answer.Moment) *berthv1.HAPause {
	pause, paused := model.HAPauseOf(p.Meta(model.MetaHAPause), p.At)
	if !paused {
		return nil
	}
	message := &berthv1.HAPause{Reason: pause.Reason, Caller: pause.Caller, Since: timestamppb.New(pause.Since)}
	if !pause.Until.IsZero() {
		message.Until = timestamppb.New(pause.Until)
	}
	return message
}

// haProblems say that high availability is paused, and what still resets itself without a leader.
func (p problems) haProblems() []string {
	pause, paused := model.HAPauseOf(p.Meta(model.MetaHAPause), p.At)
	if !paused {
		return nil
	}
	line := pause.Why() + ": nothing is fenced or restarted by itself"
	if !pause.Until.IsZero() {
		line += " until " + pause.Until.Format(time.RFC3339)
	}
	armed := 0
	for _, node := range p.View().Nodes.All() {
		if node.Facts.Watchdog > 0 {
			armed++
		}
	}
	if armed > 0 {
		line += fmt.Sprintf("; %d nodes still have their watchdogs armed, which takes about a minute: leave a leader running until then", armed)
	}
	return []string{line + "; " + model.HAResume}
}
