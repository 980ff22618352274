package document

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/domxml"
	"berth/shared/units"
)

// node reads what a document says of a node.
func (p *parser) node(node *yaml.Node) {
	name, fields, ok := p.named(model.KindNode, node, schema.Names(schema.Node)...)
	if !ok {
		return
	}
	subject := schema.Ref(model.KindNode, name)
	one := model.Node{Name: name, Cluster: model.DefaultCluster}
	readFields(p, schema.Node, model.KindNode, fields, subject, &one)
	if err := model.ValidateSettings(one.Settings); err != nil {
		p.invalid(node, subject, err)
	}
	p.document.Nodes = append(p.document.Nodes, one)
}

// vm reads what a document says of a VM.
func (p *parser) vm(node *yaml.Node) {
	name, fields, ok := p.named(model.KindVM, node, schema.Names(schema.VM)...)
	if !ok {
		return
	}
	subject := schema.Ref(model.KindVM, name)
	one := VM{VM: model.VM{Name: name}}
	readFields(p, schema.VM, model.KindVM, fields, subject, &one.VM)
	if one.Spec.XML != "" {
		if !p.describedByXML(fields["xml"], &one) {
			return
		}
	} else if fields["memory"] == nil || fields["vcpus"] == nil {
		p.report(node, subject, "memory and vcpus are missing", "say how large it is, for instance memory: 2G and vcpus: 2")
		return
	}
	p.document.VMs = append(p.document.VMs, one)
}

// readFields reads all fields of a VM or a node. What is left out stays as the record has it.
func readFields[R any](
	p *parser, table []schema.Field[R], kind model.Kind, fields map[string]*yaml.Node, subject string, into *R,
) {
	for i := range table {
		f := &table[i]
		node := fields[f.Name]
		switch at := f.At(into).(type) {
		case *schema.Place:
			p.place(fields, subject, at)
		case schema.Disks:
			for _, item := range p.list(node, subject, f.Name) {
				p.disk(item, subject, at)
			}
		case *[]model.Key:
			*at = p.keys(node, kind, subject)
		case *map[string]float64:
			*at = p.figures(node, subject)
		case *[]string:
			*at = readList(p, f, node, subject)
		default:
			readValue(p, f, node, subject, at)
		}
	}
}

// readValue reads a field that has one value.
func readValue[R any](p *parser, f *schema.Field[R], node *yaml.Node, subject string, at any) {
	if node == nil {
		return
	}
	switch at := at.(type) {
	case *string:
		if text, ok := p.text(node, subject, f.Name); ok {
			taken, err := f.Take(text)
			if err != nil {
				p.invalid(node, subject, err)
			}
			*at = taken
		}
	case *bool:
		*at = p.truth(node, subject, f.Name)
	case *int:
		*at, _ = p.whole(node, subject, f.Name)
	case *units.Bytes:
		*at, _ = p.size(node, subject, f.Name)
	case **float64:
		if value, ok := p.number(node, subject, f.Name); ok {
			*at = &value
		}
	case **units.Bytes:
		if value, ok := p.size(node, subject, f.Name); ok {
			*at = &value
		}
	}
}

// readList reads a list of names or words. Words are put in the order in which they are stored.
func readList[R any](p *parser, f *schema.Field[R], node *yaml.Node, subject string) []string {
	if f.To == model.KindNode {
		return p.once(node, subject, f.Name)
	}
	names := p.names(node, subject, f.Name)
	if f.Check != nil {
		if err := f.Check(names); err != nil {
			p.invalid(node, subject, err)
		}
		slices.Sort(names)
	}
	return names
}

// place reads the zone, the pod or the cluster that a VM is to run in.
func (p *parser) place(fields map[string]*yaml.Node, subject string, at *schema.Place) {
	for _, kind := range schema.Places {
		text, ok := p.text(fields[kind], subject, kind)
		switch {
		case !ok:
		case *at != "":
			before, _, _ := strings.Cut(string(*at), "/")
			p.report(fields[kind], subject, fmt.Sprintf("it names a %s and a %s: it runs in one of them", before, kind),
				"name one and leave out the other")
		default:
			*at = schema.Place(schema.Ref(model.Kind(kind), text))
		}
	}
}

// figures reads the values that a node sets of the keys that its cluster declares.
func (p *parser) figures(node *yaml.Node, subject string) map[string]float64 {
	if node == nil {
		return nil
	}
	values := make(map[string]float64)
	for _, f := range p.pairs(node, subject) {
		if value, ok := p.number(f.value, subject, "key "+f.name.Value); ok {
			values[f.name.Value] = value
			p.document.lines[lineKey(subject, schema.NodeKeyField(f.name.Value))] = f.name.Line
		}
	}
	if len(values) == 0 {
		return nil
	}
	return values
}

func (p *parser) names(node *yaml.Node, subject, field string) []string {
	var names []string
	for _, item := range p.list(node, subject, field) {
		if name, ok := p.text(item, subject, field); ok {
			names = append(names, name)
		}
	}
	return names
}

// disk reads a disk: the name of one, or a file. Linked disks are attached first, so they are written first.
func (p *parser) disk(item *yaml.Node, subject string, disks schema.Disks) {
	if item.Kind != yaml.MappingNode {
		name, ok := p.text(item, subject, "disks")
		if !ok {
			return
		}
		if len(*disks.Files) > 0 {
			p.report(item, subject, "the disk "+name+" is written after a plain file, and attached before it",
				"write the names of disks first, then the files")
		}
		*disks.Linked = append(*disks.Linked, name)
		return
	}
	fields := p.mapping(item, subject, "path", "format", "bus", "read_only")
	disk := model.Disk{Bus: schema.DefaultBus, ReadOnly: p.truth(fields["read_only"], subject, "read_only")}
	disk.Path, _ = p.text(fields["path"], subject, "path")
	disk.Format, _ = p.text(fields["format"], subject, "format")
	if bus, ok := p.text(fields["bus"], subject, "bus"); ok {
		disk.Bus = bus
	}
	*disks.Files = append(*disks.Files, disk)
}

// describedByXML takes the VM's size from its XML, and its ID if the XML has one.
func (p *parser) describedByXML(node *yaml.Node, one *VM) bool {
	subject := schema.Ref(model.KindVM, one.Name)
	info, err := domxml.Parse(one.Spec.XML)
	if err != nil {
		p.report(node, subject, "xml: "+err.Error(), "")
		return false
	}
	memory := units.Bytes(info.MemoryBytes)
	switch {
	case info.Name != "" && info.Name != one.Name:
		p.report(node, subject, fmt.Sprintf("its XML names it %q", info.Name), "make the names equal or leave out <name>")
	case one.Spec.Memory != 0 && one.Spec.Memory != memory:
		p.report(node, subject, fmt.Sprintf("its XML gives it %s of memory, the document %s", memory, one.Spec.Memory), "leave out memory")
	case one.Spec.VCPUs != 0 && one.Spec.VCPUs != info.VCPUs:
		p.report(node, subject, fmt.Sprintf("its XML gives it %d vCPUs, the document %d", info.VCPUs, one.Spec.VCPUs), "leave out vcpus")
	}
	one.UUID, one.Spec.Memory, one.Spec.VCPUs = strings.ToLower(info.UUID), memory, info.VCPUs
	return true
}
