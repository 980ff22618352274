package estate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// Diff is what has to change so that a state is as a document says. An entry of the document says all of what it names: what
// it leaves out is unset. What the document does not name stays as it is or, with prune, goes; nodes always stay. With any
// problem there is no plan: an estate is applied whole or not at all.
//
// VMs are created stopped, and none that runs is stopped: what changes of it takes effect at its next start.
func Diff(now State, doc *document.Document, prune bool) (Plan, []schema.Problem) {
	d := &differ{
		now: now, doc: doc, prunes: prune, index: newIndex(&now), declared: make(map[string]string), vmIDs: make(map[string]string),
		vms: make(map[string]*model.VM, len(now.VMs)), nodes: make(map[string]*model.Node, len(now.Nodes)),
	}
	for i := range now.VMs {
		d.vms[now.VMs[i].Name] = &now.VMs[i]
	}
	for i := range now.Nodes {
		d.nodes[now.Nodes[i].Name] = &now.Nodes[i]
	}
	for i := range doc.Entries {
		one := &doc.Entries[i]
		d.declared[schema.Ref(one.Kind, one.Name)] = d.idOf(one.Kind, one.Name)
	}
	for i := range doc.Entries {
		if one := &doc.Entries[i]; !one.HasMembers() {
			d.resource(one)
		}
	}
	for i := range doc.Nodes {
		d.node(&doc.Nodes[i])
	}
	d.dropped()
	for i := range doc.VMs {
		d.vm(&doc.VMs[i])
	}
	for i := range doc.Entries { // members have their IDs by now
		if one := &doc.Entries[i]; one.HasMembers() {
			d.resource(one)
		}
	}
	if prune {
		d.prune()
	}
	plan := Plan{Changes: slices.Concat(d.created, d.changed, d.deleted)}
	d.problems = append(d.problems, CheckChange(now, plan.Apply(now))...)
	if len(d.problems) > 0 {
		for i := range d.problems {
			d.problems[i] = doc.Locate(d.problems[i])
		}
		return Plan{}, schema.Sorted(d.problems)
	}
	d.describe(&plan)
	return plan, nil
}

type differ struct {
	now      State
	doc      *document.Document
	prunes   bool
	index    *index
	vms      map[string]*model.VM   // by name
	nodes    map[string]*model.Node // by name
	declared map[string]string      // IDs of the document's resources, by subject
	vmIDs    map[string]string      // IDs of the document's VMs, by name
	problems []schema.Problem

	created, changed, deleted []Change
}

func (d *differ) report(subject, field, message, next string) {
	d.problems = append(d.problems, schema.Problem{Subject: subject, Field: field, Message: message, Next: next})
}

// idOf is the ID that a resource has or, until the plan is assigned IDs, will be known by.
func (d *differ) idOf(kind model.Kind, name string) string {
	if record, there := d.index.ResourceByName(kind, name); there {
		return record.ID
	}
	if id, implied := impliedID(kind, name); implied {
		return id
	}
	return provisional + schema.Ref(kind, name)
}

// link finds what an entry names.
func (d *differ) link(subject, field string, kind model.Kind, name string) string {
	if id, declared := d.declared[schema.Ref(kind, name)]; declared {
		return id
	}
	if record, there := d.index.ResourceByName(kind, name); there {
		return record.ID
	}
	if id, implied := impliedID(kind, name); implied {
		return id
	}
	form, _ := schema.FormOf(kind)
	message := fmt.Sprintf("the %s %s does not exist", kind, name)
	for _, other := range schema.Forms() {
		_, declared := d.declared[schema.Ref(other.Kind, name)]
		if _, there := d.index.ResourceByName(other.Kind, name); declared || there {
			message += ", " + schema.Ref(other.Kind, name) + " is none"
			break
		}
	}
	d.report(subject, field, message, "declare it under "+form.Plural+", or correct the name")
	return unresolved
}

