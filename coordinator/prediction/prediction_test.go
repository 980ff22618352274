package prediction

import (
	"math"
	"slices"
	"testing"
	"time"

	"berth/coordinator/operation"
	"berth/shared/units"
)

var noon = time.Unix(1_800_000_000, 0)

// moved is a migration of 1 GiB that has ended so many minutes before noon.
func moved(vm, source, target string, sent units.Bytes, elapsed, downtime time.Duration, before int) *operation.Operation {
	return &operation.Operation{
		Kind: operation.Migrate, Result: operation.Done, VM: vm, Source: source, Target: target, Memory: units.GiB,
		EndedAt: noon.Add(-time.Duration(before) * time.Minute),
		Migration: &operation.MigrationStats{
			DataProcessed: sent, Elapsed: elapsed, Downtime: &downtime,
		},
	}
}

func TestAMigrationIsExpectedToBeAsOthersWere(t *testing.T) {
	past := Over(slices.Values([]*operation.Operation{
		moved("v1", "n1", "n2", units.GiB, 10*time.Second, 100*time.Millisecond, 9),
		moved("v1", "n2", "n1", units.GiB, 20*time.Second, 300*time.Millisecond, 8),
		moved("v2", "n1", "n3", units.GiB/2, 2*time.Second, 50*time.Millisecond, 7),
		moved("v2", "n1", "n3", 5*units.GiB, time.Second, time.Second, -1), // it ended after that began of which is asked
	}), noon)
	for name, c := range map[string]struct {
		op   operation.Operation
		want Migration
	}{
		// v1 sends what it is promised, half of it each of two seconds between n1 and n3.
		"own sending, way's rate": {
			operation.Operation{VM: "v1", Source: "n1", Target: "n3", Memory: 2 * units.GiB},
			Migration{Sent: 2 * units.GiB, Copy: 8 * time.Second, Downtime: 200 * time.Millisecond, By: 2},
		},
		"its rate is limited": {
			operation.Operation{VM: "v1", Source: "n1", Target: "n3", Memory: 2 * units.GiB, Bandwidth: units.GiB / 8},
			Migration{Sent: 2 * units.GiB, Copy: 16 * time.Second, Downtime: 200 * time.Millisecond, By: 2},
		},
		"neither was seen before": {
			operation.Operation{VM: "v9", Source: "n8", Target: "n9", Memory: units.GiB},
			Migration{Sent: units.GiB, Copy: 10 * time.Second, Downtime: 100 * time.Millisecond, By: 3},
		},
	} {
		c.op.Kind = operation.Migrate
		got, known := past.Of(&c.op)
		near := func(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }
		if !known || got.Sent != c.want.Sent || got.By != c.want.By || !near(got.Copy, c.want.Copy) || !near(got.Downtime, c.want.Downtime) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// What tells nothing of memory that is copied is neither learned from nor predicted.
func TestWhatIsNotPredicted(t *testing.T) {
	failed, unmeasured, disks := moved("v", "a", "b", 1, 1, 1, 1), moved("v", "a", "b", 1, 1, 1, 1), moved("v", "a", "b", 1, 1, 1, 1)
	failed.Result, unmeasured.Migration, disks.CopyStorage = operation.Failed, nil, true
	start := &operation.Operation{Kind: operation.Start, Result: operation.Done, Memory: units.GiB, EndedAt: noon}
	past := Over(slices.Values([]*operation.Operation{failed, unmeasured, disks, start}), noon)
	if got, known := past.Of(moved("v", "a", "b", 1, 1, 1, 0)); known {
		t.Errorf("from nothing: %+v", got)
	}
	past.Add(moved("v", "a", "b", units.GiB, time.Second, time.Second, 0))
	for _, op := range []*operation.Operation{disks, start} {
		if got, known := past.Of(op); known {
			t.Errorf("%s: %+v", op.Kind, got)
		}
	}
}

func TestOnlyTheNewestCount(t *testing.T) {
	var past Past
	for range 100 {
		past.Add(moved("v", "a", "b", units.GiB, 100*time.Second, time.Second, 0))
	}
	for range most {
		past.Add(moved("v", "a", "b", 2*units.GiB, time.Second, time.Second, 0))
	}
	got, known := past.Of(moved("v", "a", "b", 0, 0, 0, 0))
	if !known || got.Sent != 2*units.GiB || got.By != most {
		t.Errorf("got %+v", got)
	}
}

func TestOff(t *testing.T) {
	m := Migration{Copy: 15 * time.Second, Sent: units.GiB, Downtime: 50 * time.Millisecond}
	got := m.Off(moved("v", "a", "b", units.GiB, 10*time.Second, 100*time.Millisecond, 0).Migration)
	if got != (Errors{Copy: 0.5, Sent: 0, Downtime: 0.5}) {
		t.Errorf("got %+v", got)
	}
	for _, stats := range []*operation.MigrationStats{nil, {}, {Downtime: new(time.Duration)}} {
		if got := m.Off(stats); !math.IsNaN(got.Copy) || !math.IsNaN(got.Sent) || !math.IsNaN(got.Downtime) {
			t.Errorf("of what was not measured: %+v", got)
		}
	}
}
