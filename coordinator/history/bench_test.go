package history

import (
	"fmt"
	"testing"
	"time"

	"berth/coordinator/model"
)

// What a second of a busy site costs: a hundred events, in one write that the disk has confirmed.
func BenchmarkASecondOfAHundredEvents(b *testing.B) {
	s, _, err := Open(b.TempDir(), Limits{})
	if err != nil {
		b.Fatal(err)
	}
	index := uint64(0)
	for b.Loop() {
		rows := make([]Row, 100)
		after := index
		for i := range rows {
			index++
			rows[i] = Row{Place: Place{Index: index}, Event: &model.Event{
				Index: index, At: begun.Add(time.Duration(index) * 10 * time.Millisecond), Kind: "vm.migrated",
				Subject: fmt.Sprintf("vm/web%d", index%10000), Message: fmt.Sprintf("runs on hv%d now", index%1000), Caller: "operator/alice",
				Operation: fmt.Sprintf("%013x", index*7919), Decision: fmt.Sprintf("%013x", index*104729),
			}}
		}
		if err := s.Add(after, index, rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(s.Figures().Size)/float64(index), "B/event")
}
