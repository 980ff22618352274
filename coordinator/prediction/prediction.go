// Package prediction says what a live migration will take, by what others took before: a pure function of the operations that are on
// record, so that each member says the same, and says later of one that has ended what was to be expected when it began. Of one that is
// asked about beforehand more is known, and the first of its kind is told by that.
package prediction

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"berth/coordinator/operation"
	"berth/shared/units"
)

// Migration is what a live migration is expected to take.
type Migration struct {
	Copy        time.Duration // of memory and disks, until the guest runs on the target: what libvirt calls elapsed
	Least, Most time.Duration // between which that lies, most likely
	Sent        units.Bytes
	Downtime    time.Duration // 0: nothing tells
	By          int           // of how many earlier migrations it follows; 0: of sizes and a limit alone
	Why         []string      // what it follows from, in words
}

// Hints are what is known of a migration beside the log. The zero value is nothing.
type Hints struct {
	Used  units.Bytes // memory of the host that the guest has now; 0: not known
	Disks units.Bytes // size of the disks that are copied along; 0: not known. Less is sent of those that are not full
}

// most is how many migrations of one kind are remembered, the newest ones. What was long ago was by another network or another load.
const most = 20

// took is what one migration took.
type took struct {
	share    float64 // bytes of memory sent for each byte that the VM was promised
	disks    float64 // bytes of them sent; 0: none were copied
	rate     float64 // bytes a second
	downtime float64 // seconds
}

// Past is what earlier migrations took. The zero value knows none. It is not safe for concurrent use.
type Past struct {
	ofVM  map[string][]took
	along map[[2]string][]took // source and target
	all   []took
}

// Measured finds the operations that have ended until a moment and are Measured, the last to end first. The state does.
type Measured interface {
	MeasuredBy(at time.Time) iter.Seq[*operation.Operation]
	MeasuredOf(vm string, at time.Time) iter.Seq[*operation.Operation]
	MeasuredAlong(source, target string, at time.Time) iter.Seq[*operation.Operation]
}

// Before is the past before an operation began. Only that one may be asked about: of others nothing is looked for.
func Before(ended Measured, asked *operation.Operation) *Past {
	if !asked.CopiesMemory() {
		return &Past{}
	}
	at := asked.CreatedAt
	return &Past{
		ofVM:  map[string][]took{asked.VM: last(ended.MeasuredOf(asked.VM, at))},
		along: map[[2]string][]took{wayOf(asked): last(ended.MeasuredAlong(asked.Source, asked.Target, at))},
		all:   last(ended.MeasuredBy(at)),
	}
}

// last are those that are remembered, the oldest first.
func last(ended iter.Seq[*operation.Operation]) (kept []took) {
	for op := range ended {
		if kept = append(kept, measured(op)); len(kept) == most {
			break
		}
	}
	slices.Reverse(kept)
	return kept
}

// Add takes note of an operation that has ended. Only what is Measured tells something.
func (p *Past) Add(op *operation.Operation) {
	if !op.Measured() {
		return
	}
	if p.ofVM == nil {
		p.ofVM, p.along = map[string][]took{}, map[[2]string][]took{}
	}
	one, way := measured(op), wayOf(op)
	p.ofVM[op.VM], p.along[way], p.all = newest(p.ofVM[op.VM], one), newest(p.along[way], one), newest(p.all, one)
}

func measured(op *operation.Operation) took {
	stats, disks := op.Migration, 0.0
	if op.CopyStorage {
		disks = float64(stats.DiskTotal)
	}
	sent := float64(stats.DataProcessed)
	return took{
		share: max(sent-disks, 0) / float64(op.Memory), disks: disks, rate: sent / stats.Elapsed.Seconds(), downtime: stats.Downtime.Seconds(),
	}
}

func newest(of []took, one took) []took {
	if len(of) == most {
		of = slices.Delete(of, 0, 1)
	}
	return append(of, one)
}

func wayOf(op *operation.Operation) [2]string { return [2]string{op.Source, op.Target} }

// figure is what is expected, and between which two it lies.
type figure struct{ least, likely, most float64 }

// slowest is how much slower than its limit a migration may be of which nothing else is known.
const slowest = 4

