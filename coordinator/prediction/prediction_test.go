package prediction

import (
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
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
	past := before([]*operation.Operation{
		moved("v1", "n1", "n2", units.GiB, 10*time.Second, 100*time.Millisecond, 9),
		moved("v1", "n2", "n1", units.GiB, 20*time.Second, 300*time.Millisecond, 8),
		moved("v2", "n1", "n3", units.GiB/2, 2*time.Second, 50*time.Millisecond, 7),
		moved("v2", "n1", "n3", 5*units.GiB, time.Second, time.Second, -1), // it ended after that began of which is asked
	})
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
		c.op.CreatedAt = noon
		got, known := past(&c.op).Of(&c.op, Hints{})
		near := func(a, b time.Duration) bool { return (a - b).Abs() < time.Millisecond }
		if !known || got.Sent != c.want.Sent || got.By != c.want.By || !near(got.Copy, c.want.Copy) || !near(got.Downtime, c.want.Downtime) {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// walked finds what has ended by looking at all of it. The last ones are those that end last, and of those at once the last ones here.
type walked []*operation.Operation

func (w walked) find(at time.Time, wanted func(*operation.Operation) bool) iter.Seq[*operation.Operation] {
	found := slices.DeleteFunc(slices.Clone(w), func(op *operation.Operation) bool {
		return !op.Measured() || op.EndedAt.After(at) || !wanted(op)
	})
	slices.Reverse(found)
	slices.SortStableFunc(found, func(a, b *operation.Operation) int { return b.EndedAt.Compare(a.EndedAt) })
	return slices.Values(found)
}

func (w walked) MeasuredBy(at time.Time) iter.Seq[*operation.Operation] {
	return w.find(at, func(*operation.Operation) bool { return true })
}

func (w walked) MeasuredOf(vm string, at time.Time) iter.Seq[*operation.Operation] {
	return w.find(at, func(op *operation.Operation) bool { return op.VM == vm })
}

func (w walked) MeasuredAlong(source, target string, at time.Time) iter.Seq[*operation.Operation] {
	return w.find(at, func(op *operation.Operation) bool { return op.Source == source && op.Target == target })
}

// before is the past of whatever is asked about.
func before(ended []*operation.Operation) func(*operation.Operation) *Past {
	return func(asked *operation.Operation) *Past { return Before(walked(ended), asked) }
}

// What one past knows of a single migration is what one knows that is kept for all.
func TestThePastOfOneIsThatOfAll(t *testing.T) {
	var ended []*operation.Operation
	var all Past
	for i := range 200 {
		vm, source, target := fmt.Sprint("v", i%7), fmt.Sprint("n", i%3), fmt.Sprint("n", 3+i%2)
		sent, elapsed := units.GiB+units.Bytes(i)*units.MiB, time.Duration(5+i%11)*time.Second
		one := moved(vm, source, target, sent, elapsed, time.Duration(i)*time.Millisecond, 1)
		if i%5 == 0 {
			one.CopyStorage, one.Migration.DiskTotal = true, units.Bytes(i)*units.MiB
		}
		ended = append(ended, one)
		all.Add(one)
	}
	for _, asked := range append(ended[:30:30], moved("new", "n0", "n9", units.GiB, time.Second, time.Second, 0)) {
		asked := *asked
		asked.CreatedAt = noon
		want, expected := all.Of(&asked, Hints{Disks: units.GiB})
		got, told := Before(walked(ended), &asked).Of(&asked, Hints{Disks: units.GiB})
		if told != expected || !reflect.DeepEqual(got, want) {
			t.Fatalf("of %s from %s to %s it knows %+v, want %+v", asked.VM, asked.Source, asked.Target, got, want)
		}
	}
}

// The first migration is told by its sizes and its limit, and how far it may be off is told as well.
func TestTheFirstMigration(t *testing.T) {
	limited := operation.Operation{
		Kind: operation.Migrate, VM: "v1", Source: "n1", Target: "n2", Memory: 4 * units.GiB, Bandwidth: units.GiB, CreatedAt: noon,
	}
	unlimited, disks := limited, limited
	unlimited.Bandwidth, disks.CopyStorage = 0, true
	other := []*operation.Operation{moved("v9", "n8", "n9", 3*units.GiB/2, 3*time.Second, 100*time.Millisecond, 5)} // half a GiB a second
	for name, c := range map[string]struct {
		op    operation.Operation
		ended []*operation.Operation
		known Hints
		want  string // seconds
	}{
		"nothing tells how fast": {
			unlimited, nil,
			Hints{Used: units.GiB},
			"unknown",
		},
		"its memory and its limit": {
			limited, nil,
			Hints{},
			"4 (0 to 32) s, 0s, of 0: its limit, its memory",
		},
		"what it uses": {
			limited, nil,
			Hints{Used: 2 * units.GiB},
			"2 (1 to 16) s, 0s, of 0: its limit, the memory that it uses",
		},
		"how fast others went": {
			unlimited, other,
			Hints{Used: 2 * units.GiB},
			"4 (1 to 24) s, 100ms, of 1: 1 migration in the cluster, the memory that it uses",
		},
		"as much as others": {
			unlimited, other,
			Hints{},
			"12 (3 to 48) s, 100ms, of 1: 1 migration in the cluster",
		},
		"disks of a size nobody knows": {
			disks, nil,
			Hints{},
			"unknown",
		},
		"disks": {
			disks, nil,
			Hints{Used: units.GiB, Disks: 10 * units.GiB},
			"11 (0.5 to 56) s, 0s, of 0: its limit, the memory that it uses, the size of its disks",
		},
		"more than it is promised": {
			limited, nil,
			Hints{Used: 100 * units.GiB},
			"4 (2 to 16) s, 0s, of 0: its limit, the memory that it uses",
		},
	} {
		got, told := before(c.ended)(&c.op).Of(&c.op, c.known)
		said := fmt.Sprintf("%.3g (%.3g to %.3g) s, %s, of %d: %s",
			got.Copy.Seconds(), got.Least.Seconds(), got.Most.Seconds(), got.Downtime, got.By, strings.Join(got.Why, ", "))
		if !told {
			said = "unknown"
		}
		if said != c.want {
			t.Errorf("%s: %s, want %s", name, said, c.want)
		}
	}
}

// Disks that went along before are as full as they were then. What was sent of them says nothing of memory.
func TestDisksThatWentAlongBefore(t *testing.T) {
	earlier := moved("v1", "n1", "n2", 5*units.GiB, 10*time.Second, 100*time.Millisecond, 3)
	earlier.CopyStorage, earlier.Migration.DiskTotal = true, 4*units.GiB
	past := before([]*operation.Operation{earlier})
	asked := operation.Operation{Kind: operation.Migrate, VM: "v1", Source: "n1", Target: "n2", Memory: units.GiB, CreatedAt: noon}
	if got, told := past(&asked).Of(&asked, Hints{}); !told || got.Sent != units.GiB || got.Copy != 2*time.Second {
		t.Errorf("of memory alone: %+v", got)
	}
	asked.CopyStorage = true
	got, told := past(&asked).Of(&asked, Hints{Disks: 100 * units.GiB})
	if !told || got.Sent != 5*units.GiB || got.Copy != 10*time.Second || got.Least >= got.Copy || got.Most <= 200*time.Second {
		t.Errorf("with its disks: %+v", got)
	}
}

// What is expected lies between the two bounds, whatever was seen.
func FuzzBounds(f *testing.F) {
	f.Add(int64(1<<30), int64(1<<30), int64(1e9), int64(1<<30), int64(0), int64(0), true)
	f.Fuzz(func(t *testing.T, memory, sent, took, limit, used, disks int64, along bool) {
		earlier := moved("v1", "n1", "n2", units.Bytes(sent), time.Duration(took), time.Second, 3)
		asked := operation.Operation{
			Kind: operation.Migrate, VM: "v1", Source: "n1", Target: "n3", Memory: units.Bytes(memory), Bandwidth: units.Bytes(limit),
			CopyStorage: along, CreatedAt: noon,
		}
		got, told := before([]*operation.Operation{earlier})(&asked).Of(&asked, Hints{Used: units.Bytes(used), Disks: units.Bytes(disks)})
		if told && (got.Least < 0 || got.Least > got.Copy || got.Copy > got.Most || got.Sent < 0) {
			t.Errorf("%+v", got)
		}
	})
}

// What tells nothing of memory that is copied is neither learned from nor predicted.
func TestWhatIsNotPredicted(t *testing.T) {
	failed, unmeasured := moved("v", "a", "b", 1, 1, 1, 1), moved("v", "a", "b", 1, 1, 1, 1)
	failed.Result, unmeasured.Migration = operation.Failed, nil
	start := &operation.Operation{Kind: operation.Start, Result: operation.Done, Memory: units.GiB, EndedAt: noon}
	var past Past
	for _, op := range []*operation.Operation{failed, unmeasured, start} {
		past.Add(op)
	}
	if got, known := past.Of(moved("v", "a", "b", 1, 1, 1, 0), Hints{}); known {
		t.Errorf("from nothing: %+v", got)
	}
	past.Add(moved("v", "a", "b", units.GiB, time.Second, time.Second, 0))
	if got, known := past.Of(start, Hints{}); known {
		t.Errorf("%s: %+v", start.Kind, got)
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
	got, known := past.Of(moved("v", "a", "b", 0, 0, 0, 0), Hints{})
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
