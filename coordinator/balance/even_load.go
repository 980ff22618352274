package balance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"berth/shared/units"
)

// Parameters of even-load; it has HighCPU as well.
const (
	HighMemory      = "HighMemory"
	DurationMinutes = "DurationMinutes"
	MinimumGain     = "MinimumGain"
	EvenEnough      = "EvenEnough"
)

// evenLoad is even distribution by CPU and memory, as oVirt's policy of that name and VMware's DRS do it. A pass takes a VM
// from a node that has been over a threshold for a while to a node that stays below all of them. A plan evens out the whole
// cluster, whether or not a node is over a threshold: each step is the move that lowers the figure most. Ganeti's hbal does
// the same with the same figure (hbal(1), "algorithm"); here only the nodes with most and least are looked at.
var evenLoad = Balancer{
	Name: "even-load",
	Doc: "CPU and memory evenly used: it takes a VM from a node that has been too busy or too full for a while. A plan evens " +
		"the whole cluster out.",
	Unit:    "sum of the standard deviations of memory, vCPUs and CPU use",
	Settles: 2 * time.Minute,
	Parameters: []Parameter{
		highCPU,
		{
			Name: HighMemory, Default: 80, Least: 1, Most: 100,
			Doc: "How much of a node's memory may be promised or in use, in percent: over it the node is too full, and no VM " +
				"goes to a node that would be fuller with it.",
		},
		{
			Name: DurationMinutes, Default: 2, Most: 1440,
			Doc: "How long a node has to be over a threshold, in minutes, before a VM is taken from it.",
		},
		{
			Name: MinimumGain, Default: 0.01, Least: 1e-6, Most: 100,
			Doc: "How much more even the cluster has to become with a move, times the number of nodes.",
		},
		{
			Name: EvenEnough, Default: 0.1, Least: 0.001, Most: 10,
			Doc: "Under this figure the cluster counts as even, and a plan ends.",
		},
	},
	Watch:   func(s *Situation) { s.hot() },
	Propose: relieve,
	Improve: improve,
	Figure:  func(s *Situation) float64 { return s.weigh().figure() },
}

// strain is one of the figures of a node that even-load looks at.
type strain int

const (
	memoryStrain strain = iota // share of the memory that may be promised, promised
	vcpuStrain                 // share of the vCPUs that may be promised, promised
	busyStrain                 // share of the CPUs at work
	strains
)

// loads has the figures of all nodes that take part, and how far apart they are.
type loads struct {
	of     [][strains]float64 // by node
	per    [][strains]float64 // by node: the share that one byte, one vCPU and one busy CPU make
	spread [strains]moments
}

// weigh computes the figures of all nodes.
func (s *Situation) weigh() *loads {
	l := &s.loads
	if l.of == nil {
		l.of, l.per = make([][strains]float64, len(s.Out)), make([][strains]float64, len(s.Out))
		for node := range s.Out {
			l.per[node] = s.per(node)
		}
	}
	var means [strains]moments
	for node := range s.Out {
		if s.Out[node] {
			continue
		}
		l.of[node] = s.strainsOf(node, &l.per[node])
		for k, x := range l.of[node] {
			means[k].add(x)
		}
	}
	for k := range l.spread {
		l.spread[k] = moments{centre: means[k].sum / max(means[k].n, 1)}
	}
	for node := range s.Out {
		if !s.Out[node] {
			for k, x := range l.of[node] {
				l.spread[k].add(x)
			}
		}
	}
	return l
}

// reweigh computes the figures of one node again.
func (l *loads) reweigh(s *Situation, node int) {
	now := s.strainsOf(node, &l.per[node])
	for k := range l.spread {
		l.spread[k].change(l.of[node][k], now[k])
	}
	l.of[node] = now
}

// per is what one byte, one vCPU and one busy CPU add to a node's figures; 0 where a node has no limit, or nothing is known.
func (s *Situation) per(node int) (per [strains]float64) {
	c := s.Columns
	if c.Promised[node] > 0 {
		per[memoryStrain] = 1 / float64(c.Promised[node])
	}
	if c.VCPULimit[node] > 0 {
		per[vcpuStrain] = 1 / c.VCPULimit[node]
	}
	if _, known := s.busy(node, 0); known {
		per[busyStrain] = 1 / float64(c.CPUs[node])
	}
	return per
}

