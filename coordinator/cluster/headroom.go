package cluster

import (
	"cmp"
	"slices"

	"berth/shared/units"
)

// MaxSpareNodes bounds how many nodes of a cluster may be kept in spare.
const MaxSpareNodes = 8

// Headroom are the VMs of a cluster with spare nodes that would have to be restarted elsewhere if their node failed. Asking is
// safe from several goroutines; charging the columns is not.
type Headroom struct {
	Spare int // how many nodes may fail at a time
	on    [][]HAVM
}

// HAVM is a VM that is to be highly available, on one node.
type HAVM struct {
	VM     string // ID
	Name   string
	Memory units.Bytes
}

// On are the highly available VMs on a node or on their way there, the largest first. Nobody changes them.
func (h *Headroom) On(node int) []HAVM { return h.on[node] }

// headroomOf is nil in a cluster that keeps no node in spare.
func headroomOf(spare int, nodes []*NodeView) *Headroom {
	if spare <= 0 {
		return nil
	}
	h := &Headroom{Spare: spare, on: make([][]HAVM, len(nodes))}
	for i, node := range nodes {
		for a := range node.Allocations {
			if one := &node.Allocations[a]; one.HA {
				h.on[i] = append(h.on[i], haVM(one))
			}
		}
		slices.SortFunc(h.on[i], CompareHAVMs)
	}
	return h
}

func haVM(one *Allocation) HAVM {
	return HAVM{VM: one.VM, Name: cmp.Or(one.Name, one.VM), Memory: one.Memory}
}

// CompareHAVMs puts the largest first, and those of one size in the order of their IDs.
func CompareHAVMs(a, b HAVM) int {
	return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.VM, b.VM))
}

func (h *Headroom) charge(node int, one *Allocation) {
	if h == nil || !one.HA {
		return
	}
	vm := haVM(one)
	at, _ := slices.BinarySearchFunc(h.on[node], vm, CompareHAVMs)
	h.on[node] = slices.Insert(slices.Clone(h.on[node]), at, vm)
}

func (h *Headroom) discharge(node int, one *Allocation) {
	if h == nil || !one.HA {
		return
	}
	h.on[node] = slices.DeleteFunc(slices.Clone(h.on[node]), func(vm HAVM) bool { return vm.VM == one.VM })
}

// clone copies what charging changes: the lists themselves are never changed.
func (h *Headroom) clone() *Headroom {
	if h == nil {
		return nil
	}
	return &Headroom{Spare: h.Spare, on: slices.Clone(h.on)}
}

// without is a copy without a VM on a node.
func (h *Headroom) without(node int, gone *Allocation) *Headroom {
	copied := h.clone()
	copied.discharge(node, gone)
	return copied
}

// Bound are the groups with a hard rule that each VM is a member of, as indexes into All, by VM ID.
func (g *Groups) Bound() map[string][]int {
	var bound map[string][]int
	add := func(vm string, group int) {
		if bound == nil {
			bound = make(map[string][]int)
		}
		bound[vm] = append(bound[vm], group)
	}
	for i := range g.All() {
		one := &g.all[i]
		if !one.VMsRule.Hard() && !one.NodesRule.Hard() {
			continue
		}
		for _, vm := range one.VMs {
			add(vm, i)
		}
		for vm, groups := range g.joined {
			if slices.Contains(groups, i) && !listed(one.VMs, vm) {
				add(vm, i)
			}
		}
	}
	return bound
}
