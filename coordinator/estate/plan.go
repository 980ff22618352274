package estate

import (
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Action is what a change does.
type Action string

// The actions of a plan, in their order.
const (
	Create Action = "create"
	Modify Action = "change"
	Delete Action = "delete"
)

// FieldChange is one field that differs, in words for people. An empty side means that the field is not set.
type FieldChange struct {
	Field string
	From  string
	To    string
	Note  string // what else is to be known, for instance when it takes effect
	Waits bool   // for the next start of a VM that runs
}

// String is one line: FIELD: FROM → TO (NOTE).
func (f FieldChange) String() string {
	shown := func(side string) string {
		if side == "" {
			return "(none)"
		}
		return side
	}
	line := f.Field + ": " + shown(f.From) + " → " + shown(f.To)
	if f.From == "" {
		line = f.Field + ": " + shown(f.To)
	}
	if f.Note != "" {
		line += " (" + f.Note + ")"
	}
	return line
}

// Change is one record that becomes another one. Of Resource, Node and VM the one is set that is stored; none when the
// record is deleted.
type Change struct {
	Action   Action
	Kind     model.Kind
	Name     string
	Fields   []FieldChange // none of a deletion
	Resource *model.Resource
	Node     *model.Node
	VM       *model.VM
	DeleteID string
	Revision uint64 // of the record as it is now; 0: there is none yet
}

// Plan is what has to be done so that a state is as a document says.
type Plan struct {
	Changes []Change // what is created before what is changed, before what is deleted; what is linked to first
}

// provisional begins the IDs of what a plan creates, until Assign gives real ones.
const provisional = "new:"

// unresolved stands for the ID of what a document names and nothing is called. That has been reported.
const unresolved = provisional + "?"

// Assign gives everything that the plan creates an ID and the time of its creation. id is asked once for each, with its
// kind and name, and not for the cluster default and VMs whose XML has a UUID.
func (p *Plan) Assign(at time.Time, id func(kind model.Kind, name string) string) {
	given := make(map[string]string)
	for i := range p.Changes {
		change := &p.Changes[i]
		if change.Action != Create {
			continue
		}
		switch {
		case change.Resource != nil:
			given[change.Resource.ID], change.Resource.CreatedAt = change.Resource.ID, at
		case change.VM != nil:
			given[change.VM.ID], change.VM.CreatedAt = change.VM.ID, at
		}
		if old := provisional + schema.Ref(change.Kind, change.Name); given[old] != "" {
			given[old] = id(change.Kind, change.Name)
		}
	}
	if len(given) == 0 {
		return
	}
	final := func(id string) string {
		if assigned, created := given[id]; created {
			return assigned
		}
		return id
	}
	for i := range p.Changes {
		change := &p.Changes[i]
		if r := change.Resource; r != nil {
			r.ID = final(r.ID)
			for name, to := range r.Links {
				r.Links[name] = final(to)
			}
			for _, ids := range r.Members {
				for i := range ids {
					ids[i] = final(ids[i])
				}
				slices.Sort(ids)
			}
		}
		if vm := change.VM; vm != nil {
			vm.ID = final(vm.ID)
			for i := range schema.VM {
				schema.VM[i].Relink(vm, func(_ model.Kind, id string) string { return final(id) })
			}
		}
	}
}

// Apply is the state with the plan carried out.
func (p *Plan) Apply(now State) State {
	resources, nodes, vms := make(map[string]*model.Resource), make(map[string]*model.Node), make(map[string]*model.VM)
	gone := make(map[string]bool)
	var after State
	for i := range p.Changes {
		change := &p.Changes[i]
		switch {
		case change.Action == Delete:
			gone[change.DeleteID] = true
		case change.Resource != nil:
			resources[change.Resource.ID] = change.Resource
		case change.Node != nil:
			nodes[change.Node.ID] = change.Node
		case change.VM != nil:
			vms[change.VM.ID] = change.VM
		}
	}
	after.Resources = applied(now.Resources, resources, gone, func(r *model.Resource) string { return r.ID })
	after.Nodes = applied(now.Nodes, nodes, gone, func(n *model.Node) string { return n.ID })
	after.VMs = applied(now.VMs, vms, gone, func(v *model.VM) string { return v.ID })
	for _, change := range p.Changes {
		switch {
		case change.Action != Create:
		case change.Resource != nil:
			after.Resources = append(after.Resources, *change.Resource)
		case change.VM != nil:
			after.VMs = append(after.VMs, *change.VM)
		}
	}
	return after
}

// applied are the records with some replaced and some gone.
func applied[T any](now []T, changed map[string]*T, gone map[string]bool, id func(*T) string) []T {
	after := make([]T, 0, len(now)+len(changed))
	for i := range now {
		switch next := changed[id(&now[i])]; {
		case gone[id(&now[i])]:
		case next != nil:
			after = append(after, *next)
		default:
			after = append(after, now[i])
		}
	}
	return after
}