func (s *Situation) strainsOf(node int, per *[strains]float64) [strains]float64 {
	c := s.Columns
	strains := [strains]float64{float64(c.Used.At(node)) * per[memoryStrain], float64(c.VCPUs.At(node)) * per[vcpuStrain]}
	if per[busyStrain] > 0 {
		strains[busyStrain] = c.AtWork.At(node) * per[busyStrain]
	}
	return strains
}

func share(used, limit float64) float64 {
	if limit <= 0 {
		return 0
	}
	return used / limit
}

// figure is how uneven the nodes are.
func (l *loads) figure() float64 {
	sum := 0.0
	for k := range l.spread {
		sum += l.spread[k].deviation()
	}
	return sum
}

// sizes is what a VM takes from one node and adds to another.
func sizes(vm *Resting) [strains]float64 {
	size := [strains]float64{float64(vm.Memory), float64(vm.VCPUs)}
	if vm.CPUKnown {
		size[busyStrain] = vm.CPU
	}
	return size
}

// moved is the figure after a move of this size. Its time does not depend on the number of nodes.
func (l *loads) moved(size *[strains]float64, from, to int) float64 {
	was, gets, off, on, sum := &l.of[from], &l.of[to], &l.per[from], &l.per[to], 0.0
	for k := range l.spread {
		if size[k] != 0 {
			sum += l.spread[k].shifted(was[k], gets[k], min(size[k]*off[k], was[k]), size[k]*on[k])
		} else {
			sum += l.spread[k].deviation()
		}
	}
	return sum
}

// fullness is the share of a node's memory that is promised or in use, whichever is larger, after an addition.
func (s *Situation) fullness(node int, more units.Bytes) float64 {
	c := s.Columns
	promised := share(float64(c.Used.At(node)+more), float64(c.Promised[node]))
	used := share(float64(c.Memory[node]-c.Free.At(node)+more), float64(c.Memory[node]))
	return max(promised, used)
}

// limits are the thresholds, in percent.
type limits struct{ cpu, memory float64 }

func (s *Situation) limits() limits { return limits{s.Parameters[HighCPU], s.Parameters[HighMemory]} }

// bears tells whether a node takes the VM and stays below all thresholds.
func (s *Situation) bears(node int, vm *Resting, under limits) bool {
	return s.takes(node, vm, under.cpu) && 100*s.fullness(node, vm.Memory) <= under.memory
}

// least is the least gain that a move is worth.
func (s *Situation) least() float64 { return s.Parameters[MinimumGain] / float64(max(len(s.Out), 1)) }

// heat is which thresholds a node exceeds.
type heat struct {
	node         int
	busy, full   bool    // over HighCPU, over HighMemory
	how          float64 // by how much, as a share of the threshold
	since        time.Time
	cpus, memory float64 // percent
}

// hot is the nodes over a threshold, the worst first, and since when they are.
func (s *Situation) hot() []heat {
	var found []heat
	for node := range s.Out {
		busy, known := s.busy(node, 0)
		h := heat{node: node, cpus: 100 * busy, memory: 100 * s.fullness(node, 0)}
		h.busy = !s.Out[node] && known && h.cpus > s.Parameters[HighCPU]
		h.full = !s.Out[node] && h.memory > s.Parameters[HighMemory]
		id := s.Columns.IDs[node]
		busySince, _ := s.History.Since(id, HighCPU, h.busy, s.At)
		fullSince, _ := s.History.Since(id, HighMemory, h.full, s.At)
		switch {
		case h.busy && h.full:
			h.since = busySince
			if fullSince.Before(busySince) {
				h.since = fullSince
			}
		case h.busy:
			h.since = busySince
		case h.full:
			h.since = fullSince
		default:
			continue
		}
		if h.busy {
			h.how = h.cpus / s.Parameters[HighCPU]
		}
		if h.full {
			h.how = max(h.how, h.memory/s.Parameters[HighMemory])
		}
		found = append(found, h)
	}
	slices.SortStableFunc(found, func(a, b heat) int { return cmp.Compare(b.how, a.how) })
	return found
}

