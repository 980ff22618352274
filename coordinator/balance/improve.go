package balance

import (
	"fmt"
	"math"
	"slices"

	"berth/shared/units"
)

// firstWidth is how many of the nodes with most, and of those with least, are looked at for the next move. The number grows
// while nothing is found, in the end to all nodes.
const firstWidth = 8

// step is one move that makes the cluster more even.
type step struct {
	vm, to int
	figure float64 // afterwards
	gain   float64 // of figure, divided by a small power of the bytes that are copied
	tried  bool
}

// sizeWeight is the power of a VM's size that divides a gain. Copying costs something, but each further move costs too, so
// the power is small. With 0 the plan is hbal's; with 0.2 it copies about a twentieth less.
const sizeWeight = 0.1

// improve offers the moves that make the cluster most even, one target each, until it is even enough.
func improve(s *Situation, take func(Proposal) bool) string {
	kept := s.weighed
	if !kept {
		s.weigh()
		s.weighed = true
	}
	why, found := s.improve(take)
	if !found && kept { // sums that were updated over many moves are a little off: only new sums can say that nothing is left
		s.weigh()
		why, _ = s.improve(take)
	}
	return why
}

func (s *Situation) improve(take func(Proposal) bool) (why string, found bool) {
	l := &s.loads
	now, least := l.figure(), s.least()
	if enough := s.Parameters[EvenEnough]; now < enough {
		return fmt.Sprintf("the cluster is even: %.3f, less than %s %s", now, EvenEnough, number(enough)), false
	}
	ends, pressure := s.findEnds(l)
	if len(ends) < 2 {
		return fewerThanTwo(len(ends)), false
	}
	offered := false
	for s.width = max(s.width, firstWidth); ; s.width *= 2 {
		most := topmost(ends, s.width, func(a, b int) bool { return pressure[a] > pressure[b] })
		fewest := topmost(ends, s.width, func(a, b int) bool { return pressure[a] < pressure[b] })
		s.findSteps(l, most, fewest, now-least)
		for best := bestStep(s.steps); best >= 0; best = bestStep(s.steps) {
			one := &s.steps[best]
			one.tried, offered = true, true
			if take(Proposal{VM: one.vm, Targets: []int{one.to}, Reason: s.bySpread(now, one)}) {
				return "", true
			}
		}
		if s.width >= len(ends) {
			break
		}
	}
	if offered {
		return fmt.Sprintf(
			"the cluster is at %.3f, and the policy would rather leave the VMs that would make it more even where they are", now,
		), false
	}
	return fmt.Sprintf("the cluster is at %.3f, and no move of a VM that may be moved would lower that by %.2g", now, least), false
}

// findEnds collects the nodes that a move may begin or end at, and by node how fast the figure falls when it has less.
func (s *Situation) findEnds(l *loads) (ends []int, pressure []float64) {
	var steep [strains]float64
	for k := range steep {
		if deviation := l.spread[k].deviation(); deviation > 0 {
			steep[k] = 1 / deviation
		}
	}
	if s.pressure == nil {
		s.pressure = make([]float64, len(s.Out))
	}
	clear(s.pressure)
	pressure, ends = s.pressure, s.ends[:0]
	for node := range s.Out {
		if !s.free(node) {
			continue
		}
		ends = append(ends, node)
		for k := range steep {
			pressure[node] += (l.of[node][k] - l.spread[k].centre) * steep[k]
		}
	}
	s.ends = ends
	return ends, pressure
}

// topmost is the first n nodes in an order; equal ones stay as they are.
func topmost(nodes []int, n int, before func(a, b int) bool) []int {
	top := make([]int, 0, n)
	for _, node := range nodes {
		if len(top) == n && !before(node, top[n-1]) {
			continue
		}
		at := len(top)
		for at > 0 && before(node, top[at-1]) {
			at--
		}
		if len(top) == n {
			top = top[:n-1]
		}
		top = slices.Insert(top, at, node)
	}
	return top
}

// findSteps collects all moves between some nodes and some others whose figure is at most a limit.
func (s *Situation) findSteps(l *loads, from, to []int, most float64) {
	s.steps = s.steps[:0]
	under := s.limits()
	for _, source := range from {
		for _, at := range s.On[source] {
			vm := &s.VMs[at]
			if !vm.Movable {
				continue
			}
			size := sizes(vm)
			first := len(s.steps)
			for _, target := range to {
				if target == source || s.Columns.Room.At(target) <= vm.Memory {
					continue
				}
				if figure := l.moved(&size, source, target); figure <= most && s.bears(target, vm, under) {
					s.steps = append(s.steps, step{vm: at, to: target, figure: figure})
				}
			}
			if len(s.steps) > first {
				weight := math.Pow(float64(max(vm.Memory, 1)), -sizeWeight)
				for i := range s.steps[first:] {
					s.steps[first+i].gain = (most - s.steps[first+i].figure) * weight
				}
			}
		}
	}
}

// bestStep is the untried move with the highest gain, the first of equal ones; -1: there is none.
func bestStep(steps []step) int {
	best := -1
	for i := range steps {
		if one := &steps[i]; !one.tried && (best < 0 || one.gain > steps[best].gain) {
			best = i
		}
	}
	return best
}

// bySpread describes a step in words.
func (s *Situation) bySpread(now float64, one *step) func(target int) string {
	return func(target int) string {
		vm := &s.VMs[one.vm]
		percent := func(node int, more units.Bytes) float64 {
			return 100 * share(float64(s.Columns.Used.At(node)+more), float64(s.Columns.Promised[node]))
		}
		return fmt.Sprintf("the cluster goes from %.3f to %.3f; memory promised: %s from %.0f to %.0f %%, %s from %.0f to %.0f %%",
			now, one.figure, s.name(vm.At), percent(vm.At, 0), percent(vm.At, -vm.Memory),
			s.name(target), percent(target, 0), percent(target, vm.Memory))
	}
}