func (d *differ) resource(one *document.Entry) {
	subject := schema.Ref(one.Kind, one.Name)
	if _, builtIn := Builtin(one.Kind, one.Name); builtIn {
		d.report(subject, "", "a built-in one has the name", "leave it out: it is there without being declared")
		return
	}
	record, there := d.index.ResourceByName(one.Kind, one.Name)
	before := record
	record.ID, record.Kind, record.Name = d.declared[subject], one.Kind, one.Name
	record.Settings, record.NodeKeys, record.Keys = nilIfEmpty(one.Settings), one.NodeKeys, one.Keys
	record.Spelled = nilIfEmpty(one.Spelled)
	form, _ := schema.FormOf(one.Kind)
	links := make(map[string]string, len(one.Links))
	for _, link := range form.Links {
		if name, set := one.Links[link.Name]; set {
			links[link.Name] = d.link(subject, link.Name, link.To, name)
		}
	}
	record.Links = canonicalLinks(one.Kind, links)
	record.Lists, record.Members = nilIfEmpty(one.Lists), d.members(subject, form, one)
	switch change := (Change{Kind: one.Kind, Name: one.Name, Resource: &record, Revision: before.Revision}); {
	case !there:
		change.Action = Create
		d.created = append(d.created, change)
	case !sameResource(&before, &record):
		change.Action = Modify
		d.changed = append(d.changed, change)
	}
}

// canonicalLinks leaves out a link to the default cluster, where everything is that names none; but for a pool, which always
// names one.
func canonicalLinks(kind model.Kind, links map[string]string) map[string]string {
	if links[schema.LinkCluster] == model.DefaultCluster && kind != model.KindPool {
		delete(links, schema.LinkCluster)
	}
	return nilIfEmpty(links)
}

