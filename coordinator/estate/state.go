package estate

import "berth/coordinator/cluster"

// State is what is declared now. The cluster "default" need not be among the resources.
type State struct {
	Resources []cluster.Resource
	Nodes     []cluster.Node
	VMs       []cluster.VM
}

// Source finds resources and nodes. *State is one, and so are all Facts.
type Source interface {
	Resource(id string) (cluster.Resource, bool)
	ResourceByName(kind cluster.Kind, name string) (cluster.Resource, bool)
	Node(id string) (cluster.Node, bool)
}

// allOf are the resources of a kind.
func allOf(source Source, kind cluster.Kind) []cluster.Resource {
	if facts, lists := source.(interface {
		Resources(kind cluster.Kind) []cluster.Resource
	}); lists {
		return facts.Resources(kind)
	}
	return newIndex(source.(*State)).Resources(kind)
}

// Resource is the resource with this ID.
func (s *State) Resource(id string) (cluster.Resource, bool) {
	return first(s.Resources, func(r *cluster.Resource) bool { return r.ID == id })
}

// ResourceByName is the resource of a kind with this name.
func (s *State) ResourceByName(kind cluster.Kind, name string) (cluster.Resource, bool) {
	return first(s.Resources, func(r *cluster.Resource) bool { return r.Kind == kind && r.Name == name })
}

// Node is the node with this name or ID.
func (s *State) Node(ref string) (cluster.Node, bool) {
	return first(s.Nodes, func(n *cluster.Node) bool { return n.ID == ref || n.Name == ref })
}

// VM is the VM with this name or ID.
func (s *State) VM(ref string) (cluster.VM, bool) {
	return first(s.VMs, func(v *cluster.VM) bool { return v.ID == ref || v.Name == ref })
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
	Resources(kind cluster.Kind) []cluster.Resource
	Nodes() []cluster.Node
	VMs() []cluster.VM
}

// index finds resources in one step. It holds copies of none: what it is made of must not change while it is used.
type index struct {
	now    *State
	byID   map[string]*cluster.Resource
	byName map[string]*cluster.Resource // by ref
	nodes  map[string]*cluster.Node     // by ID
}

// Indexed finds a state's resources in one step, for those that look for many. The state must not change while it is used.
func Indexed(now *State) Facts { return newIndex(now) }

func newIndex(now *State) *index {
	x := &index{
		now:    now,
		byID:   make(map[string]*cluster.Resource, len(now.Resources)),
		byName: make(map[string]*cluster.Resource, len(now.Resources)),
		nodes:  make(map[string]*cluster.Node, len(now.Nodes)),
	}
	for i := range now.Resources {
		r := &now.Resources[i]
		x.byID[r.ID], x.byName[ref(r.Kind, r.Name)] = r, r
	}
	for i := range now.Nodes {
		x.nodes[now.Nodes[i].ID] = &now.Nodes[i]
	}
	return x
}

func (x *index) Resource(id string) (cluster.Resource, bool) { return pointed(x.byID[id]) }

func (x *index) ResourceByName(kind cluster.Kind, name string) (cluster.Resource, bool) {
	return pointed(x.byName[ref(kind, name)])
}

// Resources are those of a kind, in the order of the state.
func (x *index) Resources(kind cluster.Kind) []cluster.Resource {
	var found []cluster.Resource
	for i := range x.now.Resources {
		if r := &x.now.Resources[i]; r.Kind == kind {
			found = append(found, *r)
		}
	}
	return found
}

// Node is the node with this ID.
func (x *index) Node(id string) (cluster.Node, bool) { return pointed(x.nodes[id]) }

// Nodes are those of the state.
func (x *index) Nodes() []cluster.Node { return x.now.Nodes }

// VMs are those of the state.
func (x *index) VMs() []cluster.VM { return x.now.VMs }

func pointed[T any](p *T) (T, bool) {
	if p == nil {
		var none T
		return none, false
	}
	return *p, true
}

// impliedID is the ID of what is there without a record: the default cluster, and what is built in.
func impliedID(kind cluster.Kind, name string) (string, bool) {
	if kind == cluster.KindCluster && name == cluster.DefaultCluster {
		return cluster.DefaultCluster, true
	}
	built, known := Builtin(kind, name)
	return built.ID, known
}

// ref is how people are told of a thing: kind/name.
func ref(kind cluster.Kind, name string) string { return string(kind) + "/" + name }
