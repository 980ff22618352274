package view

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
	// vacated is the node that a VM was just taken off, so that the VM can be placed anew. It is nil when none was, and as soon
	// as a VM is charged.
	vacated *vacated
}

// vacated is a node as it was while a VM was still there. The VM does not take its full size there: what the physical
// ledger gets back when a VM leaves is often less than what a new place charges for it.
type vacated struct {
	node int
	room units.Bytes
	vms  []HAVM
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
	return HAVM{VM: one.VM, Name: cmp.Or(one.Name, one.VM), Memory: max(one.Memory, one.Next)}
}

// CompareHAVMs puts the largest first, and those of one size in the order of their IDs.
func CompareHAVMs(a, b HAVM) int {
	return cmp.Or(cmp.Compare(b.Memory, a.Memory), cmp.Compare(a.VM, b.VM))
}

func (h *Headroom) charge(node int, one *Allocation) {
	if h == nil {
		return
	}
	if h.vacated = nil; !one.HA {
		return
	}
	vm := haVM(one)
	at, _ := slices.BinarySearchFunc(h.on[node], vm, CompareHAVMs)
	h.on[node] = slices.Insert(slices.Clone(h.on[node]), at, vm)
}

// discharge takes a VM off a node that had this much room with it.
func (h *Headroom) discharge(node int, one *Allocation, room units.Bytes) {
	if h == nil {
		return
	}
	if h.vacated = (&vacated{node: node, room: room, vms: h.on[node]}); !one.HA {
		return
	}
	h.on[node] = slices.DeleteFunc(slices.Clone(h.on[node]), func(vm HAVM) bool { return vm.VM == one.VM })
}

// clone copies what charging changes: the lists themselves are never changed.
func (h *Headroom) clone() *Headroom {
	if h == nil {
		return nil
	}
	return &Headroom{Spare: h.Spare, vacated: h.vacated, on: slices.Clone(h.on)}
}

// without is a copy without a VM on a node that has this much room with it.
func (h *Headroom) without(node int, gone *Allocation, room units.Bytes) *Headroom {
	copied := h.clone()
	copied.discharge(node, gone, room)
	return copied
}

// Restore returns columns for headroom alone in which the VM that was just taken off a node is back, as it was there. It
// returns false if none was taken off that node.
func (c *Columns) Restore(node int) (*Columns, bool) {
	h := c.Headroom
	if h == nil || h.vacated == nil || h.vacated.node != node {
		return nil, false
	}
	restored := *c
	restored.Room, restored.Headroom = c.Room.Clone(), h.clone()
	restored.Room.Set(node, h.vacated.room)
	restored.Headroom.on[node], restored.Headroom.vacated = h.vacated.vms, nil
	return &restored, true
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
			if slices.Contains(groups, i) && !one.ListsVM(vm) {
				add(vm, i)
			}
		}
	}
	return bound
}