func nilIfEmpty[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func sameResource(a, b *model.Resource) bool {
	return maps.Equal(canonicalLinks(a.Kind, maps.Clone(a.Links)), canonicalLinks(b.Kind, maps.Clone(b.Links))) &&
		maps.Equal(a.Settings, b.Settings) && maps.Equal(document.Spelling(a), document.Spelling(b)) &&
		slices.Equal(a.NodeKeys, b.NodeKeys) &&
		slices.Equal(schema.SpelledOut(a.Kind, a.Keys), schema.SpelledOut(b.Kind, b.Keys)) &&
		maps.EqualFunc(a.Lists, b.Lists, slices.Equal) && maps.EqualFunc(a.Members, b.Members, slices.Equal)
}

// members are the IDs of what an entry has in its lists. What is new is known by its name until the plan is assigned IDs.
func (d *differ) members(subject string, form schema.Form, one *document.Entry) map[string][]string {
	members := make(map[string][]string, len(one.Members))
	for _, list := range form.Members {
		var ids []string
		for _, name := range one.Members[list.Name] {
			id, next := d.memberID(list.To, name)
			if next != "" {
				d.report(subject, list.Name, fmt.Sprintf("its member %s does not exist", schema.Ref(list.To, name)), next)
				continue
			}
			ids = append(ids, id)
		}
		if slices.Sort(ids); len(ids) > 0 {
			members[list.Name] = ids
		}
	}
	return nilIfEmpty(members)
}

// memberID finds a VM or a node; if there is none, next says what to do.
func (d *differ) memberID(kind model.Kind, name string) (id, next string) {
	if kind == model.KindNode {
		if node := d.nodes[name]; node != nil {
			return node.ID, ""
		}
		return "", "correct the name, or leave it out: a document does not create nodes"
	}
	if id, declared := d.vmIDs[name]; declared {
		return id, ""
	}
	switch vm := d.vms[name]; {
	case vm == nil:
		return "", "declare it under vms, or correct the name"
	case d.prunes && !d.named(kind, name):
		return "", "it goes, because the document does not declare it: declare it under vms, or leave it out"
	default:
		return vm.ID, ""
	}
}

func (d *differ) node(one *model.Node) {
	before := d.nodes[one.Name]
	if before == nil {
		d.report(schema.Ref(model.KindNode, one.Name), "", "no node of that name has joined",
			"a document does not create nodes: 'berth token add --for agent' makes the token that one joins with; or remove the entry")
		return
	}
	record := *before
	for i := range schema.Node {
		schema.Node[i].Copy(&record, one)
	}
	if !schema.Same(schema.Node, before, &record) {
		d.changed = append(d.changed, Change{Action: Modify, Kind: model.KindNode, Name: one.Name, Node: &record, Revision: before.Revision})
	}
}

// dropped takes the values of keys that a cluster declares no longer from the nodes that the document does not name.
func (d *differ) dropped() {
	for _, change := range d.changed {
		if change.Kind != model.KindCluster {
			continue
		}
		for _, node := range withoutUndeclared(d.now, change.Resource) {
			if !d.doc.Names(model.KindNode, node.Name) {
				d.changed = append(d.changed, Change{
					Action: Modify, Kind: model.KindNode, Name: node.Name, Node: &node, Revision: node.Revision,
				})
			}
		}
	}
}

// withoutUndeclared are the nodes of a cluster that set values of keys which it does not declare, without these.
func withoutUndeclared(now State, record *model.Resource) []model.Node {
	var changed []model.Node
	for _, node := range now.Nodes {
		if node.Cluster != record.Name {
			continue
		}
		keys := maps.Clone(node.Keys)
		maps.DeleteFunc(keys, func(name string, _ float64) bool {
			_, declared := record.NodeKey(name)
			return !declared
		})
		if len(keys) != len(node.Keys) {
			node.Keys = nilIfEmpty(keys)
			changed = append(changed, node)
		}
	}
	return changed
}

func (d *differ) vm(one *document.VM) {
	subject := schema.Ref(model.KindVM, one.Name)
	before := d.vms[one.Name]
	record := model.VM{ID: provisional + subject, Name: one.Name, Desired: model.Stopped}
	if before != nil {
		record = *before
	}
	if one.UUID != "" {
		if before != nil && before.ID != one.UUID {
			d.report(subject, "xml", fmt.Sprintf("its XML says <uuid> %s, it has %s", one.UUID, before.ID), "correct or leave out <uuid>")
			return
		}
		if other, taken := first(d.now.VMs, func(v *model.VM) bool { return v.ID == one.UUID }); taken && other.Name != one.Name {
			d.report(subject, "xml", fmt.Sprintf("its XML says <uuid> %s, which vm/%s has", one.UUID, other.Name), "leave out <uuid>")
			return
		}
		record.ID = one.UUID
	}
	if err := model.ValidateSpec(one.Spec); err != nil {
		d.problems = append(d.problems, schema.ProblemOf(subject, settingOf(err), err))
	}
	d.vmIDs[one.Name] = record.ID
	for i := range schema.VM {
		f := &schema.VM[i]
		f.Copy(&record, &one.VM)
		f.Relink(&record, func(kind model.Kind, name string) string { return d.linkOfVM(subject, f.Name, kind, name) })
	}
	record.Preferred = slices.DeleteFunc(record.Preferred, func(id string) bool { return id == unresolved })
	slices.Sort(record.Preferred)
	switch change := (Change{Kind: model.KindVM, Name: one.Name, VM: &record}); {
	case before == nil:
		change.Action = Create
		d.created = append(d.created, change)
	case !schema.Same(schema.VM, before, &record):
		change.Action, change.Revision = Modify, before.Revision
		d.changed = append(d.changed, change)
	}
}

// linkOfVM finds what a VM of the document names: a resource, a node, or a place as kind/name.
func (d *differ) linkOfVM(subject, field string, kind model.Kind, name string) string {
	switch kind {
	case "":
		place, name, _ := strings.Cut(name, "/")
		return d.link(subject, place, model.Kind(place), name)
	case model.KindNode:
		if node := d.nodes[name]; node != nil {
			return node.ID
		}
		d.report(subject, field, fmt.Sprintf("%s, which it prefers, does not exist", schema.Ref(model.KindNode, name)),
			"correct the name, or leave it out")
		return unresolved
	default:
		return d.link(subject, field, kind, name)
	}
}

// prune deletes what the document does not name: what links to others before them.
func (d *differ) prune() {
	for i := range d.now.VMs {
		vm := &d.now.VMs[i]
		if !d.named(model.KindVM, vm.Name) {
			d.deleted = append(d.deleted, Change{Action: Delete, Kind: model.KindVM, Name: vm.Name, DeleteID: vm.ID, Revision: vm.Revision})
		}
	}
	for _, form := range slices.Backward(schema.Forms()) {
		for i := range d.now.Resources {
			if r := &d.now.Resources[i]; r.Kind == form.Kind && !d.named(r.Kind, r.Name) {
				d.deleted = append(d.deleted, Change{Action: Delete, Kind: r.Kind, Name: r.Name, DeleteID: r.ID, Revision: r.Revision})
			}
		}
	}
}

func (d *differ) named(kind model.Kind, name string) bool {
	return d.doc.Names(kind, name)
}
