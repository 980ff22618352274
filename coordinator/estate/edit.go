package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
)

// Wanted is what is to change of a resource, by the names of its links, settings and lists, which may have dashes for
// underscores. What is not named stays as it is.
type Wanted struct {
	Links    map[string]string   // names of what it links to
	Settings map[string]string   // as people write them
	Lists    map[string][]string // whole lists; an empty one is unset
	Members  map[string][]string // whole lists of names of VMs or nodes; an empty one is unset
	Unset    []string            // links, settings and lists
}

// NewResource makes a resource of a kind. A new cluster has the special keys, and the cluster default its own ID. The error
// is a *RefusedError with everything that is wrong.
func NewResource(now State, kind cluster.Kind, name string, wanted Wanted, id string, at time.Time) (cluster.Resource, error) {
	if _, known := FormOf(kind); !known {
		return cluster.Resource{}, Problems([]Problem{{
			Subject: ref(kind, name), Message: fmt.Sprintf("%q is no kind of resource", kind), Next: "want one of " + kinds(),
		}})
	}
	if _, builtIn := Builtin(kind, name); builtIn {
		return cluster.Resource{}, Problems([]Problem{{
			Subject: ref(kind, name), Field: "name", Message: "a built-in one has the name", Next: "choose another name",
		}})
	}
	if _, taken := now.ResourceByName(kind, name); taken {
		return cluster.Resource{}, Problems([]Problem{{
			Subject: ref(kind, name), Field: "name", Message: "it exists already", Next: "change it, or choose another name",
		}})
	}
	r := cluster.Resource{ID: id, Kind: kind, Name: name, CreatedAt: at}
	if kind == cluster.KindCluster {
		r.Keys = cluster.SpecialKeyDefaults()
		if name == cluster.DefaultCluster {
			r.ID = cluster.DefaultCluster
		}
	}
	return Edit(now, r, wanted)
}

