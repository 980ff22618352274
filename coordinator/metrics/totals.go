package metrics

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"berth/coordinator/operation"
	"berth/coordinator/placement"
	"berth/coordinator/prediction"
	"berth/shared/exposition"
)

// Totals count what was decided and done since a moment, as the log tells it: every member counts the same. They are safe for several
// goroutines.
type Totals struct {
	since time.Time

	mu         sync.Mutex
	decisions  map[[2]string]uint64 // by purpose and outcome
	refusals   map[string]uint64    // by constraint
	operations map[[2]string]uint64 // by kind and result
	duration   *exposition.Distribution
	downtime   *exposition.Distribution
	handover   *exposition.Distribution
	moved      float64 // bytes
	past       prediction.Past
	off        [3]*exposition.Distribution // by how much predictions were off; of offFamilies
}

// NewTotals counts what is decided and done from a moment on. What is older, a member reads when it starts and reads its log.
func NewTotals(since time.Time) *Totals {
	return &Totals{
		since: since, decisions: map[[2]string]uint64{}, refusals: map[string]uint64{}, operations: map[[2]string]uint64{},
		duration: exposition.NewDistribution(1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
		downtime: exposition.NewDistribution(0.01, 0.03, 0.1, 0.3, 1, 3, 10),
		handover: exposition.NewDistribution(0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3),
		off:      [3]*exposition.Distribution{offBy(), offBy(), offBy()},
	}
}

// offBy counts errors as shares of what was measured.
func offBy() *exposition.Distribution {
	return exposition.NewDistribution(0.05, 0.1, 0.2, 0.5, 1, 2, 5)
}

var (
	decisions = counter("berth_decisions_total", "Decisions where a VM should run, by why one was needed and by what came of it",
		"purpose", "outcome")
	refusals = counter("berth_decision_refusals_total",
		"Decisions that found no node, once for each constraint that has refused a node of them", "constraint")
	endedOperations  = counter("berth_operations_total", "Operations that have ended, by kind and result", "kind", "result")
	migrationSeconds = histogram("berth_migration_duration_seconds",
		"Time from the begin of a live migration to its end, of those that were done")
	migrationDowntime = histogram("berth_migration_downtime_seconds",
		"Time for which a live migration stopped its guest, as libvirt measured it")
	migrationHandover = histogram("berth_migration_handover_seconds", "Time that Berth's own hand-over added to that")
	migrationBytes    = counter("berth_migration_bytes_total", "Bytes that live migrations have sent")

	offFamilies = [3]exposition.Family{
		histogram("berth_migration_copy_prediction_error_ratio",
			"Error of the time that a live migration was expected to copy for, as a share of what it took; 0 is exact"),
		histogram("berth_migration_bytes_prediction_error_ratio",
			"Error of the bytes that a live migration was expected to send, as a share of what it sent; 0 is exact"),
		histogram("berth_migration_downtime_prediction_error_ratio",
			"Error of the downtime that was expected of a live migration, as a share of what it was; 0 is exact"),
	}

	totalFamilies = []*exposition.Family{
		&decisions, &refusals, &endedOperations, &migrationSeconds, &migrationDowntime, &migrationHandover, &migrationBytes,
		&offFamilies[0], &offFamilies[1], &offFamilies[2],
	}
)

// Decided counts a decision. Trials do not count.
func (t *Totals) Decided(d *placement.Decision) {
	if d.DryRun || d.At.Before(t.since) {
		return
	}
	var refused []string
	if d.Outcome == placement.Refused {
		refused = refusing(d)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.decisions[[2]string{string(d.Request.Purpose), string(d.Outcome)}]++
	for _, constraint := range refused {
		t.refusals[constraint]++
	}
}

// refusing are the constraints that have refused a node, each once, ascending. The record of a decision has what this follows from.
func refusing(d *placement.Decision) []string {
	explained := placement.Explain(*d)
	found := map[string]bool{}
	for i := range explained.Nodes {
		for _, one := range explained.Nodes[i].Constraints {
			if !one.Passed {
				found[one.Constraint] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// Learn takes note of an operation that ended before there were totals: predictions follow from it, and it does not count.
func (t *Totals) Learn(op *operation.Operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.past.Add(op)
}

// Ended counts an operation that has ended. One from before the totals began does not count, and is only learned from.
func (t *Totals) Ended(op *operation.Operation) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.past.Add(op)
	if op.EndedAt.Before(t.since) {
		return
	}
	t.operations[[2]string{string(op.Kind), op.Outcome()}]++
	if op.Kind != operation.Migrate || op.Migration == nil {
		return
	}
	t.moved += float64(op.Migration.DataProcessed)
	if op.Result != operation.Done {
		return
	}
	t.duration.Observe(op.EndedAt.Sub(op.CreatedAt).Seconds())
	if op.Migration.Downtime != nil {
		t.downtime.Observe(op.Migration.Downtime.Seconds())
	}
	if op.Migration.Handover != nil {
		t.handover.Observe(op.Migration.Handover.Seconds())
	}
	t.compare(op)
}

// compare counts by how much what was expected of a migration was off. The totals are locked. It was expected by what had ended before this
// one ended: that is hardly more than what had ended when it began.
func (t *Totals) compare(op *operation.Operation) {
	expected, known := t.past.Of(op, prediction.Hints{})
	if !known {
		return
	}
	off := expected.Off(op.Migration)
	for i, share := range [...]float64{off.Copy, off.Sent, off.Downtime} {
		if !math.IsNaN(share) {
			t.off[i].Observe(share)
		}
	}
}

func (t *Totals) write(page *exposition.Page) {
	t.mu.Lock()
	defer t.mu.Unlock()
	pairs := func(family *exposition.Family, counts map[[2]string]uint64) {
		order := slices.SortedFunc(maps.Keys(counts), func(a, b [2]string) int {
			return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]))
		})
		for _, at := range order {
			page.Sample(family, float64(counts[at]), at[0], at[1])
		}
	}
	pairs(&decisions, t.decisions)
	for _, constraint := range slices.Sorted(maps.Keys(t.refusals)) {
		page.Sample(&refusals, float64(t.refusals[constraint]), constraint)
	}
	pairs(&endedOperations, t.operations)
	page.Distribution(&migrationSeconds, t.duration)
	page.Distribution(&migrationDowntime, t.downtime)
	page.Distribution(&migrationHandover, t.handover)
	page.Sample(&migrationBytes, t.moved)
	for i := range t.off {
		page.Distribution(&offFamilies[i], t.off[i])
	}
}
