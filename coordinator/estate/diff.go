package estate

import (
	"fmt"
	"maps"
	"slices"

	"berth/coordinator/cluster"
)

// Diff is what has to change so that a state is as a document says. An entry of the document says all of what it names: what
// it leaves out is unset. What the document does not name stays as it is or, with prune, goes; nodes always stay. With any
// problem there is no plan: an estate is applied whole or not at all.
//
// VMs are created stopped, and none that runs is stopped: what changes of it takes effect at its next start.
func Diff(now State, doc *Document, prune bool) (Plan, []Problem) {
	d := &differ{
		now: now, doc: doc, prunes: prune, index: newIndex(&now), declared: make(map[string]string), vmIDs: make(map[string]string),
		vms: make(map[string]*cluster.VM, len(now.VMs)), nodes: make(map[string]*cluster.Node, len(now.Nodes)),
	}
	for i := range now.VMs {
		d.vms[now.VMs[i].Name] = &now.VMs[i]
	}
	for i := range now.Nodes {
		d.nodes[now.Nodes[i].Name] = &now.Nodes[i]
	}
	for i := range doc.entries {
		one := &doc.entries[i]
		d.declared[ref(one.kind, one.name)] = d.idOf(one.kind, one.name)
	}
	for i := range doc.entries {
		if one := &doc.entries[i]; !one.hasMembers() {
			d.resource(one)
		}
	}
	for i := range doc.nodes {
		d.node(&doc.nodes[i])
	}
	d.dropped()
	for i := range doc.vms {
		d.vm(&doc.vms[i])
	}
	for i := range doc.entries { // members have their IDs by now
		if one := &doc.entries[i]; one.hasMembers() {
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
			d.problems[i] = doc.locate(d.problems[i])
		}
		return Plan{}, sorted(d.problems)
	}
	d.describe(&plan)
	return plan, nil
}

type differ struct {
	now      State
	doc      *Document
	prunes   bool
	index    *index
	vms      map[string]*cluster.VM   // by name
	nodes    map[string]*cluster.Node // by name
	declared map[string]string        // IDs of the document's resources, by subject
	vmIDs    map[string]string        // IDs of the document's VMs, by name
	problems []Problem

	created, changed, deleted []Change
}

func (d *differ) report(subject, field, message, next string) {
	d.problems = append(d.problems, Problem{Subject: subject, Field: field, Message: message, Next: next})
}

// idOf is the ID that a resource has or, until the plan is assigned IDs, will be known by.
func (d *differ) idOf(kind cluster.Kind, name string) string {
	if record, there := d.index.ResourceByName(kind, name); there {
		return record.ID
	}
	if id, implied := impliedID(kind, name); implied {
		return id
	}
	return provisional + ref(kind, name)
}

// link finds what an entry names.
func (d *differ) link(subject, field string, kind cluster.Kind, name string) string {
	if id, declared := d.declared[ref(kind, name)]; declared {
		return id
	}
	if record, there := d.index.ResourceByName(kind, name); there {
		return record.ID
	}
	if id, implied := impliedID(kind, name); implied {
		return id
	}
	form, _ := FormOf(kind)
	message := fmt.Sprintf("the %s %s does not exist", kind, name)
	for _, other := range forms {
		_, declared := d.declared[ref(other.Kind, name)]
		if _, there := d.index.ResourceByName(other.Kind, name); declared || there {
			message += ", " + ref(other.Kind, name) + " is none"
			break
		}
	}
	d.report(subject, field, message, "declare it under "+form.Plural+", or correct the name")
	return unresolved
}

