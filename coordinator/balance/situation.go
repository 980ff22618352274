package balance

import (
	"fmt"
	"slices"
	"time"

	"berth/coordinator/view"
)

// Situation is what a balancer sees: one cluster, now or as planned. Nodes are indexes into the columns.
type Situation struct {
	Columns    *view.Columns
	Parameters map[string]float64 // all of the balancer's
	VMs        []Resting          // of all nodes, by ID
	On         [][]int            // by node: indexes of its VMs, ascending
	Out        []bool             // by node: it takes no part, because it is not up or is excluded
	Migrating  []bool             // by node: a VM is coming or leaving already, so no move may begin or end there
	At         time.Time
	History    *History

	moved int // moves of the plan so far

	// Of even-load, kept from step to step of a plan.
	width    int // how many nodes with most and with least it looks at
	loads    loads
	weighed  bool // loads are updated with each move
	ends     []int
	pressure []float64
	steps    []step
}

// Situation is what the policy's balancer sees of the fleet now, and the balancer. The error says that the policy has none or
// is not valid.
func (f *Fleet) Situation() (Balancer, *Situation, error) {
	if f.Balancer.Nothing() {
		return Balancer{}, nil, fmt.Errorf("policy %s has no balancer", f.Policy.Name)
	}
	g, err := survey(f)
	if err != nil {
		return Balancer{}, nil, err
	}
	balancer, situation := g.situation()
	return balancer, situation, nil
}

// Resting is a VM on its node.
type Resting struct {
	VM
	At      int  // its node
	Movable bool // balancing may move it now
}

// need is how many CPUs the VM is taken to use: all of its vCPUs as long as its use is not known.
func (v *Resting) need() float64 {
	if v.CPUKnown {
		return v.CPU
	}
	return float64(v.VCPUs)
}

// free tells whether a move may begin or end at a node.
func (s *Situation) free(node int) bool { return !s.Out[node] && !s.Migrating[node] }

// busy is the share of a node's CPUs in use, with some more CPUs in use; false if it is not known.
func (s *Situation) busy(node int, more float64) (float64, bool) {
	c := s.Columns
	if c.Known[node]&view.KnowsLoad == 0 || c.CPUs == nil || c.CPUs[node] <= 0 {
		return 0, false
	}
	return max(c.AtWork.At(node)+more, 0) / float64(c.CPUs[node]), true
}

// takes tells whether a node has room for the VM, and whether its CPUs stay within a limit, in percent.
func (s *Situation) takes(node int, vm *Resting, highCPU float64) bool {
	busy, known := s.busy(node, vm.need())
	return known && 100*busy <= highCPU && s.Columns.Room.At(node) > vm.Memory
}

// name is the name of a node.
func (s *Situation) name(node int) string {
	if name := s.Columns.Names[node]; name != "" {
		return name
	}
	return s.Columns.IDs[node]
}

// move notes that a VM is on another node, as the columns already have it. It does not move again.
func (s *Situation) move(vm, to int) {
	one := &s.VMs[vm]
	at, _ := slices.BinarySearch(s.On[one.At], vm)
	s.On[one.At] = slices.Delete(s.On[one.At], at, at+1)
	at, _ = slices.BinarySearch(s.On[to], vm)
	s.On[to] = slices.Insert(s.On[to], at, vm)
	if s.weighed {
		s.loads.reweigh(s, one.At)
		s.loads.reweigh(s, to)
	}
	one.At, one.Movable = to, false
	s.moved++
}
