package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"berth/coordinator/cluster"
)

// NewResource makes a resource of a kind. Links are by link name and lead to names; settings are as people write them;
// both names may have dashes for underscores. A new cluster has the special keys, and the cluster default its own ID. The
// error is a *RefusedError with everything that is wrong.
func NewResource(
	now State, kind cluster.Kind, name string, links, settings map[string]string, id string, at time.Time,
) (cluster.Resource, error) {
	if _, known := FormOf(kind); !known {
		return cluster.Resource{}, Problems([]Problem{{
			Subject: ref(kind, name), Message: fmt.Sprintf("%q is no kind of resource", kind), Next: "want one of " + kinds(),
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
	return Edit(now, r, links, settings, nil)
}

// Edit changes links and settings of a resource, and unsets some of them, all by name. The resource given is not changed.
// The error is a *RefusedError with everything that is wrong.
func Edit(now State, r cluster.Resource, links, settings map[string]string, unset []string) (cluster.Resource, error) {
	form, _ := FormOf(r.Kind)
	e := &editor{now: &now, form: form, subject: ref(r.Kind, r.Name)}
	r.Links, r.Settings = cloned(r.Links), cloned(r.Settings)
	for _, name := range slices.Sorted(maps.Keys(links)) {
		e.link(&r, fieldName(name), links[name])
	}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		e.setting(&r, fieldName(name), settings[name])
	}
	for _, name := range unset {
		e.unset(&r, fieldName(name))
	}
	r.Links, r.Settings = canonicalLinks(r.Links), nilIfEmpty(r.Settings)
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

func cloned(m map[string]string) map[string]string {
	out := make(map[string]string, len(m))
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
	if kind == cluster.KindCluster && name == cluster.DefaultCluster {
		return cluster.DefaultCluster, true
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

func (e *editor) unset(r *cluster.Resource, name string) {
	link := slices.ContainsFunc(e.form.Links, func(l Link) bool { return l.Name == name })
	setting := slices.ContainsFunc(e.form.Settings, func(s Setting) bool { return s.Name == name })
	if !link && !setting {
		e.report(name, fmt.Sprintf("%s has no %s", r.Kind.WithArticle(), name), e.known())
	}
	delete(r.Links, name)
	delete(r.Settings, name)
}

// known says which links and settings there are.
func (e *editor) known() string {
	var words []string
	for _, link := range e.form.Links {
		words = append(words, link.Name)
	}
	for _, setting := range e.form.Settings {
		words = append(words, setting.Name)
	}
	return "it has " + several(words)
}

// VMLinks are what a VM is to be linked to, by name. What is nil stays as it is; what is empty is unlinked.
type VMLinks struct {
	VDC, Offer, Image *string
	Disks, NICs       *[]string
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
	if err := Problems(e.problems); err != nil {
		return cluster.VM{}, err
	}
	if err := Problems(CheckChange(now, now.withVM(vm))); err != nil {
		return cluster.VM{}, err
	}
	return vm, nil
}
