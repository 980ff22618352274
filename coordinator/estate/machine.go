package estate

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/cluster"
	"berth/shared/domxml"
	"berth/shared/units"
)

// node reads what a document says of a node.
func (p *parser) node(node *yaml.Node) {
	name, fields, ok := p.named(cluster.KindNode, node, LinkCluster,
		cluster.SettingRAMRatio, cluster.SettingCPURatio, cluster.SettingOverhead, "keys", fieldLabels, fieldManagement, fieldUnbalanced)
	if !ok {
		return
	}
	subject := ref(cluster.KindNode, name)
	one := nodeEntry{name: name, cluster: cluster.DefaultCluster}
	if text, ok := p.text(fields[LinkCluster], subject, LinkCluster); ok {
		one.cluster = text
	}
	if f, ok := p.number(fields[cluster.SettingRAMRatio], subject, cluster.SettingRAMRatio); ok {
		one.settings.RAMRatio = &f
	}
	if f, ok := p.number(fields[cluster.SettingCPURatio], subject, cluster.SettingCPURatio); ok {
		one.settings.CPURatio = &f
	}
	if size, ok := p.size(fields[cluster.SettingOverhead], subject, cluster.SettingOverhead); ok {
		one.settings.Overhead = &size
	}
	if err := cluster.ValidateSettings(one.settings); err != nil {
		p.invalid(node, subject, err)
	}
	if values := fields["keys"]; values != nil {
		for _, f := range p.pairs(values, subject) {
			value, ok := p.number(f.value, subject, "key "+f.name.Value)
			if !ok {
				continue
			}
			if one.keys == nil {
				one.keys = make(map[string]float64)
			}
			one.keys[f.name.Value] = value
			p.document.lines[lineKey(subject, nodeKeyField(f.name.Value))] = f.name.Line
		}
	}
	one.labels = p.labels(fields[fieldLabels], subject)
	one.management = p.truth(fields[fieldManagement], subject, fieldManagement)
	one.unbalanced = p.truth(fields[fieldUnbalanced], subject, fieldUnbalanced)
	p.document.nodes = append(p.document.nodes, one)
}

// vm reads what a document says of a VM.
func (p *parser) vm(node *yaml.Node) {
	name, fields, ok := p.named(cluster.KindVM, node, LinkVDC, LinkZone, LinkPod, LinkCluster, LinkOffer, LinkImage, "memory", "vcpus",
		"machine", "firmware", "cpu", "disks", "nics", "networks", "kernel", "initrd", "cmdline", fieldUserData, "xml", "keys",
		fieldLabels, fieldMigration, fieldHA, fieldPreferred)
	if !ok {
		return
	}
	subject := ref(cluster.KindVM, name)
	one := vmEntry{name: name}
	for _, plain := range []struct {
		field string
		into  *string
	}{
		{LinkVDC, &one.vdc},
		{LinkOffer, &one.offer},
		{LinkImage, &one.image},
		{"kernel", &one.spec.Kernel},
		{"initrd", &one.spec.Initrd},
		{"cmdline", &one.spec.Cmdline},
		{"xml", &one.spec.XML},
		{"machine", &one.spec.Machine},
		{"firmware", &one.spec.Firmware},
		{"cpu", &one.spec.CPU},
		{fieldUserData, &one.spec.UserData},
	} {
		*plain.into, _ = p.text(fields[plain.field], subject, plain.field)
	}
	for _, link := range places {
		text, ok := p.text(fields[link.Name], subject, link.Name)
		switch {
		case !ok:
		case one.within.name != "":
			p.report(fields[link.Name], subject, fmt.Sprintf("it names a %s and a %s: it runs in one of them", one.within.kind, link.Name),
				"name one and leave out the other")
		default:
			one.within = placeName{link.To, text}
		}
	}
	one.spec.Memory, _ = p.size(fields["memory"], subject, "memory")
	one.spec.VCPUs, _ = p.whole(fields["vcpus"], subject, "vcpus")
	for _, item := range p.list(fields["disks"], subject, "disks") {
		p.disk(item, subject, &one)
	}
	one.nics = p.names(fields["nics"], subject, "nics")
	one.spec.Networks = p.names(fields["networks"], subject, "networks")
	one.keys = p.keys(fields["keys"], cluster.KindVM, subject)
	one.labels = p.labels(fields[fieldLabels], subject)
	if text, ok := p.text(fields[fieldMigration], subject, fieldMigration); ok {
		migration, err := ParseMigration(text)
		if err != nil {
			p.invalid(fields[fieldMigration], subject, err)
		}
		one.migration = migration
	}
	one.ha = p.truth(fields[fieldHA], subject, fieldHA)
	one.preferred = p.once(fields[fieldPreferred], subject, fieldPreferred)
	if one.spec.XML != "" {
		if !p.describedByXML(fields["xml"], &one) {
			return
		}
	} else if fields["memory"] == nil || fields["vcpus"] == nil {
		p.report(node, subject, "memory and vcpus are missing", "say how large it is, for instance memory: 2G and vcpus: 2")
		return
	}
	p.document.vms = append(p.document.vms, one)
}