// Edit changes a resource. The resource given is not changed. The error is a *RefusedError with everything that is wrong.
func Edit(now State, r cluster.Resource, wanted Wanted) (cluster.Resource, error) {
	form, _ := FormOf(r.Kind)
	e := &editor{now: &now, form: form, subject: ref(r.Kind, r.Name)}
	if _, builtIn := BuiltinByID(r.ID); builtIn {
		e.report("", "it is built in and cannot change",
			fmt.Sprintf("copy it with 'berth %s copy %s NAME', and change the copy", r.Kind, r.Name))
		return cluster.Resource{}, Problems(e.problems)
	}
	r.Links, r.Settings, r.Lists, r.Members = cloned(r.Links), cloned(r.Settings), cloned(r.Lists), cloned(r.Members)
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
	r.Lists, r.Members = nilIfEmpty(r.Lists), nilIfEmpty(r.Members)
	if err := Problems(e.problems); err != nil {
		return cluster.Resource{}, err
	}
	if err := Problems(CheckChange(now, now.withResource(r))); err != nil {
		return cluster.Resource{}, err
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
	for _, form := range forms {
		words = append(words, string(form.Kind))
	}
	return strings.Join(words, ", ")
}

func (s *State) withResource(r cluster.Resource) State {
	after := *s
	after.Resources = replaced(s.Resources, r, func(r *cluster.Resource) string { return r.ID })
	return after
}

func (s *State) withNode(n cluster.Node) State {
	after := *s
	after.Nodes = replaced(s.Nodes, n, func(n *cluster.Node) string { return n.ID })
	return after
}

func (s *State) withVM(v cluster.VM) State {
	after := *s
	after.VMs = replaced(s.VMs, v, func(v *cluster.VM) string { return v.ID })
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
	form     Form
	subject  string
	problems []Problem
}

func (e *editor) report(field, message, next string) {
	e.problems = append(e.problems, Problem{Subject: e.subject, Field: field, Message: message, Next: next})
}

func (e *editor) link(r *cluster.Resource, name, to string) {
	at := slices.IndexFunc(e.form.Links, func(l Link) bool { return l.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s links to no %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	if id, ok := e.named(name, e.form.Links[at].To, to); ok {
		r.Links[name] = id
	}
}

// named finds the ID of what is called so.
func (e *editor) named(field string, kind cluster.Kind, name string) (string, bool) {
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

func (e *editor) setting(r *cluster.Resource, name, value string) {
	at := slices.IndexFunc(e.form.Settings, func(s Setting) bool { return s.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s has no setting %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	canonical, err := e.form.Settings[at].Canonical(value)
	if err != nil {
		e.problems = append(e.problems, problemOf(e.subject, name, err))
		return
	}
	r.Settings[name] = canonical
}

func (e *editor) list(r *cluster.Resource, name string, words []string) {
	at := slices.IndexFunc(e.form.Lists, func(l List) bool { return l.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s has no list %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	canonical, err := e.form.Lists[at].Canonical(words)
	if err != nil {
		e.problems = append(e.problems, problemOf(e.subject, name, err))
		return
	}
	if r.Lists[name] = canonical; len(canonical) == 0 {
		delete(r.Lists, name)
	}
}

func (e *editor) members(r *cluster.Resource, name string, names []string) {
	at := slices.IndexFunc(e.form.Members, func(l MemberList) bool { return l.Name == name })
	if at < 0 {
		e.report(name, fmt.Sprintf("%s has no members %s", r.Kind.WithArticle(), name), e.known())
		return
	}
	if r.Members[name] = e.member(name, e.form.Members[at].To, names); len(r.Members[name]) == 0 {
		delete(r.Members, name)
	}
}

// member finds the IDs of VMs or nodes by name or ID, and puts them in the order in which they are stored.
func (e *editor) member(field string, kind cluster.Kind, names []string) []string {
	ids := make([]string, 0, len(names))
	for _, name := range names {
		id := ""
		if kind == cluster.KindVM {
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

func (e *editor) unset(r *cluster.Resource, name string) {
	if !slices.Contains(e.form.fields(), name) {
		e.report(name, fmt.Sprintf("%s has no %s", r.Kind.WithArticle(), name), e.known())
	}
	delete(r.Links, name)
	delete(r.Settings, name)
	delete(r.Lists, name)
	delete(r.Members, name)
}

// known says what may be set.
func (e *editor) known() string { return "it has " + several(e.form.fields()) }

// fields are the names of everything that a resource of the form may have set.
func (f Form) fields() []string {
	var names []string
	for _, link := range f.Links {
		names = append(names, link.Name)
	}
	for _, setting := range f.Settings {
		names = append(names, setting.Name)
	}
	for _, members := range f.Members {
		names = append(names, members.Name)
	}
	for _, list := range f.Lists {
		names = append(names, list.Name)
	}
	return names
}

// within finds the zone, the pod or the cluster that is called kind/name. Empty stays empty.
func (e *editor) within(place string) string {
	if place == "" {
		return ""
	}
	kind, name, _ := strings.Cut(place, "/")
	if !slices.ContainsFunc(places, func(l Link) bool { return string(l.To) == kind }) {
		e.report(fieldWithin, fmt.Sprintf("%q is no place", place), "want zone/NAME, pod/NAME or cluster/NAME")
		return ""
	}
	id, _ := e.named(kind, cluster.Kind(kind), name)
	return id
}

// VMLinks are what a VM is to be linked to, by name. What is nil stays as it is; what is empty is unlinked.
type VMLinks struct {
	VDC, Offer, Image *string
	Disks, NICs       *[]string
	Preferred         *[]string // nodes
	Within            *string   // kind/name of a zone, a pod or a cluster
}

// EditVM checks a VM, new or changed by the caller, and links it. The error is a *RefusedError with everything that is
// wrong.
func EditVM(now State, vm cluster.VM, links VMLinks) (cluster.VM, error) {
	e := &editor{now: &now, subject: ref(cluster.KindVM, vm.Name)}
	one := func(field string, kind cluster.Kind, name *string, into *string) {
		if name == nil {
			return
		}
		*into = ""
		if *name != "" {
			*into, _ = e.named(field, kind, *name)
		}
	}
	one(LinkVDC, cluster.KindVDC, links.VDC, &vm.VDC)
	if links.Within != nil {
		vm.Within = e.within(*links.Within)
	}
	one(LinkOffer, cluster.KindOffer, links.Offer, &vm.Offer)
	one(LinkImage, cluster.KindImage, links.Image, &vm.Image)
	all := func(field string, kind cluster.Kind, names *[]string, into *[]string) {
		if names == nil {
			return
		}
		*into = nil
		for _, name := range *names {
			id, _ := e.named(field, kind, name)
			*into = append(*into, id)
		}
	}
	all("disks", cluster.KindDisk, links.Disks, &vm.Disks)
	all("nics", cluster.KindNIC, links.NICs, &vm.NICs)
	if links.Preferred != nil {
		if vm.Preferred = e.member(fieldPreferred, cluster.KindNode, *links.Preferred); len(vm.Preferred) == 0 {
			vm.Preferred = nil
		}
	}
	if err := Problems(e.problems); err != nil {
		return cluster.VM{}, err
	}
	if err := Problems(CheckChange(now, now.withVM(vm))); err != nil {
		return cluster.VM{}, err
	}
	return vm, nil
}
