package view

import (
	"iter"
	"slices"

	"github.com/tidwall/btree"

	"berth/coordinator/model"
)

// VMs are the records of VMs that a view looks up as it needs them. They are of one moment and never change.
type VMs interface {
	ByID(id string) *model.VM // nil: there is none
	On(node string) iter.Seq[*model.VM]
	All() iter.Seq[*model.VM]
}

// List are the VMs of a list.
func List(vms []model.VM) VMs {
	l := listed{all: vms, byID: make(map[string]*model.VM, len(vms)), on: make(map[string][]*model.VM)}
	for i := range vms {
		vm := &vms[i]
		l.byID[vm.ID] = vm
		if vm.Holder != "" {
			l.on[vm.Holder] = append(l.on[vm.Holder], vm)
		}
	}
	return l
}

type listed struct {
	all  []model.VM
	byID map[string]*model.VM
	on   map[string][]*model.VM // by node ID
}

func (l listed) ByID(id string) *model.VM { return l.byID[id] }

func (l listed) On(node string) iter.Seq[*model.VM] { return slices.Values(l.on[node]) }

func (l listed) All() iter.Seq[*model.VM] {
	return func(yield func(*model.VM) bool) {
		for i := range l.all {
			if !yield(&l.all[i]) {
				return
			}
		}
	}
}

// VM is the record of a VM by ID; nil: there is none. Nobody changes it.
func (v *View) VM(id string) *model.VM { return v.origin().roster.vms.ByID(id) }

// VMsOn are the records of the VMs that a node holds. Nobody changes them.
func (v *View) VMsOn(node string) iter.Seq[*model.VM] { return v.origin().roster.vms.On(node) }

// reserved are the reservations of a view.
type reserved struct {
	on map[string][]*model.Reservation // by node ID
	of map[string][]*model.Reservation // by VM ID
}

func reservedOf(reservations []model.Reservation) reserved {
	h := reserved{on: make(map[string][]*model.Reservation), of: make(map[string][]*model.Reservation, len(reservations))}
	for i := range reservations {
		one := &reservations[i]
		h.on[one.Node] = append(h.on[one.Node], one)
		h.of[one.VM] = append(h.of[one.VM], one)
	}
	return h
}

// leaves tells whether a live operation takes a VM from a node to another one.
func (h reserved) leaves(vm, node string) bool {
	all := h.of[vm]
	return len(all) > 0 && all[len(all)-1].Node != node
}

// strays are the nodes that show a domain which holds memory and is no VM that the node holds by its record, by its UUID: foreign ones,
// the copy that a migration fills, and what should not be there. There are few of them. A copy costs nothing, and shares what is not
// changed in it.
type strays struct{ nodes btree.Map[string, []string] }

// on are the nodes, ascending.
func (s *strays) on(uuid string) []string {
	nodes, _ := s.nodes.Get(uuid)
	return nodes
}

// replace changes which domains stray on a node.
func (s *strays) replace(node string, before, now []string) {
	for _, uuid := range before {
		if slices.Contains(now, uuid) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(s.on(uuid)), func(n string) bool { return n == node })
		if len(rest) == 0 {
			s.nodes.Delete(uuid)
		} else {
			s.nodes.Set(uuid, rest)
		}
	}
	for _, uuid := range now {
		nodes := s.on(uuid)
		if at, there := slices.BinarySearch(nodes, node); !there {
			s.nodes.Set(uuid, slices.Insert(slices.Clone(nodes), at, node))
		}
	}
}

func (s *strays) copy() strays { return strays{nodes: *s.nodes.Copy()} }
