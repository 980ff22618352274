package estate

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/yamlnode"
	"berth/shared/units"
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
	root := yamlnode.Mapping()
	if format {
		root.Set("format", yamlnode.Word(document.Format))
	}
	for _, form := range schema.Forms() {
		var items []*yaml.Node
		for _, r := range byName(now.Resources, func(r *model.Resource) string { return r.Name }) {
			if r.Kind == form.Kind {
				items = append(items, e.resource(form, r))
			}
		}
		root.List(form.Plural, items)
	}
	var nodes, vms []*yaml.Node
	for _, n := range byName(now.Nodes, func(n *model.Node) string { return n.Name }) {
		nodes = append(nodes, e.node(n))
	}
	for _, vm := range byName(now.VMs, func(v *model.VM) string { return v.Name }) {
		vms = append(vms, e.vm(vm))
	}
	root.List("nodes", nodes)
	root.List("vms", vms)
	return root.Node()
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
		items[i] = yamlnode.Word(text)
	}
	return items
}

func (e *exporter) resource(form schema.Form, r *model.Resource) *yaml.Node {
	m := yamlnode.Mapping()
	m.Set("name", yamlnode.Word(r.Name))
	for _, link := range form.Links {
		if id := r.Links[link.Name]; id != "" {
			m.Set(link.Name, yamlnode.Word(e.nameOf(id)))
		}
	}
	for _, setting := range form.Settings {
		if value, set := r.Settings[setting.Name]; set {
			m.Set(setting.Name, yamlnode.Scalar(schema.SettingText(setting, value)))
		}
	}
	e.lists(m, form, r)
	if form.HasNodeKeys {
		m.List("node_keys", nodeKeyItems(r.NodeKeys))
	}
	m.List("keys", keyItems(schema.SpelledOut(r.Kind, r.Keys)))
	return document.AsSpelled(r, m.Node())
}

func (e *exporter) lists(m *yamlnode.Fields, form schema.Form, r *model.Resource) {
	for _, members := range form.Members {
		m.List(members.Name, e.memberNames(r.Members[members.Name]))
	}
	for _, list := range form.Lists {
		if !list.Pairs {
			m.List(list.Name, words(r.Lists[list.Name]))
			continue
		}
		pairs := yamlnode.Mapping()
		for _, pair := range r.Lists[list.Name] {
			name, value := schema.CutPair(pair)
			pairs.Set(name, yamlnode.Bare(schema.Figure(value)))
		}
		if !pairs.Empty() {
			m.Set(list.Name, pairs.Flow())
		}
	}
}

func nodeKeyItems(keys []model.NodeKey) []*yaml.Node {
	keys = slices.Clone(keys)
	schema.SortNodeKeys(keys)
	var items []*yaml.Node
	for _, key := range keys {
		m := yamlnode.Mapping()
		m.Set("name", yamlnode.Word(key.Name))
		if key.Default != 0 {
			m.Set("default", yamlnode.Bare(schema.Figure(key.Default)))
		}
		if key.Sticky {
			m.Set("sticky", yamlnode.Bare("true"))
			m.Set("weight", yamlnode.Bare(schema.Figure(key.Weight)))
		}
		items = append(items, m.Flow())
	}
	return items
}

func keyItems(keys []model.Key) []*yaml.Node {
	keys = slices.Clone(keys)
	schema.SortKeys(keys)
	var items []*yaml.Node
	for _, key := range keys {
		m := yamlnode.Mapping()
		m.Set("name", yamlnode.Word(key.Name))
		m.Set("value", yamlnode.Bare(schema.Figure(key.Value)))
		if key.Weight != 0 {
			m.Set("weight", yamlnode.Bare(schema.Figure(key.Weight)))
		}
		if key.Class != model.SystemKey {
			m.Set("class", yamlnode.Word(string(key.Class)))
		}
		items = append(items, m.Flow())
	}
	return items
}

