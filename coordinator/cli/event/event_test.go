package event_test

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
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

// What was before the last that a stream begins with is read on in the history: none is missing, none comes twice, oldest first.
func TestEventsSinceLongAgoAreAllShown(t *testing.T) {
	const streamed, all = 10000, 10600
	event := func(n int) *berthv1.Event { // two events an entry of the log
		return &berthv1.Event{Index: uint64(n/2 + 1), At: clitest.Ago(time.Hour), Kind: "vm.started", Subject: fmt.Sprintf("vm/n%05d", n)}
	}
	f := clitest.Steady()
	f.OnEvents = func(_ context.Context, _ *berthv1.WatchEventsRequest, send func(*berthv1.WatchEventsResponse) error) error {
		for n := all - streamed + 1; n <= all; n++ { // begins within an entry
			if err := send(&berthv1.WatchEventsResponse{Filtered: true, Event: event(n)}); err != nil {
				return err
			}
		}
		return nil
	}
	f.OnHistory = func(r *berthv1.ListHistoryRequest) (*berthv1.ListHistoryResponse, error) {
		next := all
		if r.GetPageToken() != "" {
			next, _ = strconv.Atoi(r.GetPageToken())
		}
		answer := &berthv1.ListHistoryResponse{SchemaVersion: "1", Filtered: true}
		for ; next > 0 && len(answer.GetEntries()) < int(r.GetLimit()); next-- {
			answer.Entries = append(answer.GetEntries(), &berthv1.HistoryEntry{What: &berthv1.HistoryEntry_Event{Event: event(next)}})
		}
		if next > 0 {
			answer.NextPageToken = strconv.Itoa(next)
		}
		return answer, nil
	}
	w, _ := clitest.NewSite(t, f)
	said := w.Run("events", "--since", "90d", "-o", "name")
	if said.Exit != term.Done {
		t.Fatalf("exit %d: %s", said.Exit, said.ErrOut)
	}
	lines := strings.Fields(said.Out)
	for i, line := range lines {
		if want := fmt.Sprintf("vm/n%05d", i+1); line != want {
			t.Fatalf("line %d of %d is %s, want %s", i+1, len(lines), line, want)
		}
	}
	if len(lines) != all {
		t.Errorf("%d events, want %d", len(lines), all)
	}
	if asked := clitest.Asked[berthv1.ListHistoryRequest](f); len(asked) == 0 || asked[0].GetFilter().GetSince() == nil {
		t.Errorf("asked %v", asked)
	}
}
