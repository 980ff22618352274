package clitest

import (
	"time"

	berthv1 "berth/shared/gen/berth/v1"
)

// cannedHistory answers with what happened to web1, newest first.
func cannedHistory(r *berthv1.ListHistoryRequest) (*berthv1.ListHistoryResponse, error) {
	moved := CannedOperation("migrate", Done)
	moved.EndedAt = Ago(time.Second)
	answer := &berthv1.ListHistoryResponse{SchemaVersion: "1", Filtered: r.GetFilter() != nil, Entries: []*berthv1.HistoryEntry{
		{Index: 912, Sequence: 1, What: &berthv1.HistoryEntry_Operation{Operation: moved}},
		{Index: 912, What: &berthv1.HistoryEntry_Event{Event: &berthv1.Event{
			Index: 912, At: Ago(time.Second), Kind: "vm.migrated", Subject: "vm/web1", Message: "runs on node2 now", Caller: "operator/ann",
			OperationId: moved.GetId(),
		}}},
	}}
	if !r.GetCalled() {
		answer.Entries = append(answer.Entries, &berthv1.HistoryEntry{
			Index: 904, What: &berthv1.HistoryEntry_Decision{Decision: CannedDecision()},
		})
	}
	return answer, nil
}
