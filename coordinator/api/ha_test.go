package api

import (
	"strings"
	"testing"

	"connectrpc.com/connect"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

func TestPausingHA(t *testing.T) {
	m := newCloud(t, 1).members[0]
	client, ctx := m.operator(), t.Context()
	ask := func(request *berthv1.PauseHARequest) (*berthv1.HAPause, error) {
		answer, err := client.PauseHA(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return answer.Msg.GetPause(), nil
	}
	for name, request := range map[string]*berthv1.PauseHARequest{
		"without a reason": {On: true}, "for a moment": {On: true, Reason: "x", Seconds: 1}, "for ever": {On: true, Reason: "x", Seconds: 1e9},
	} {
		if _, err := ask(request); rpc.Detail(err).GetCode() != rpc.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	pause, err := ask(&berthv1.PauseHARequest{On: true, Reason: "new switches", Seconds: 7200})
	if err != nil || pause.GetReason() != "new switches" || pause.GetUntil().AsTime().Sub(pause.GetSince().AsTime()).Hours() != 2 {
		t.Fatalf("%v, %v", pause, err)
	}
	status := func() *berthv1.StatusResponse {
		answer, err := client.Status(ctx, connect.NewRequest(&berthv1.StatusRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return answer.Msg
	}
	is := status()
	const why = "new switches"
	if is.GetHaPause().GetReason() != why || !strings.Contains(strings.Join(is.GetProblems(), "\n"), why+": nothing is fenced") {
		t.Errorf("the status says %v, %q", is.GetHaPause(), is.GetProblems())
	}
	for range 2 { // it may be said again
		if pause, err := ask(&berthv1.PauseHARequest{}); err != nil || pause != nil {
			t.Fatalf("%v, %v", pause, err)
		}
	}
	if is := status(); is.GetHaPause() != nil || m.store.Snapshot().Meta(model.MetaHAPause) != "" {
		t.Errorf("after it goes on: %v", is.GetHaPause())
	}
}
