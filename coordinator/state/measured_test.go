package state

import (
	"bytes"
	"cmp"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"berth/coordinator/operation"
	"berth/shared/units"
)

// drawEnded draws an operation that has ended or lives, from so few VMs, nodes and times that many are alike.
func drawEnded(t *rapid.T, id string) operation.Operation {
	some := func(what string, of ...string) string { return rapid.SampledFrom(of).Draw(t, what) }
	often := func(what string) bool { return rapid.IntRange(0, 5).Draw(t, what) > 0 }
	op := operation.Operation{
		ID: id, Kind: operation.Migrate, Source: some("source", "a", "ab", "b"), Target: some("target", "a", "b", "bc"),
		VM: "vm-" + id, Memory: units.GiB, Phase: operation.Ended, Result: operation.Done, CreatedAt: noon, UpdatedAt: noon,
		EndedAt: noon.Add(time.Duration(rapid.IntRange(-3, 3).Draw(t, "ended"))),
	}
	if often("measured") {
		op.Migration = &operation.MigrationStats{Elapsed: time.Second, DataProcessed: units.GiB, Downtime: new(time.Duration)}
	}
	if !often("done") {
		op.Result = operation.Failed
	}
	if !often("a migration") {
		op.Kind = operation.Stop
	}
	if often("of few VMs") {
		op.VM = some("vm", "a", "b", "ab")
	}
	return op
}

// The index finds what somebody finds who looks at all that is kept, in whatever order it has ended, also in a snapshot that was restored.
func TestMeasuredMigrationsAreThoseOfAWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		store := NewStore()
		revision := uint64(0)
		stored := func(command Command) {
			revision++
			command.Key, command.At = fmt.Sprint("k", revision), noon
			if results := store.apply([]*Command{&command}, revision); results[0].Refusal != nil {
				t.Fatal(results[0].Refusal)
			}
		}
		for i := range rapid.IntRange(0, 40).Draw(t, "operations") {
			op := drawEnded(t, fmt.Sprintf("%c%d", 'a'+rapid.IntRange(0, 2).Draw(t, "letter"), i))
			if _, known := store.Snapshot().VM(op.VM); !known {
				stored(putVM(0, vm(op.VM, op.VM, 1)))
			}
			if rapid.Bool().Draw(t, "lived before") {
				living := op
				living.Phase, living.Result, living.EndedAt = operation.Copying, operation.Pending, time.Time{}
				stored(putOperation(0, living))
				stored(putOperation(revision, op))
			} else {
				stored(putOperation(0, op))
			}
		}
		x := store.Snapshot()
		if rapid.Bool().Draw(t, "restored") {
			var written bytes.Buffer
			if err := x.Save(&written); err != nil {
				t.Fatal(err)
			}
			restored, err := Load(&written)
			if err != nil {
				t.Fatal(err)
			}
			x = restored.Snapshot()
		}
		for _, at := range []time.Time{{}, noon.Add(-2), noon, noon.Add(1), noon.Add(time.Hour)} {
			same(t, x, "all", at, x.MeasuredBy(at), func(*operation.Operation) bool { return true })
			for _, one := range []string{"a", "ab", "b", "", "none"} {
				same(t, x, "VM "+one, at, x.MeasuredOf(one, at), func(op *operation.Operation) bool { return op.VM == one })
				for _, other := range []string{"a", "b", "bc", ""} {
					same(t, x, one+" to "+other, at, x.MeasuredAlong(one, other, at), func(op *operation.Operation) bool {
						return op.Source == one && op.Target == other
					})
				}
			}
		}
	})
}

// same compares what the index has with what a walk finds.
func same(
	t *rapid.T, x *Snapshot, what string, at time.Time, found iter.Seq[*operation.Operation], wanted func(*operation.Operation) bool,
) {
	var got, want []string
	for op := range found {
		got = append(got, op.ID)
	}
	kept := x.Operations()
	slices.SortFunc(kept, func(a, b operation.Operation) int {
		return cmp.Or(b.EndedAt.Compare(a.EndedAt), cmp.Compare(b.ID, a.ID))
	})
	for i := range kept {
		if op := &kept[i]; !op.Live() && op.Measured() && !op.EndedAt.After(at) && wanted(op) {
			want = append(want, op.ID)
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%s until %v: the index has %q, a walk finds %q", what, at, got, want)
	}
}