func (d *differ) resource(one *entry) {
	subject := ref(one.kind, one.name)
	if _, builtIn := Builtin(one.kind, one.name); builtIn {
		d.report(subject, "", "a built-in one has the name", "leave it out: it is there without being declared")
		return
	}
	record, there := d.index.ResourceByName(one.kind, one.name)
	before := record
	record.ID, record.Kind, record.Name = d.declared[subject], one.kind, one.name
	record.Settings, record.NodeKeys, record.Keys = nilIfEmpty(one.settings), one.nodeKeys, one.keys
	form, _ := FormOf(one.kind)
	links := make(map[string]string, len(one.links))
	for _, link := range form.Links {
		if name, set := one.links[link.Name]; set {
			links[link.Name] = d.link(subject, link.Name, link.To, name)
		}
	}
	record.Links = canonicalLinks(one.kind, links)
	record.Lists, record.Members = nilIfEmpty(one.lists), d.members(subject, form, one)
	switch change := (Change{Kind: one.kind, Name: one.name, Resource: &record, Revision: before.Revision}); {
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
func canonicalLinks(kind cluster.Kind, links map[string]string) map[string]string {
	if links[LinkCluster] == cluster.DefaultCluster && kind != cluster.KindPool {
		delete(links, LinkCluster)
	}
	return nilIfEmpty(links)
}

func nilIfEmpty[V any](m map[string]V) map[string]V {
	if len(m) == 0 {
		return nil
	}
	return m
}

func sameResource(a, b *cluster.Resource) bool {
	return maps.Equal(canonicalLinks(a.Kind, maps.Clone(a.Links)), canonicalLinks(b.Kind, maps.Clone(b.Links))) &&
		maps.Equal(a.Settings, b.Settings) && slices.Equal(a.NodeKeys, b.NodeKeys) && slices.Equal(a.Keys, b.Keys) &&
		maps.EqualFunc(a.Lists, b.Lists, slices.Equal) && maps.EqualFunc(a.Members, b.Members, slices.Equal)
}

// members are the IDs of what an entry has in its lists. What is new is known by its name until the plan is assigned IDs.
func (d *differ) members(subject string, form Form, one *entry) map[string][]string {
	members := make(map[string][]string, len(one.members))
	for _, list := range form.Members {
		var ids []string
		for _, name := range one.members[list.Name] {
			id, next := d.memberID(list.To, name)
			if next != "" {
				d.report(subject, list.Name, fmt.Sprintf("its member %s does not exist", ref(list.To, name)), next)
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
func (d *differ) memberID(kind cluster.Kind, name string) (id, next string) {
	if kind == cluster.KindNode {
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

func (d *differ) node(one *nodeEntry) {
	before := d.nodes[one.name]
	if before == nil {
		d.report(ref(cluster.KindNode, one.name), "", "no node of that name has joined",
			"a document does not create nodes: 'berth token create --for agent' makes the token that one joins with; or remove the entry")
		return
	}
	record := *before
	record.Cluster, record.Settings, record.Keys = one.cluster, one.settings, one.keys
	record.Labels, record.Management, record.Unbalanced = one.labels, one.management, one.unbalanced
	if !sameNode(before, &record) {
		d.changed = append(d.changed, Change{Action: Modify, Kind: cluster.KindNode, Name: one.name, Node: &record, Revision: before.Revision})
	}
}

func sameNode(a, b *cluster.Node) bool {
	return a.Cluster == b.Cluster && maps.Equal(a.Keys, b.Keys) && equalAt(a.Settings.RAMRatio, b.Settings.RAMRatio) &&
		equalAt(a.Settings.CPURatio, b.Settings.CPURatio) && equalAt(a.Settings.Overhead, b.Settings.Overhead) &&
		slices.Equal(a.Labels, b.Labels) && a.Management == b.Management && a.Unbalanced == b.Unbalanced
}

func equalAt[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// dropped takes the values of keys that a cluster declares no longer from the nodes that the document does not name.
func (d *differ) dropped() {
	for _, change := range d.changed {
		if change.Kind != cluster.KindCluster {
			continue
		}
		for _, node := range withoutUndeclared(d.now, change.Resource) {
			if _, named := d.doc.lines[lineKey(ref(cluster.KindNode, node.Name), "")]; !named {
				d.changed = append(d.changed, Change{
					Action: Modify, Kind: cluster.KindNode, Name: node.Name, Node: &node, Revision: node.Revision,
				})
			}
		}
	}
}

// withoutUndeclared are the nodes of a cluster that set values of keys which it does not declare, without these.
func withoutUndeclared(now State, record *cluster.Resource) []cluster.Node {
	var changed []cluster.Node
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

func (d *differ) vm(one *vmEntry) {
	subject := ref(cluster.KindVM, one.name)
	before := d.vms[one.name]
	record := cluster.VM{ID: provisional + subject, Name: one.name, Desired: cluster.Stopped}
	if before != nil {
		record = *before
	}
	if one.id != "" {
		if before != nil && before.ID != one.id {
			d.report(subject, "xml", fmt.Sprintf("its XML says <uuid> %s, it has %s", one.id, before.ID), "correct or leave out <uuid>")
			return
		}
		if other, taken := first(d.now.VMs, func(v *cluster.VM) bool { return v.ID == one.id }); taken && other.Name != one.name {
			d.report(subject, "xml", fmt.Sprintf("its XML says <uuid> %s, which vm/%s has", one.id, other.Name), "leave out <uuid>")
			return
		}
		record.ID = one.id
	}
	if err := cluster.ValidateSpec(one.spec); err != nil {
		d.problems = append(d.problems, problemOf(subject, settingOf(err), err))
	}
	d.vmIDs[one.name] = record.ID
	record.Spec, record.Keys = one.spec, one.keys
	record.Labels, record.Migration, record.Preferred, record.HA = one.labels, one.migration, d.preferred(subject, one), one.ha
	record.VDC, record.Offer, record.Image = "", "", ""
	for _, link := range []struct {
		field string
		kind  cluster.Kind
		name  string
		into  *string
	}{
		{LinkVDC, cluster.KindVDC, one.vdc, &record.VDC},
		{LinkOffer, cluster.KindOffer, one.offer, &record.Offer},
		{LinkImage, cluster.KindImage, one.image, &record.Image},
	} {
		if link.name != "" {
			*link.into = d.link(subject, link.field, link.kind, link.name)
		}
	}
	record.Within = ""
	if one.within.name != "" {
		record.Within = d.link(subject, string(one.within.kind), one.within.kind, one.within.name)
	}
	record.Disks = d.attached(subject, "disks", cluster.KindDisk, one.disks)
	record.NICs = d.attached(subject, "nics", cluster.KindNIC, one.nics)
	switch change := (Change{Kind: cluster.KindVM, Name: one.name, VM: &record}); {
	case before == nil:
		change.Action = Create
		d.created = append(d.created, change)
	case !sameVM(before, &record):
		change.Action, change.Revision = Modify, before.Revision
		d.changed = append(d.changed, change)
	}
}

func (d *differ) preferred(subject string, one *vmEntry) []string {
	var ids []string
	for _, name := range one.preferred {
		node := d.nodes[name]
		if node == nil {
			d.report(subject, fieldPreferred, fmt.Sprintf("%s, which it prefers, does not exist", ref(cluster.KindNode, name)),
				"correct the name, or leave it out")
			continue
		}
		ids = append(ids, node.ID)
	}
	slices.Sort(ids)
	return ids
}

func (d *differ) attached(subject, field string, kind cluster.Kind, names []string) []string {
	var ids []string
	for _, name := range names {
		ids = append(ids, d.link(subject, field, kind, name))
	}
	return ids
}

func sameVM(a, b *cluster.VM) bool {
	return a.VDC == b.VDC && a.Within == b.Within && a.Offer == b.Offer && a.Image == b.Image && slices.Equal(a.Disks, b.Disks) &&
		slices.Equal(a.NICs, b.NICs) && slices.Equal(a.Keys, b.Keys) && sameSpec(&a.Spec, &b.Spec) &&
		slices.Equal(a.Labels, b.Labels) && a.Migration == b.Migration && slices.Equal(a.Preferred, b.Preferred) && a.HA == b.HA
}

func sameSpec(a, b *cluster.VMSpec) bool {
	return a.Memory == b.Memory && a.VCPUs == b.VCPUs && a.Kernel == b.Kernel && a.Initrd == b.Initrd && a.Cmdline == b.Cmdline &&
		a.Machine == b.Machine && a.Firmware == b.Firmware && a.CPU == b.CPU && a.UserData == b.UserData &&
		a.XML == b.XML && slices.Equal(a.Disks, b.Disks) && slices.Equal(a.Networks, b.Networks)
}

// prune deletes what the document does not name: what links to others before them.
func (d *differ) prune() {
	for i := range d.now.VMs {
		vm := &d.now.VMs[i]
		if !d.named(cluster.KindVM, vm.Name) {
			d.deleted = append(d.deleted, Change{Action: Delete, Kind: cluster.KindVM, Name: vm.Name, DeleteID: vm.ID, Revision: vm.Revision})
		}
	}
	for _, form := range slices.Backward(forms) {
		for i := range d.now.Resources {
			if r := &d.now.Resources[i]; r.Kind == form.Kind && !d.named(r.Kind, r.Name) {
				d.deleted = append(d.deleted, Change{Action: Delete, Kind: r.Kind, Name: r.Name, DeleteID: r.ID, Revision: r.Revision})
			}
		}
	}
}

func (d *differ) named(kind cluster.Kind, name string) bool {
	_, named := d.doc.lines[lineKey(ref(kind, name), "")]
	return named
}
