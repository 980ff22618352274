package estate

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/cluster"
)

// Export writes a state as a document, in an order that does not depend on the state's. Applied to the state it changes
// nothing. With live it tells in comments what cannot be declared: where each VM is, and which nodes are in maintenance.
func Export(now State, live bool) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(&yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{ExportNode(now, live, true)}}); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// ExportNode is the document as a part of another one; without its format if that is not wanted.
func ExportNode(now State, live, format bool) *yaml.Node {
	e := &exporter{now: &now, index: newIndex(&now), live: live}
	root := mapping()
	if format {
		root.set("format", word(Format))
	}
	for _, form := range forms {
		var items []*yaml.Node
		for _, r := range byName(now.Resources, func(r *cluster.Resource) string { return r.Name }) {
			if r.Kind == form.Kind {
				items = append(items, e.resource(form, r))
			}
		}
		root.list(form.Plural, items)
	}
	var nodes, vms []*yaml.Node
	for _, n := range byName(now.Nodes, func(n *cluster.Node) string { return n.Name }) {
		nodes = append(nodes, e.node(n))
	}
	for _, vm := range byName(now.VMs, func(v *cluster.VM) string { return v.Name }) {
		vms = append(vms, e.vm(vm))
	}
	root.list("nodes", nodes)
	root.list("vms", vms)
	return root.node()
}

func byName[T any](all []T, name func(*T) string) []*T {
	ordered := make([]*T, len(all))
	for i := range all {
		ordered[i] = &all[i]
	}
	slices.SortFunc(ordered, func(a, b *T) int { return cmp.Compare(name(a), name(b)) })
	return ordered
}

type exporter struct {
	now   *State
	index *index
	live  bool

	members map[string]string // names of VMs and nodes by ID, once they are needed
}

// nameOf is the name of a resource; of one that is not there, its ID, so that the document is refused and tells.
func (e *exporter) nameOf(id string) string {
	if r := e.index.byID[id]; r != nil {
		return r.Name
	}
	if built, known := BuiltinByID(id); known {
		return built.Name
	}
	return id
}

// memberNames are the names of VMs or nodes, in their order; of what is not there, the ID.
func (e *exporter) memberNames(ids []string) []*yaml.Node {
	if len(ids) > 0 && e.members == nil {
		e.members = e.now.names()
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = cmp.Or(e.members[id], id)
	}
	slices.Sort(names)
	return words(names)
}

func words(texts []string) []*yaml.Node {
	items := make([]*yaml.Node, len(texts))
	for i, text := range texts {
		items[i] = word(text)
	}
	return items
}

func (e *exporter) resource(form Form, r *cluster.Resource) *yaml.Node {
	m := mapping()
	m.set("name", word(r.Name))
	for _, link := range form.Links {
		if id := r.Links[link.Name]; id != "" {
			m.set(link.Name, word(e.nameOf(id)))
		}
	}
	for _, setting := range form.Settings {
		if value, set := r.Settings[setting.Name]; set {
			m.set(setting.Name, scalar(SettingText(setting, value)))
		}
	}
	e.lists(m, form, r)
	if form.HasNodeKeys {
		m.list("node_keys", nodeKeyItems(r.NodeKeys))
	}
	items := keyItems(r.Keys)
	if form.Kind == cluster.KindCluster && len(items) == 0 {
		m.set("keys", &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}) // left out they would be the special keys
	}
	m.list("keys", items)
	return m.node()
}

func (e *exporter) lists(m *fields, form Form, r *cluster.Resource) {
	for _, members := range form.Members {
		m.list(members.Name, e.memberNames(r.Members[members.Name]))
	}
	for _, list := range form.Lists {
		if !list.Pairs {
			m.list(list.Name, words(r.Lists[list.Name]))
			continue
		}
		pairs := mapping()
		for _, pair := range r.Lists[list.Name] {
			name, value := CutPair(pair)
			pairs.set(name, bare(figure(value)))
		}
		if len(pairs.content) > 0 {
			m.set(list.Name, pairs.flow())
		}
	}
}

func nodeKeyItems(keys []cluster.NodeKey) []*yaml.Node {
	keys = slices.Clone(keys)
	sortNodeKeys(keys)
	var items []*yaml.Node
	for _, key := range keys {
		m := mapping()
		m.set("name", word(key.Name))
		if key.Default != 0 {
			m.set("default", bare(figure(key.Default)))
		}
		if key.Sticky {
			m.set("sticky", bare("true"))
			m.set("weight", bare(figure(key.Weight)))
		}
		items = append(items, m.flow())
	}
	return items
}

func keyItems(keys []cluster.Key) []*yaml.Node {
	keys = slices.Clone(keys)
	sortKeys(keys)
	var items []*yaml.Node
	for _, key := range keys {
		m := mapping()
		m.set("name", word(key.Name))
		m.set("value", bare(figure(key.Value)))
		if key.Weight != 0 {
			m.set("weight", bare(figure(key.Weight)))
		}
		if key.Class != cluster.SystemKey {
			m.set("class", word(string(key.Class)))
		}
		items = append(items, m.flow())
	}
	return items
}

