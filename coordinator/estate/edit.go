package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Wanted is what is to change of a resource, by the names of its links, settings and lists, which may have dashes for
// underscores. What is not named stays as it is.
type Wanted struct {
	Links    map[string]string   // names of what it links to
	Settings map[string]string   // as people write them; an export writes a word of the designs as it was given
	Lists    map[string][]string // whole lists; an empty one is unset
	Members  map[string][]string // whole lists of names of VMs or nodes; an empty one is unset
	Unset    []string            // links, settings and lists
}

// NewResource makes a resource of a kind. A new cluster has the special keys, and the cluster default its own ID. The error
// is a *RefusedError with everything that is wrong.
func NewResource(now State, kind model.Kind, name string, wanted Wanted, id string, at time.Time) (model.Resource, error) {
	if _, known := schema.FormOf(kind); !known {
		return model.Resource{}, schema.Problems([]schema.Problem{{
			Subject: schema.Ref(kind, name), Message: fmt.Sprintf("%q is no kind of resource", kind), Next: "want one of " + kinds(),
		}})
	}
	if _, builtIn := Builtin(kind, name); builtIn {
		return model.Resource{}, schema.Problems([]schema.Problem{{
			Subject: schema.Ref(kind, name), Field: "name", Message: "a built-in one has the name", Next: "choose another name",
		}})
	}
	if _, taken := now.ResourceByName(kind, name); taken {
		return model.Resource{}, schema.Problems([]schema.Problem{{
			Subject: schema.Ref(kind, name), Field: "name", Message: "it exists already", Next: "change it, or choose another name",
		}})
	}
	r := model.Resource{ID: id, Kind: kind, Name: name, CreatedAt: at}
	if kind == model.KindCluster {
		r.Keys = model.SpecialKeyDefaults()
		if name == model.DefaultCluster {
			r.ID = model.DefaultCluster
		}
	}
	return Edit(now, r, wanted)
}

// Edit changes a resource. The resource given is not changed. The error is a *RefusedError with everything that is wrong.
func Edit(now State, r model.Resource, wanted Wanted) (model.Resource, error) {
	form, _ := schema.FormOf(r.Kind)
	e := &editor{now: &now, form: form, subject: schema.Ref(r.Kind, r.Name)}
	if _, builtIn := BuiltinByID(r.ID); builtIn {
		e.report("", "it is built in and cannot change",
			fmt.Sprintf("copy it with 'berth %s copy %s NAME', and change the copy", r.Kind, r.Name))
		return model.Resource{}, schema.Problems(e.problems)
	}
	r.Links, r.Settings, r.Lists, r.Members = cloned(r.Links), cloned(r.Settings), cloned(r.Lists), cloned(r.Members)
	r.Spelled = cloned(r.Spelled)
	for _, name := range slices.Sorted(maps.Keys(wanted.Links)) {
		e.link(&r, fieldName(name), wanted.Links[name])
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Settings)) {
		e.setting(&r, fieldName(name), wanted.Settings[name])
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Lists)) {
		e.list(&r, fieldName(name), wanted.Lists[name])
	}
	for _, name := range slices.Sorted(maps.Keys(wanted.Members)) {
		e.members(&r, fieldName(name), wanted.Members[name])
	}
	for _, name := range wanted.Unset {
		e.unset(&r, fieldName(name))
	}
	r.Links, r.Settings = canonicalLinks(r.Kind, r.Links), nilIfEmpty(r.Settings)
	r.Lists, r.Members, r.Spelled = nilIfEmpty(r.Lists), nilIfEmpty(r.Members), nilIfEmpty(r.Spelled)
	if err := schema.Problems(e.problems); err != nil {
		return model.Resource{}, err
	}
	if err := schema.Problems(CheckChange(now, now.withResource(r))); err != nil {
		return model.Resource{}, err
	}
	return r, nil
}

// fieldName is a field's name in records: flags have dashes where they have underscores.
func fieldName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

func cloned[V any](m map[string]V) map[string]V {
	out := make(map[string]V, len(m))
	maps.Copy(out, m)
	return out
}

func kinds() string {
	var words []string
	for _, form := range schema.Forms() {
		words = append(words, string(form.Kind))
	}
	return strings.Join(words, ", ")
}

func (s *State) withResource(r model.Resource) State {
	after := *s
	after.Resources = replaced(s.Resources, r, func(r *model.Resource) string { return r.ID })
	return after
}

func (s *State) withNode(n model.Node) State {
	after := *s
	after.Nodes = replaced(s.Nodes, n, func(n *model.Node) string { return n.ID })
	return after
}

func (s *State) withVM(v model.VM) State {
	after := *s
	after.VMs = replaced(s.VMs, v, func(v *model.VM) string { return v.ID })
	return after
}

// replaced has the record instead of the one with its ID, or in addition. The records given are not changed.
func replaced[T any](all []T, one T, id func(*T) string) []T {
	out := slices.Clone(all)
	for i := range out {
		if id(&out[i]) == id(&one) {
			out[i] = one
			return out
		}
	}
	return append(out, one)
}

type editor struct {
	now      *State
	form     schema.Form
	subject  string
	problems []schema.Problem
}

func (e *editor) report(field, message, next string) {
	e.problems = append(e.problems, schema.Problem{Subject: e.subject, Field: field, Message: message, Next: next})
}

