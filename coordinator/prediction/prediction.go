// Package prediction says what a live migration will take, by what others took before: a pure function of the operations that are on
// record, so that each member says the same, and says later of one that has ended what was to be expected when it began.
package prediction

import (
	"iter"
	"math"
	"slices"
	"time"

	"berth/coordinator/operation"
	"berth/shared/units"
)

// Migration is what a live migration is expected to take.
type Migration struct {
	Copy     time.Duration // of memory, until the guest runs on the target: what libvirt calls elapsed
	Sent     units.Bytes
	Downtime time.Duration
	By       int // of how many earlier migrations it follows
}

// most is how many migrations of one kind are remembered, the newest ones. What was long ago was by another network or another load.
const most = 20

// took is what one migration took.
type took struct {
	share    float64 // bytes sent for each byte that the VM was promised
	rate     float64 // bytes a second
	downtime float64 // seconds
}

// Past is what earlier migrations took. The zero value knows none. It is not safe for concurrent use.
type Past struct {
	ofVM  map[string][]took
	along map[[2]string][]took // source and target
	all   []took
}

// Over is the past before an operation began, by those that have ended, the oldest first.
func Over(ended iter.Seq[*operation.Operation], begun time.Time) *Past {
	p := &Past{}
	for op := range ended {
		if !op.EndedAt.After(begun) {
			p.Add(op)
		}
	}
	return p
}

// Add takes note of an operation that has ended. Only live migrations that were done tell something, and none that took disks along: how
// much of these is sent is another matter.
func (p *Past) Add(op *operation.Operation) {
	stats := op.Migration
	if !predictable(op) || op.Result != operation.Done || stats == nil || stats.Elapsed <= 0 || stats.DataProcessed <= 0 ||
		stats.Downtime == nil {
		return
	}
	one := took{
		share: float64(stats.DataProcessed) / float64(op.Memory), rate: float64(stats.DataProcessed) / stats.Elapsed.Seconds(),
		downtime: stats.Downtime.Seconds(),
	}
	if p.ofVM == nil {
		p.ofVM, p.along = map[string][]took{}, map[[2]string][]took{}
	}
	way := [2]string{op.Source, op.Target}
	p.ofVM[op.VM], p.along[way], p.all = newest(p.ofVM[op.VM], one), newest(p.along[way], one), newest(p.all, one)
}

func newest(of []took, one took) []took {
	if len(of) == most {
		of = slices.Delete(of, 0, 1)
	}
	return append(of, one)
}

func predictable(op *operation.Operation) bool {
	return op.Kind == operation.Migrate && !op.CopyStorage && op.Memory > 0
}

// Of is what a migration is expected to take: how much a VM sends, and how long it stands still, is as it was with this VM; how fast it
// goes is as it was between these two nodes, or as fast as it may go. Where neither is known it is as with all others. It is false of what
// is no live migration, of one that takes disks along, and if nothing was seen before.
func (p *Past) Of(op *operation.Operation) (Migration, bool) {
	if !predictable(op) || len(p.all) == 0 {
		return Migration{}, false
	}
	own, way := p.all, p.all
	if known := p.ofVM[op.VM]; len(known) > 0 {
		own = known
	}
	if known := p.along[[2]string{op.Source, op.Target}]; len(known) > 0 {
		way = known
	}
	sent := median(own, func(t took) float64 { return t.share }) * float64(op.Memory)
	rate := median(way, func(t took) float64 { return t.rate })
	if limit := float64(op.Bandwidth); limit > 0 {
		rate = min(rate, limit)
	}
	return Migration{
		Copy: time.Duration(min(sent/rate*float64(time.Second), math.MaxInt64/2)), Sent: units.Bytes(min(sent, math.MaxInt64/2)),
		Downtime: time.Duration(median(own, func(t took) float64 { return t.downtime }) * float64(time.Second)), By: max(len(own), len(way)),
	}, true
}

func median(of []took, figure func(took) float64) float64 {
	figures := make([]float64, 0, len(of))
	for _, one := range of {
		figures = append(figures, figure(one))
	}
	slices.Sort(figures)
	half := len(figures) / 2
	if len(figures)%2 == 1 {
		return figures[half]
	}
	return (figures[half-1] + figures[half]) / 2
}

// Errors is by how much a prediction was off, each as a share of what was measured: 0 is exact, and 1 as much again. A figure that was
// not measured has none, and is NaN.
type Errors struct{ Copy, Sent, Downtime float64 }

// Off compares what was expected of a migration with what it took.
func (m Migration) Off(stats *operation.MigrationStats) Errors {
	none := math.NaN()
	found := Errors{none, none, none}
	if stats == nil {
		return found
	}
	if stats.Elapsed > 0 {
		found.Copy = off(m.Copy.Seconds(), stats.Elapsed.Seconds())
	}
	if stats.DataProcessed > 0 {
		found.Sent = off(float64(m.Sent), float64(stats.DataProcessed))
	}
	if stats.Downtime != nil && *stats.Downtime > 0 {
		found.Downtime = off(m.Downtime.Seconds(), stats.Downtime.Seconds())
	}
	return found
}

func off(expected, measured float64) float64 { return math.Abs(expected-measured) / measured }