// labels reads labels and puts them in the order in which they are stored.
func (p *parser) labels(node *yaml.Node, subject string) []string {
	labels := p.names(node, subject, fieldLabels)
	if err := cluster.ValidateLabels(labels); err != nil {
		p.invalid(node, subject, err)
	}
	slices.Sort(labels)
	return labels
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
func (p *parser) disk(item *yaml.Node, subject string, one *vmEntry) {
	if item.Kind != yaml.MappingNode {
		name, ok := p.text(item, subject, "disks")
		if !ok {
			return
		}
		if len(one.spec.Disks) > 0 {
			p.report(item, subject, "the disk "+name+" is written after a plain file, and attached before it",
				"write the names of disks first, then the files")
		}
		one.disks = append(one.disks, name)
		return
	}
	fields := p.mapping(item, subject, "path", "format", "bus", "read_only")
	disk := cluster.Disk{Bus: defaultBus, ReadOnly: p.truth(fields["read_only"], subject, "read_only")}
	disk.Path, _ = p.text(fields["path"], subject, "path")
	disk.Format, _ = p.text(fields["format"], subject, "format")
	if bus, ok := p.text(fields["bus"], subject, "bus"); ok {
		disk.Bus = bus
	}
	one.spec.Disks = append(one.spec.Disks, disk)
}

// describedByXML takes the VM's size from its XML, and its ID if the XML has one.
func (p *parser) describedByXML(node *yaml.Node, one *vmEntry) bool {
	subject := ref(cluster.KindVM, one.name)
	info, err := domxml.Parse(one.spec.XML)
	if err != nil {
		p.report(node, subject, "xml: "+err.Error(), "")
		return false
	}
	memory := units.Bytes(info.MemoryBytes)
	switch {
	case info.Name != "" && info.Name != one.name:
		p.report(node, subject, fmt.Sprintf("its XML names it %q", info.Name), "make the names equal or leave out <name>")
	case one.spec.Memory != 0 && one.spec.Memory != memory:
		p.report(node, subject, fmt.Sprintf("its XML gives it %s of memory, the document %s", memory, one.spec.Memory), "leave out memory")
	case one.spec.VCPUs != 0 && one.spec.VCPUs != info.VCPUs:
		p.report(node, subject, fmt.Sprintf("its XML gives it %d vCPUs, the document %d", info.VCPUs, one.spec.VCPUs), "leave out vcpus")
	}
	one.id, one.spec.Memory, one.spec.VCPUs = strings.ToLower(info.UUID), memory, info.VCPUs
	return true
}

// nodeKeyField is how problems and differences call the value that a node sets of a key.
func nodeKeyField(name string) string { return "key " + name }