func (e *exporter) node(n *model.Node) *yaml.Node {
	m := yamlnode.Mapping()
	m.Set("name", yamlnode.Word(n.Name))
	if e.live && n.Maintenance {
		m.Comment(strings.TrimSuffix("in maintenance: "+n.MaintenanceReason, ": "))
	}
	writeFields(e, m, schema.Node, n)
	return m.Node()
}

func (e *exporter) vm(vm *model.VM) *yaml.Node {
	m := yamlnode.Mapping()
	m.Set("name", yamlnode.Word(vm.Name))
	if e.live {
		m.Comment(e.whereabouts(vm))
	}
	if vm.Spec.XML == "" {
		writeFields(e, m, schema.VM, vm)
		return m.Node()
	}
	sized := *vm
	sized.Spec.Memory, sized.Spec.VCPUs = 0, 0 // the XML says them
	writeFields(e, m, schema.VM, &sized)
	return m.Node()
}

// writeFields writes those of a record's fields that are set.
func writeFields[R any](e *exporter, m *yamlnode.Fields, table []schema.Field[R], r *R) {
	for i := range table {
		f := &table[i]
		switch at := f.At(r).(type) {
		case *string:
			switch {
			case *at == "":
			case f.To != "":
				m.Set(f.Name, yamlnode.Word(e.nameOf(*at)))
			default:
				m.Set(f.Name, yamlnode.Word(*at))
			}
		case *schema.Place:
			if kind, name := e.place(string(*at)); name != "" {
				m.Set(string(kind), yamlnode.Word(name))
			}
		case *[]string:
			switch f.To {
			case "":
				m.List(f.Name, words(*at))
			case model.KindNode:
				m.List(f.Name, e.memberNames(*at))
			default:
				m.List(f.Name, e.names(*at))
			}
		case schema.Disks:
			m.List(f.Name, append(e.names(*at.Linked), diskItems(*at.Files)...))
		case *[]model.Key:
			m.List(f.Name, keyItems(*at))
		case *map[string]float64:
			if len(*at) > 0 {
				m.Set(f.Name, figureItems(*at))
			}
		default:
			if text := plainText(at); text != "" {
				m.Set(f.Name, yamlnode.Bare(text))
			}
		}
	}
}

// plainText is a number, a size or a truth value as documents have it; empty if it is not set.
func plainText(at any) string {
	switch at := at.(type) {
	case *bool:
		if *at {
			return "true"
		}
	case *int:
		if *at != 0 {
			return strconv.Itoa(*at)
		}
	case *units.Bytes:
		if *at != 0 {
			return schema.Exact(*at)
		}
	case **float64:
		if *at != nil {
			return schema.Figure(**at)
		}
	case **units.Bytes:
		if *at != nil {
			return schema.Exact(**at)
		}
	}
	return ""
}

func diskItems(disks []model.Disk) []*yaml.Node {
	var items []*yaml.Node
	for _, disk := range disks {
		item := yamlnode.Mapping()
		item.Set("path", yamlnode.Word(disk.Path))
		item.Set("format", yamlnode.Word(disk.Format))
		item.Set("bus", yamlnode.Word(disk.Bus))
		if disk.ReadOnly {
			item.Set("read_only", yamlnode.Bare("true"))
		}
		items = append(items, item.Flow())
	}
	return items
}

func figureItems(figures map[string]float64) *yaml.Node {
	values := yamlnode.Mapping()
	for _, name := range slices.Sorted(maps.Keys(figures)) {
		values.Set(name, yamlnode.Bare(schema.Figure(figures[name])))
	}
	return values.Flow()
}

// place is what a VM is within; no name: nothing.
func (e *exporter) place(id string) (model.Kind, string) {
	if r := e.index.byID[id]; r != nil {
		return r.Kind, r.Name
	}
	return model.KindCluster, id // the default one has no record, and its name for an ID
}

// whereabouts is where a VM is, for people.
func (e *exporter) whereabouts(vm *model.VM) string {
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
		items = append(items, yamlnode.Word(e.nameOf(id)))
	}
	return items
}
