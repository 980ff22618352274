// Package estate is the pure model of what people declare: which changes lead from what is declared to what a document says,
// which rules hold between declared things, and what an engine is asked for a VM. What each kind has is written in package
// schema, and the YAML form is package document.
package estate

import (
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// State is what is declared now. The cluster "default" need not be among the resources.
type State struct {
	Resources []model.Resource
	Nodes     []model.Node
	VMs       []model.VM
}

// Source finds resources and nodes. *State is one, and so are all Facts.
type Source interface {
	Resource(id string) (model.Resource, bool)
	ResourceByName(kind model.Kind, name string) (model.Resource, bool)
	Node(id string) (model.Node, bool)
}

// allOf are the resources of a kind.
func allOf(source Source, kind model.Kind) []model.Resource {
	if facts, lists := source.(interface {
		Resources(kind model.Kind) []model.Resource
	}); lists {
		return facts.Resources(kind)
	}
	return newIndex(source.(*State)).Resources(kind)
}

// Resource is the resource with this ID.
func (s *State) Resource(id string) (model.Resource, bool) {
	return first(s.Resources, func(r *model.Resource) bool { return r.ID == id })
}

// ResourceByName is the resource of a kind with this name.
func (s *State) ResourceByName(kind model.Kind, name string) (model.Resource, bool) {
	return first(s.Resources, func(r *model.Resource) bool { return r.Kind == kind && r.Name == name })
}

// Node is the node with this name or ID.
func (s *State) Node(ref string) (model.Node, bool) {
	return first(s.Nodes, func(n *model.Node) bool { return n.ID == ref || n.Name == ref })
}

// VM is the VM with this name or ID.
func (s *State) VM(ref string) (model.VM, bool) {
	return first(s.VMs, func(v *model.VM) bool { return v.ID == ref || v.Name == ref })
}

func first[T any](all []T, is func(*T) bool) (T, bool) {
	for i := range all {
		if is(&all[i]) {
			return all[i], true
		}
	}
	var none T
	return none, false
}

// Facts is everything that is declared, for those that judge a whole cluster. A snapshot of the replicated state is one, and
// Indexed makes one of a State.
type Facts interface {
	Source
	Resources(kind model.Kind) []model.Resource
	Nodes() []model.Node
	VMs() []model.VM
}

// index finds resources in one step. It holds copies of none: what it is made of must not change while it is used.
type index struct {
	now    *State
	byID   map[string]*model.Resource
	byName map[string]*model.Resource // by ref
	nodes  map[string]*model.Node     // by ID
}

// Indexed finds a state's resources in one step, for those that look for many. The state must not change while it is used.
func Indexed(now *State) Facts { return newIndex(now) }

func newIndex(now *State) *index {
	x := &index{
		now:    now,
		byID:   make(map[string]*model.Resource, len(now.Resources)),
		byName: make(map[string]*model.Resource, len(now.Resources)),
		nodes:  make(map[string]*model.Node, len(now.Nodes)),
	}
	for i := range now.Resources {
		r := &now.Resources[i]
		x.byID[r.ID], x.byName[schema.Ref(r.Kind, r.Name)] = r, r
	}
	for i := range now.Nodes {
		x.nodes[now.Nodes[i].ID] = &now.Nodes[i]
	}
	return x
}

func (x *index) Resource(id string) (model.Resource, bool) { return pointed(x.byID[id]) }

func (x *index) ResourceByName(kind model.Kind, name string) (model.Resource, bool) {
	return pointed(x.byName[schema.Ref(kind, name)])
}

// Resources are those of a kind, in the order of the state.
func (x *index) Resources(kind model.Kind) []model.Resource {
	var found []model.Resource
	for i := range x.now.Resources {
		if r := &x.now.Resources[i]; r.Kind == kind {
			found = append(found, *r)
		}
	}
	return found
}

// Node is the node with this ID.
func (x *index) Node(id string) (model.Node, bool) { return pointed(x.nodes[id]) }

// Nodes are those of the state.
func (x *index) Nodes() []model.Node { return x.now.Nodes }

// VMs are those of the state.
func (x *index) VMs() []model.VM { return x.now.VMs }

func pointed[T any](p *T) (T, bool) {
	if p == nil {
		var none T
		return none, false
	}
	return *p, true
}

// impliedID is the ID of what is there without a record: the default cluster, and what is built in.
func impliedID(kind model.Kind, name string) (string, bool) {
	if kind == model.KindCluster && name == model.DefaultCluster {
		return model.DefaultCluster, true
	}
	built, known := Builtin(kind, name)
	return built.ID, known
}
