package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/history"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// keepHistory has a member keep the past.
func (m *coordinator) keepHistory() *history.Keeper {
	t := m.cloud.t
	keeper := history.NewKeeper(history.Config{
		Dir: t.TempDir(), State: m.store.Snapshot, Last: func() uint64 { return m.consensus.Stats().LastIndex },
		Peers: func() []history.Peer { return nil }, Now: time.Now, Log: hclog.NewNullLogger(),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		keeper.Run(ctx)
	}()
	t.Cleanup(func() { cancel(); <-done })
	m.api.source.History = keeper
	return keeper
}

// What the state has dropped is found all the same: by the lists of each kind, and by the one of all of them, page by page.
func TestListsGoOnWhereTheStateEnds(t *testing.T) {
	d := newDeclarer(t)
	keeper := d.m.keepHistory()
	stopped := func(id, message string) operation.Operation {
		return operation.Operation{
			ID: id, Kind: operation.Stop, VM: "v7", VMName: "mail", Phase: operation.Ended, Result: operation.Done, Message: message,
			CreatedAt: time.Now(), EndedAt: time.Now(),
		}
	}
	d.m.propose(state.Command{
		Kind: "test", Expect: []state.Expectation{{Table: state.Operations, ID: "o-old"}},
		Operations: []operation.Operation{stopped("o-old", "it was stopped")}, Events: []model.Event{{
			At: time.Now(), Kind: "vm.old", Subject: "vm/gone", Message: "it was started", Caller: "operator/alice",
		}},
		Decisions: []placement.Decision{{
			ID: "d-old", At: time.Now(), Outcome: placement.Placed, Request: placement.Request{VM: "v0", VMName: "gone"}, Reason: "hv1 is best",
		}},
	})
	caughtUp := func() bool {
		return keeper.Whole() >= d.m.store.Snapshot().HistoryFrom() && keeper.Health().Behind == 0
	}
	d.m.cloud.eventually("the history has it", func() bool { return caughtUp() && keeper.Whole() > 0 })
	for i := range state.MaxEvents/200 + 1 {
		noise := state.Command{Kind: "test"}
		for j := range 200 {
			noise.Events = append(noise.Events, model.Event{At: time.Now(), Kind: "test.noise", Subject: "cluster", Message: fmt.Sprint(i, j)})
		}
		for j := range 50 {
			noise.Decisions = append(noise.Decisions, placement.Decision{ID: fmt.Sprintf("n%d-%d", i, j), At: time.Now()})
		}
		for j := range state.MaxOperations/50 + 1 {
			op := stopped(fmt.Sprintf("o%d-%d", i, j), "noise")
			noise.Operations = append(noise.Operations, op)
			noise.Expect = append(noise.Expect, state.Expectation{Table: state.Operations, ID: op.ID})
		}
		d.m.propose(noise)
	}
	if _, kept := d.m.store.Snapshot().Decision("d-old"); kept {
		t.Fatal("the state has it still: this test looks at the wrong place")
	}
	if _, kept := d.m.store.Snapshot().Operation("o-old"); kept {
		t.Fatal("the state has the operation still")
	}
	d.m.cloud.eventually("the history has come to the end", caughtUp)

	stream, err := d.client.WatchEvents(t.Context(), connect.NewRequest(&berthv1.WatchEventsRequest{
		Backlog: 10, Filter: &berthv1.Filter{Kinds: []string{"vm"}},
	}))
	d.m.cloud.check(err)
	var events []string
	for stream.Receive() {
		if event := stream.Msg().GetEvent(); event != nil {
			events = append(events, event.GetMessage())
		}
	}
	if strings.Join(events, "; ") != "it was started" {
		t.Errorf("events %q", events)
	}
	about := &berthv1.Filter{Vms: []string{"gone"}}
	decisions, err := d.client.ListDecisions(t.Context(), connect.NewRequest(&berthv1.ListDecisionsRequest{Filter: about}))
	d.m.cloud.check(err)
	if all := decisions.Msg.GetDecisions(); len(all) != 1 || all[0].GetId() != "d-old" {
		t.Errorf("decisions %v", all)
	}
	shown, err := d.client.GetDecision(t.Context(), connect.NewRequest(&berthv1.GetDecisionRequest{Id: "d-old"}))
	if err != nil || shown.Msg.GetDecision().GetReason() != "hv1 is best" {
		t.Errorf("decision %v, %v", shown, err)
	}
	_, err = d.client.GetDecision(t.Context(), connect.NewRequest(&berthv1.GetDecisionRequest{Id: "d-never"}))
	wantRefusal(t, err, rpc.NotFound, "decision/d-never")
	d.m.addVM(model.VM{
		ID: "v9", Name: "resident", Desired: model.Stopped, Decision: "d-old", Spec: model.VMSpec{Memory: model.MinVMMemory, VCPUs: 1},
	})
	why, err := d.client.WhyVM(t.Context(), connect.NewRequest(&berthv1.WhyVMRequest{Vm: "resident"}))
	if err != nil || why.Msg.GetDecision().GetId() != "d-old" {
		t.Errorf("why %v, %v", why, err)
	}
	ended, err := d.client.GetOperation(t.Context(), connect.NewRequest(&berthv1.GetOperationRequest{Id: "o-old"}))
	if err != nil || ended.Msg.GetOperation().GetMessage() != "it was stopped" {
		t.Errorf("operation %v, %v", ended, err)
	}
	watched, err := d.client.WatchOperation(t.Context(), connect.NewRequest(&berthv1.WatchOperationRequest{Id: "o-old"}))
	if err != nil || !watched.Receive() || watched.Msg().GetOperation().GetId() != "o-old" || watched.Receive() {
		t.Errorf("watched %v, %v", watched.Err(), err)
	}
	var said []string
	for token, more := "", true; more; more = token != "" {
		page, err := d.client.ListHistory(t.Context(), connect.NewRequest(&berthv1.ListHistoryRequest{Filter: about, Limit: 1, PageToken: token}))
		d.m.cloud.check(err)
		for _, entry := range page.Msg.GetEntries() {
			said = append(said, entry.GetEvent().GetKind()+entry.GetDecision().GetId())
		}
		token = page.Msg.GetNextPageToken()
	}
	if strings.Join(said, "; ") != "vm.old; d-old" {
		t.Errorf("the history says %q", said)
	}
	_, err = d.client.ListHistory(t.Context(), connect.NewRequest(&berthv1.ListHistoryRequest{PageToken: "cGFzdAB4"}))
	wantRefusal(t, err, rpc.Invalid, "")
}

// Who has called for something is told, and what coordinators did by themselves is not. No history is needed for what the state has.
func TestTheAuditTellsWhoHasCalled(t *testing.T) {
	d := newDeclarer(t)
	var events []model.Event
	for _, caller := range []string{"operator/alice", "coordinator/c1", "", "operator/bob"} {
		events = append(events, model.Event{At: time.Now(), Kind: "test.called", Subject: "cluster", Message: "by " + caller, Caller: caller})
	}
	d.m.propose(state.Command{Kind: "test", Events: events})
	told := func(filter *berthv1.Filter) string {
		t.Helper()
		if filter.GetKinds() == nil {
			filter.Kinds = []string{"test"}
		}
		answer, err := d.client.ListHistory(t.Context(), connect.NewRequest(&berthv1.ListHistoryRequest{Called: true, Filter: filter}))
		d.m.cloud.check(err)
		var said []string
		for _, entry := range answer.Msg.GetEntries() {
			said = append(said, entry.GetEvent().GetMessage())
		}
		return strings.Join(said, "; ")
	}
	if said := told(&berthv1.Filter{}); said != "by operator/bob; by operator/alice" {
		t.Errorf("told: %s", said)
	}
	if said := told(&berthv1.Filter{Callers: []string{"alice"}}); said != "by operator/alice" {
		t.Errorf("told: %s", said)
	}
}

// A coordinator gives what it has to another one, and to nobody else.
func TestTheHistoryIsGivenToCoordinatorsOnly(t *testing.T) {
	d := newDeclarer(t)
	keeper := d.m.keepHistory()
	d.m.propose(state.Command{Kind: "test", Events: []model.Event{{At: time.Now(), Kind: "test.said", Subject: "cluster", Message: "hello"}}})
	index := d.m.store.Snapshot().Index()
	d.m.cloud.eventually("the history has it", func() bool { return keeper.Whole() >= index })
	fetch := func(role pki.Role, id, name string) (*berthv1.FetchHistoryResponse, error) {
		client := berthv1connect.NewMemberServiceClient(d.m.cloud.as(role, id, name), d.m.url())
		answer, err := client.FetchHistory(t.Context(), connect.NewRequest(&berthv1.FetchHistoryRequest{Through: index}))
		if err != nil {
			return nil, err
		}
		return answer.Msg, nil
	}
	if answer, err := fetch(pki.RolePeer, d.m.id, d.m.record.Name); err != nil || len(answer.GetBlock()) == 0 {
		t.Errorf("another coordinator gets %v, %v", answer, err)
	}
	if _, err := fetch(pki.RoleOperator, "op1", "alice"); rpc.Detail(err).GetCode() != rpc.Denied {
		t.Errorf("an operator gets %v", err)
	}
}
