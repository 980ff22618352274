package event_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"berth/coordinator/cli/clitest"
	"berth/coordinator/cli/term"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/rpc"
)

// Following events survives the loss of a coordinator, and shows no event twice and none that was not asked for.
func TestEventsAreFollowedAcrossCoordinators(t *testing.T) {
	older := &berthv1.Event{Index: 900, At: clitest.Ago(time.Hour), Kind: "vm.started", Subject: "vm/ancient"}
	newer := &berthv1.Event{Index: 1002, At: clitest.Ago(30 * time.Second), Kind: "vm.stopped", Subject: "vm/web1"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	first, second := clitest.Steady(), clitest.Steady()
	first.OnEvents = func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
		for _, event := range clitest.CannedEvents() {
			if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
				return err
			}
		}
		return rpc.Errorf(connect.CodeUnavailable, &berthv1.ErrorDetail{Code: rpc.NoLeader}, "the coordinators have no leader")
	}
	second.OnEvents = func(ctx context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
		for _, event := range append([]*berthv1.Event{older}, append(clitest.CannedEvents()[:2], newer)...) {
			if err := send(&berthv1.WatchEventsResponse{Event: event}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return nil
	}
	w, _ := clitest.NewSite(t, first, second)
	out, errOut := clitest.Until{Word: "vm.stopped", Then: cancel}, bytes.Buffer{}
	if exit := w.RunTo(ctx, &out, &errOut, "events", "--follow", "--backlog", "3"); exit != term.Done {
		t.Errorf("exit %d, %s", exit, errOut.String())
	}
	var subjects []string
	for line := range strings.Lines(out.String()) {
		subjects = append(subjects, strings.Fields(line)[2]+" "+strings.Fields(line)[3])
	}
	want := "vm.started vm/web1, vm.placed vm/web1, node.unreachable node/node3, vm.stopped vm/web1"
	if got := strings.Join(subjects, ", "); got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
}