// Of is what a migration is expected to take: how much a VM sends, and how long it stands still, is as it was with this VM; how fast it
// goes is as it was between these two nodes, or as fast as it may go. Where neither is known it is as with all others. The first of all
// sends what the guest uses, as fast as it may. It is false of what is no live migration, where nothing tells how fast one goes, and where
// disks are copied whose size nothing tells.
func (p *Past) Of(op *operation.Operation, known Hints) (Migration, bool) {
	if !op.CopiesMemory() {
		return Migration{}, false
	}
	found := Migration{}
	own, way := p.ofVM[op.VM], p.along[wayOf(op)]
	rate, told := p.rate(op, way, &found)
	if !told {
		return Migration{}, false
	}
	sent := p.memory(op, own, known, &found)
	if op.CopyStorage {
		disks, told := disksOf(own, known, &found)
		if !told {
			return Migration{}, false
		}
		sent = figure{sent.least + disks.least, sent.likely + disks.likely, sent.most + disks.most}
	}
	if len(own) == 0 {
		own = p.all
	}
	if len(own) > 0 {
		found.Downtime = seconds(median(own, func(t took) float64 { return t.downtime }))
	}
	found.Copy, found.Sent = seconds(sent.likely/rate.likely), units.Bytes(min(sent.likely, math.MaxInt64/2))
	found.Least, found.Most = seconds(sent.least/rate.most), seconds(sent.most/rate.least)
	return found, true
}

// rate is how many bytes a second go.
func (p *Past) rate(op *operation.Operation, way []took, found *Migration) (figure, bool) {
	limit, name := float64(op.Bandwidth), "between these nodes"
	if len(way) == 0 {
		way, name = p.all, "in the cluster"
	}
	if len(way) == 0 {
		if limit <= 0 {
			return figure{}, false
		}
		found.Why = append(found.Why, "its limit")
		return figure{limit / slowest, limit, limit}, true
	}
	found.By = max(found.By, len(way))
	found.Why = append(found.Why, counted(len(way))+" "+name)
	all := spread(way, func(t took) float64 { return t.rate })
	if limit > 0 {
		all = figure{min(all.least, limit), min(all.likely, limit), min(all.most, limit)}
	}
	return all, true
}

// memory is how many bytes of memory are sent.
func (p *Past) memory(op *operation.Operation, own []took, known Hints, found *Migration) figure {
	whole := float64(op.Memory)
	times := func(of figure) figure { return figure{of.least * whole, of.likely * whole, of.most * whole} }
	share := func(t took) float64 { return t.share }
	used := min(float64(known.Used), whole)
	switch {
	case len(own) > 0:
		found.By = max(found.By, len(own))
		found.Why = append(found.Why, counted(len(own))+" of the VM")
		return times(spread(own, share))
	case used > 0: // what it changes meanwhile is sent again
		again := 1.0
		if len(p.all) > 0 {
			again = max(again, spread(p.all, share).most)
		}
		found.Why = append(found.Why, "the memory that it uses")
		return figure{used / 2, used, max(used*again, whole)}
	case len(p.all) > 0:
		return times(spread(p.all, share))
	default:
		found.Why = append(found.Why, "its memory")
		return figure{0, whole, 2 * whole}
	}
}

// disksOf is how many bytes of disks are sent.
func disksOf(own []took, known Hints, found *Migration) (figure, bool) {
	copied := slices.DeleteFunc(slices.Clone(own), func(t took) bool { return t.disks <= 0 })
	size := float64(known.Disks)
	switch {
	case len(copied) > 0:
		last := copied[len(copied)-1].disks // disks fill, and seldom empty
		if size <= 0 {
			size = 2 * last
		}
		return figure{last / 2, last, max(size, last)}, true
	case size > 0: // what was never written is not sent
		found.Why = append(found.Why, "the size of its disks")
		return figure{0, size, size}, true
	default:
		return figure{}, false
	}
}

// counted is how many earlier migrations there were.
func counted(n int) string {
	if n == 1 {
		return "1 migration"
	}
	return fmt.Sprintf("%d migrations", n)
}

// spread is between which two figures one lies, by some. The fewer there are, the further it may be beyond those that were seen.
func spread(of []took, get func(took) float64) figure {
	least, highest := math.Inf(1), 0.0
	for _, one := range of {
		least, highest = min(least, get(one)), max(highest, get(one))
	}
	beyond := 1 + 1/float64(len(of))
	return figure{least / beyond, median(of, get), highest * beyond}
}

// seconds is a time that may be too long for a duration, or that nothing bounds.
func seconds(s float64) time.Duration {
	if !(s < math.MaxInt64/2/float64(time.Second)) { // true for a NaN
		return math.MaxInt64 / 2
	}
	return time.Duration(s * float64(time.Second))
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