// relieve offers the VMs of nodes that have been over a threshold for long enough. It begins with those whose move makes the
// cluster most even.
func relieve(s *Situation, take func(Proposal) bool) string {
	hot := s.hot()
	if len(hot) == 0 {
		return fmt.Sprintf(
			"no node is over %s %s %% or %s %s %%", HighCPU, number(s.Parameters[HighCPU]), HighMemory, number(s.Parameters[HighMemory]),
		)
	}
	enough := time.Duration(s.Parameters[DurationMinutes] * float64(time.Minute))
	l, why := s.weigh(), ""
	for i := range hot {
		h := &hot[i]
		switch {
		case !s.free(h.node):
			why = cmp.Or(why, fmt.Sprintf("%s is %s, and something moves there already", s.name(h.node), s.over(h)))
		case s.At.Sub(h.since) < enough:
			why = cmp.Or(why, fmt.Sprintf("%s is %s, but not yet for %s", s.name(h.node), s.over(h), enough))
		default:
			offered := false
			for _, proposal := range s.relieving(l, h) {
				offered = true
				if take(proposal) {
					return ""
				}
			}
			rest := "no VM that may be moved would relieve it and fit on a node that stays under the thresholds"
			if offered {
				rest = "the policy would rather leave its VMs where they are"
			}
			why = cmp.Or(why, fmt.Sprintf("%s is %s, but %s", s.name(h.node), s.over(h), rest))
		}
	}
	return why
}

// over says in words which thresholds a node exceeds.
func (s *Situation) over(h *heat) string {
	var all []string
	if h.busy {
		all = append(all, fmt.Sprintf("at %.0f %% of its CPUs, over %s %s %%", h.cpus, HighCPU, number(s.Parameters[HighCPU])))
	}
	if h.full {
		all = append(all, fmt.Sprintf("at %.0f %% of its memory, over %s %s %%", h.memory, HighMemory, number(s.Parameters[HighMemory])))
	}
	return strings.Join(all, " and ")
}

// relieving is the moves that would bring a node closer to its threshold.
func (s *Situation) relieving(l *loads, h *heat) []Proposal {
	type move struct {
		Proposal
		figure float64 // with the best target
	}
	now, least, under := l.figure(), s.least(), s.limits()
	var moves []move
	for _, at := range s.On[h.node] {
		vm := &s.VMs[at]
		relieves := h.full && vm.Memory > 0 || h.busy && vm.CPUKnown && vm.CPU > 0
		if !vm.Movable || !relieves {
			continue
		}
		size := sizes(vm)
		one := move{Proposal: Proposal{VM: at, Reason: s.byHeat(h, vm)}, figure: math.Inf(1)}
		for to := range s.Out {
			if to == h.node || !s.free(to) || !s.bears(to, vm, under) {
				continue
			}
			if figure := l.moved(&size, h.node, to); now-figure >= least {
				one.Targets, one.figure = append(one.Targets, to), min(one.figure, figure)
			}
		}
		if len(one.Targets) > 0 {
			moves = append(moves, one)
		}
	}
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(a.figure, b.figure) })
	proposals := make([]Proposal, len(moves))
	for i := range moves {
		proposals[i] = moves[i].Proposal
	}
	return proposals
}

// byHeat describes a move in words.
func (s *Situation) byHeat(h *heat, vm *Resting) func(target int) string {
	return func(target int) string {
		held := ""
		if since := s.At.Sub(h.since).Truncate(time.Second); since > 0 {
			held = fmt.Sprintf(" for %s", since)
		}
		busy, _ := s.busy(target, vm.need())
		return fmt.Sprintf("%s has been %s%s; %s is at %.0f %% of its CPUs and %.0f %% of its memory with %s", s.name(h.node),
			s.over(h), held, s.name(target), 100*busy, 100*s.fullness(target, vm.Memory), vm.Name)
	}
}
