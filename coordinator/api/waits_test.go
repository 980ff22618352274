package api

import (
	"testing"
	"time"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/explain"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// An operation whose next word is that of a silent node says so, and what ends the waiting.
func TestForWhomAnOperationWaits(t *testing.T) {
	d := newDeclarer(t)
	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	d.m.addNode("n1", "hv1")
	d.m.addNode("n2", "hv2")
	d.m.addVM(model.VM{ID: "v1", Name: "web", Desired: model.Running, Holder: "n1", LastNode: "n1", Epoch: 1, Operation: "o1", CreatedAt: at})
	op := operation.Operation{
		ID: "o1", Kind: operation.Migrate, Phase: operation.Copying, Step: 2, VM: "v1", VMName: "web", Source: "n1", SourceName: "hv1",
		Target: "n2", TargetName: "hv2", SourceEpoch: 1, Epoch: 2, Attempt: 1, CreatedAt: at, UpdatedAt: at,
	}
	d.m.propose(state.Command{
		Kind: "test", At: at, Expect: []state.Expectation{{Table: state.Operations, ID: "o1"}}, Operations: []operation.Operation{op},
	})
	const want = "hv1, which is silent: it goes on once that is heard, or 'berth node fence hv1' has proven that it is off " +
		"(--confirmed-off: somebody has seen that)"
	session, err := d.m.inventory.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot-1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close("the test has ended")
	waits := func(later time.Duration) string {
		p := &answer.Moment{Snapshot: d.m.store.Snapshot(), At: time.Now().Add(later), Soft: d.m.inventory}
		op, _ := p.Operation("o1")
		return explain.Waits(p, &op)
	}
	if got := waits(0); got != "" {
		t.Errorf("heard a moment ago, and it is said to wait for %q", got)
	}
	if got := waits(time.Hour); got != want {
		t.Errorf("while it copies it waits for %q, want %q", got, want)
	}
	stored, _ := d.m.store.Snapshot().Operation("o1")
	stored.Result, stored.Message = operation.Parked, "both nodes run it"
	d.m.propose(state.Command{
		Kind: "test", At: at, Expect: []state.Expectation{{Table: state.Operations, ID: "o1", Revision: stored.Revision}},
		Operations: []operation.Operation{stored},
	})
	if got := waits(time.Hour); got != "" {
		t.Errorf("one that is parked waits for a person, and is said to wait for %q", got)
	}
}