func (e *editor) link(r *model.Resource, name, to string) {
	at := slices.IndexFunc(e.form.Links, func(l schema.Link) bool { return l.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s links to no %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	if id, ok := e.named(name, e.form.Links[at].To, to); ok {
		r.Links[name] = id
	}
}

// named finds the ID of what is called so.
func (e *editor) named(field string, kind model.Kind, name string) (string, bool) {
	if found, there := e.now.ResourceByName(kind, name); there {
		return found.ID, true
	}
	if id, implied := impliedID(kind, name); implied {
		return id, true
	}
	e.report(field, fmt.Sprintf("the %s %q does not exist", kind, name),
		fmt.Sprintf("add it first, or choose one of 'berth %s list'", kind))
	return "", false
}

func (e *editor) setting(r *model.Resource, name, value string) {
	at := slices.IndexFunc(e.form.Settings, func(s schema.Setting) bool { return s.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s has no setting %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	canonical, err := e.form.Settings[at].Canonical(value)
	if err != nil {
		e.problems = append(e.problems, schema.ProblemOf(e.subject, name, err))
		return
	}
	r.Settings[name] = canonical
	switch form := e.form.Settings[at]; {
	case form.IsAlias(value):
		r.Spelled[name] = value
	case r.Kind != model.KindGroup: // whose fields are spelled, not their values
		delete(r.Spelled, name)
	}
}

func (e *editor) list(r *model.Resource, name string, words []string) {
	at := slices.IndexFunc(e.form.Lists, func(l schema.List) bool { return l.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s has no list %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	canonical, err := e.form.Lists[at].Canonical(words)
	if err != nil {
		e.problems = append(e.problems, schema.ProblemOf(e.subject, name, err))
		return
	}
	if r.Lists[name] = canonical; len(canonical) == 0 {
		delete(r.Lists, name)
	}
}

func (e *editor) members(r *model.Resource, name string, names []string) {
	at := slices.IndexFunc(e.form.Members, func(l schema.MemberList) bool { return l.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s has no members %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	if r.Members[name] = e.member(name, e.form.Members[at].To, names); len(r.Members[name]) == 0 {
		delete(r.Members, name)
	}
}

// member finds the IDs of VMs or nodes by name or ID, and puts them in the order in which they are stored.
func (e *editor) member(field string, kind model.Kind, names []string) []string {
	ids := make([]string, 0, len(names))
	for _, name := range names {
		id := ""
		if kind == model.KindVM {
			vm, _ := e.now.VM(name)
			id = vm.ID
		} else {
			node, _ := e.now.Node(name)
			id = node.ID
		}
		if id == "" {
			e.report(field, fmt.Sprintf("the %s %q does not exist", kind, name), fmt.Sprintf("choose one of 'berth %s list'", kind))
			continue
		}
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func (e *editor) unset(r *model.Resource, name string) {
	if !slices.Contains(e.form.Fields(), name) {
		e.report(name, fmt.Sprintf("%s has no %s", r.Kind.WithArticle(), name), e.known())
	}
	delete(r.Links, name)
	delete(r.Settings, name)
	if r.Kind != model.KindGroup {
		delete(r.Spelled, name)
	}
	delete(r.Lists, name)
	delete(r.Members, name)
}

// known says what may be set.
func (e *editor) known() string { return "it has " + schema.Several(e.form.Fields()) }

// within finds the zone, the pod or the cluster that is called kind/name.
func (e *editor) within(place string) string {
	kind, name, _ := strings.Cut(place, "/")
	if !slices.Contains(schema.Places, kind) {
		e.report(fieldWithin, fmt.Sprintf("%q is no place", place), "want zone/NAME, pod/NAME or cluster/NAME")
		return ""
	}
	id, _ := e.named(kind, model.Kind(kind), name)
	return id
}

// WantedVM is what a VM is to have of what schema.VM lists: the fields that are named there, with names where records have
// IDs. What is not named stays as it is; what is empty is unset. Plain files stay as well.
type WantedVM struct {
	Fields []string
	VM     model.VM
}

// EditVM gives a VM what is wanted and checks it, new or changed by the caller. The error is a *RefusedError with everything
// that is wrong.
func EditVM(now State, vm model.VM, wanted WantedVM) (model.VM, error) {
	e := &editor{now: &now, subject: schema.Ref(model.KindVM, vm.Name)}
	files := vm.Spec.Disks
	for _, name := range wanted.Fields {
		f := schema.Of(schema.VM, name)
		f.Copy(&vm, &wanted.VM)
		f.Relink(&vm, func(kind model.Kind, name string) string { return e.linkOfVM(f.Name, kind, name) })
		if list, is := f.At(&vm).(*[]string); is && (f.Check != nil || f.To == model.KindNode) {
			*list = slices.Sorted(slices.Values(*list))
		}
	}
	vm.Spec.Disks = files
	if err := schema.Problems(e.problems); err != nil {
		return model.VM{}, err
	}
	if err := schema.Problems(CheckChange(now, now.withVM(vm))); err != nil {
		return model.VM{}, err
	}
	return vm, nil
}

// linkOfVM is the ID of what a VM is to link to.
func (e *editor) linkOfVM(field string, kind model.Kind, name string) string {
	switch kind {
	case "":
		return e.within(name)
	case model.KindNode:
		return strings.Join(e.member(field, kind, []string{name}), "")
	default:
		id, _ := e.named(field, kind, name)
		return id
	}
}