func (e *exporter) node(n *cluster.Node) *yaml.Node {
	m := mapping()
	m.set("name", word(n.Name))
	if e.live && n.Maintenance {
		m.comment(strings.TrimSuffix("in maintenance: "+n.MaintenanceReason, ": "))
	}
	m.set(LinkCluster, word(n.Cluster))
	if n.Settings.RAMRatio != nil {
		m.set(cluster.SettingRAMRatio, bare(figure(*n.Settings.RAMRatio)))
	}
	if n.Settings.CPURatio != nil {
		m.set(cluster.SettingCPURatio, bare(figure(*n.Settings.CPURatio)))
	}
	if n.Settings.Overhead != nil {
		m.set(cluster.SettingOverhead, bare(exact(*n.Settings.Overhead)))
	}
	if len(n.Keys) > 0 {
		values := mapping()
		for _, name := range slices.Sorted(maps.Keys(n.Keys)) {
			values.set(name, bare(figure(n.Keys[name])))
		}
		m.set("keys", values.flow())
	}
	m.list(fieldLabels, words(n.Labels))
	if n.Management {
		m.set(fieldManagement, bare("true"))
	}
	if n.Unbalanced {
		m.set(fieldUnbalanced, bare("true"))
	}
	return m.node()
}

func (e *exporter) vm(vm *cluster.VM) *yaml.Node {
	m := mapping()
	m.set("name", word(vm.Name))
	if e.live {
		m.comment(e.whereabouts(vm))
	}
	for _, link := range []struct{ field, id string }{{LinkVDC, vm.VDC}, {LinkOffer, vm.Offer}, {LinkImage, vm.Image}} {
		if link.id != "" {
			m.set(link.field, word(e.nameOf(link.id)))
		}
	}
	if kind, name := e.place(vm.Within); name != "" {
		m.set(string(kind), word(name))
	}
	if vm.Spec.XML == "" {
		m.set("memory", bare(exact(vm.Spec.Memory)))
		m.set("vcpus", count(vm.Spec.VCPUs))
	}
	e.texts(m, [][2]string{{"machine", vm.Spec.Machine}, {"firmware", vm.Spec.Firmware}, {"cpu", vm.Spec.CPU}})
	disks := e.names(vm.Disks)
	for _, disk := range vm.Spec.Disks {
		item := mapping()
		item.set("path", word(disk.Path))
		item.set("format", word(disk.Format))
		item.set("bus", word(disk.Bus))
		if disk.ReadOnly {
			item.set("read_only", bare("true"))
		}
		disks = append(disks, item.flow())
	}
	m.list("disks", disks)
	m.list("nics", e.names(vm.NICs))
	var networks []*yaml.Node
	for _, network := range vm.Spec.Networks {
		networks = append(networks, word(network))
	}
	m.list("networks", networks)
	e.texts(m, [][2]string{
		{"kernel", vm.Spec.Kernel}, {"initrd", vm.Spec.Initrd}, {"cmdline", vm.Spec.Cmdline}, {fieldUserData, vm.Spec.UserData}, {"xml", vm.Spec.XML},
	})
	m.list("keys", keyItems(vm.Keys))
	m.list(fieldLabels, words(vm.Labels))
	if vm.Migration != cluster.MigrateAutomatic {
		m.set(fieldMigration, word(MigrationText(vm.Migration)))
	}
	if vm.HA {
		m.set(fieldHA, bare("true"))
	}
	m.list(fieldPreferred, e.memberNames(vm.Preferred))
	return m.node()
}

// place is what a VM is within; no name: nothing.
func (e *exporter) place(id string) (cluster.Kind, string) {
	if r := e.index.byID[id]; r != nil {
		return r.Kind, r.Name
	}
	return cluster.KindCluster, id // the default one has no record, and its name for an ID
}

// texts sets those of some fields that are not empty.
func (e *exporter) texts(m *fields, texts [][2]string) {
	for _, text := range texts {
		if text[1] != "" {
			m.set(text[0], word(text[1]))
		}
	}
}

// whereabouts is where a VM is, for people.
func (e *exporter) whereabouts(vm *cluster.VM) string {
	name := func(id string) string {
		if node := e.index.nodes[id]; node != nil {
			return node.Name
		}
		return id
	}
	switch {
	case vm.Holder != "":
		return string(vm.Desired) + " on " + name(vm.Holder)
	case vm.LastNode != "":
		return string(vm.Desired) + ", was on " + name(vm.LastNode)
	default:
		return string(vm.Desired)
	}
}

func (e *exporter) names(ids []string) []*yaml.Node {
	var items []*yaml.Node
	for _, id := range ids {
		items = append(items, word(e.nameOf(id)))
	}
	return items
}
