package balance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Parameters of imbalance and condense; they have HighCPU as well.
const (
	Metric         = "Metric"
	Imbalance      = "Imbalance"
	Free           = "Free"
	Absolute       = "Absolute"
	MinimumBenefit = "MinimumBenefit"
	MostMoves      = "MostMoves"
)

// The values of Metric.
const (
	metricMemory = 1
	metricCPU    = 2
	metricBoth   = 3
)

// imbalance is CloudStack's distributed resource scheduling of a cluster with the algorithm "balanced": promised memory or
// CPU should differ little between the nodes, measured against their mean (SEMANTICS.md, "Balancing by imbalance").
var imbalance = Balancer{
	Name: "imbalance",
	Doc: "What is promised of each node, compared with the mean of all: it moves VMs while the standard deviation over the mean " +
		"is more than 1 less Imbalance.",
	Unit:       "standard deviation over mean",
	Parameters: imbalanceParameters,
	Propose:    func(s *Situation, take func(Proposal) bool) string { return s.proposeByImbalance(toEven, take) },
	Figure:     func(s *Situation) float64 { return s.tally(toEven).figure() },
}

var imbalanceParameters = []Parameter{
	{
		Name: Metric, Default: metricMemory, Least: metricMemory, Most: metricBoth, Whole: true,
		Doc: "What counts: 1 for memory, 2 for CPU, 3 for both. Of both, the one that is further from the goal decides.",
	},
	{
		Name: Imbalance, Default: 0.4, Most: 1,
		Doc: "VMs are moved when the standard deviation over the mean is on the wrong side of 1 less this.",
	},
	{Name: Free, Most: 1, Whole: true, Doc: "1: what is free of a node counts, instead of what is promised."},
	{Name: Absolute, Most: 1, Whole: true, Doc: "1: bytes and vCPUs count, instead of the share of what a node has."},
	{
		Name: MinimumBenefit, Most: 1000,
		Doc: "How much a move has to bring for what it copies: the change of the standard deviation of memory over its mean, times " +
			"the target's memory, over the memory of the VM.",
	},
	{Name: MostMoves, Default: 50, Least: 1, Most: 100000, Whole: true, Doc: "How many moves a plan has at most."},
	highCPU,
}

// goal is the direction in which a figure should change.
type goal int

const (
	toEven     goal = 1  // less is better
	toCondense goal = -1 // more is better
)

// The two metrics, as indexes.
const (
	ofMemory = iota
	ofCPU
	metrics
)

// tally has what the metrics count on the nodes that take part.
type tally struct {
	goal
	counts  [metrics]bool
	value   [metrics][]float64 // by node
	per     [metrics][]float64 // by node: what one more byte or vCPU changes
	spread  [metrics]moments
	out     []bool // by node: it does not count
	exceeds []bool // by node: more of something that counts is promised than SkipThreshold
}

// tally counts each node.
func (s *Situation) tally(toward goal) *tally {
	t := &tally{goal: toward, out: s.Out, exceeds: make([]bool, len(s.Out))}
	metric := int(s.Parameters[Metric])
	t.counts = [metrics]bool{ofMemory: metric != metricCPU, ofCPU: metric != metricMemory}
	skip, skips := s.Parameters[SkipThreshold]
	for k := range t.value {
		t.value[k], t.per[k] = make([]float64, len(s.Out)), make([]float64, len(s.Out))
		mean := moments{}
		for node := range s.Out {
			if s.Out[node] {
				continue
			}
			used, total := float64(s.Columns.VCPUs.At(node)), s.Columns.VCPULimit[node]
			if k == ofMemory {
				used, total = float64(s.Columns.Used.At(node)), float64(s.Columns.Promised[node])
			}
			t.value[k][node], t.per[k][node] = metricValue(used, total, s.Parameters[Free] == 1, s.Parameters[Absolute] == 1)
			t.exceeds[node] = t.exceeds[node] || skips && t.counts[k] && past(used, total, skip, s.Parameters[Free] == 1)
			mean.add(t.value[k][node])
		}
		t.spread[k] = moments{centre: mean.sum / max(mean.n, 1)}
		for node := range s.Out {
			if !s.Out[node] {
				t.spread[k].add(t.value[k][node])
			}
		}
	}
	return t
}

// past tells whether a node is past the skip threshold: more is used than that share, or where what is free counts, less is free.
func past(used, total, skip float64, free bool) bool {
	if free {
		return total-used < skip*total
	}
	return used > skip*total
}

// metricValue is the value of a node with this much used of a total, and what one more unit changes.
func metricValue(used, total float64, free, absolute bool) (value, per float64) {
	value, per = used, 1
	if free {
		value, per = total-used, -1
	}
	switch {
	case absolute:
		return value, per
	case total <= 0:
		return 0, 0
	default:
		return value / total, per / total
	}
}

// combine makes one figure of both metrics: the one further from the goal. Lower is better.
func (t *tally) combine(of func(metric int) float64) float64 {
	worst := math.Inf(-1)
	for k, counts := range t.counts {
		if counts {
			worst = max(worst, float64(t.goal)*of(k))
		}
	}
	if t.goal == toCondense {
		worst++
	}
	return worst
}

func (t *tally) figure() float64 {
	return t.combine(func(k int) float64 { return t.spread[k].variation() })
}

// wanting tells how uneven the nodes are, full ones left out, and whether moves are needed.
func (t *tally) wanting(threshold float64) (now float64, wants bool) {
	now = t.combine(func(k int) float64 {
		rest := moments{centre: t.spread[k].centre}
		for node, value := range t.value[k] {
			if !t.out[node] && !t.exceeds[node] {
				rest.add(value)
			}
		}
		return rest.variation()
	})
	if t.goal == toCondense {
		now = 1 - now
		return now, now < threshold
	}
	return now, now > threshold
}

// moved is the effect of moving a VM: the figure afterwards, how much all metrics together have improved, and the part of
// memory in that.
func (t *tally) moved(vm *Resting, from, to int) (figure, gain, memory float64) {
	size := [metrics]float64{float64(vm.Memory), float64(vm.VCPUs)}
	var after [metrics]float64
	for k := range after {
		less, more := size[k]*t.per[k][from], size[k]*t.per[k][to]
		after[k] = t.spread[k].variationShifted(t.value[k][from], t.value[k][to], less, more)
		better := float64(t.goal) * (t.spread[k].variation() - after[k])
		if t.counts[k] {
			gain += better
		}
		if k == ofMemory {
			memory = better
		}
	}
	return t.combine(func(k int) float64 { return after[k] }), gain, memory
}

// leastVariation is the least change that counts; a smaller one may be a rounding error.
const leastVariation = 1e-9

// proposeByImbalance offers the moves that improve all metrics together most, one target each, as long as the figure asks for
// moves.
func (s *Situation) proposeByImbalance(toward goal, take func(Proposal) bool) string {
	if s.moved >= int(s.Parameters[MostMoves]) {
		return fmt.Sprintf("the plan has %s %d", MostMoves, s.moved)
	}
	t := s.tally(toward)
	threshold := 1 - s.Parameters[Imbalance]
	now, wants := t.wanting(threshold)
	ends, pressure := t.ends(s)
	switch side := map[goal]string{toEven: "no more", toCondense: "no less"}[toward]; {
	case len(ends) < 2:
		return fewerThanTwo(len(ends))
	case !wants:
		return fmt.Sprintf("the imbalance is %.3f, %s than 1 - %s %s", now, side, Imbalance, number(s.Parameters[Imbalance]))
	}
	offered := false
	for width := firstWidth; ; width *= 2 {
		from := topmost(ends, width, func(a, b int) bool { return pressure[a] > pressure[b] })
		to := topmost(ends, width, func(a, b int) bool { return pressure[a] < pressure[b] })
		if toward == toCondense {
			from, to = to, from
		}
		for _, one := range s.stepsByImbalance(t, from, to) {
			offered = true
			if take(Proposal{VM: one.vm, Targets: []int{one.to}, Reason: s.byImbalance(t, &one)}) {
				return ""
			}
		}
		if width >= len(ends) {
			break
		}
	}
	if offered {
		return fmt.Sprintf("the imbalance is %.3f, and the policy would rather leave the VMs that would better it where they are", now)
	}
	return fmt.Sprintf("the imbalance is %.3f, and no move of a VM that may be moved would better it", now)
}

// ends is the nodes that a move may begin or end at, and by node how much more than others it has.
func (t *tally) ends(s *Situation) (ends []int, pressure []float64) {
	pressure = make([]float64, len(s.Out))
	for node := range s.Out {
		if !s.free(node) {
			continue
		}
		ends = append(ends, node)
		for k, counts := range t.counts {
			if mean := t.spread[k].mean(); counts && mean > 0 {
				pressure[node] += math.Copysign(1, t.per[k][node]) * (t.value[k][node] - mean) / mean
			}
		}
	}
	return ends, pressure
}

// stepsByImbalance is the moves between some nodes and some others that improve the figure. Those that improve all metrics
// together most come first.
func (s *Situation) stepsByImbalance(t *tally, from, to []int) []step {
	s.steps = s.steps[:0]
	now, least := t.figure(), s.Parameters[MinimumBenefit]
	for _, source := range from {
		for _, at := range s.On[source] {
			vm := &s.VMs[at]
			if !vm.Movable {
				continue
			}
			for _, target := range to {
				if target == source || s.Columns.Room.At(target) <= vm.Memory {
					continue
				}
				figure, gain, memory := t.moved(vm, source, target)
				benefit, cost := memory*float64(s.Columns.Memory[target]), float64(vm.Memory)
				if now-figure > leastVariation && gain > leastVariation && benefit >= least*cost && s.takes(target, vm, s.Parameters[HighCPU]) {
					s.steps = append(s.steps, step{vm: at, to: target, figure: figure, gain: gain})
				}
			}
		}
	}
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(b.gain, a.gain) })
	return s.steps
}

// byImbalance describes a step in words.
func (s *Situation) byImbalance(t *tally, one *step) func(target int) string {
	now := t.figure()
	return func(target int) string {
		vm := &s.VMs[one.vm]
		percent := func(node int, more float64) float64 {
			return 100 * share(float64(s.Columns.Used.At(node))+more, float64(s.Columns.Promised[node]))
		}
		before, after := now, one.figure
		if t.goal == toCondense {
			before, after = 1-now, 1-one.figure
		}
		return fmt.Sprintf("the imbalance goes from %.3f to %.3f; memory promised: %s from %.0f to %.0f %%, %s from %.0f to %.0f %%",
			before, after, s.name(vm.At), percent(vm.At, 0), percent(vm.At, -float64(vm.Memory)),
			s.name(target), percent(target, 0), percent(target, float64(vm.Memory)))
	}
}
