package estate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"berth/coordinator/cluster"
	"berth/shared/units"
)

// atNextStart is said of what changes of a VM that runs.
const atNextStart = "takes effect at the next start"

// describe fills in what the changes of a plan change, field by field.
func (d *differ) describe(plan *Plan) {
	names := d.now.names()
	for i := range d.doc.entries {
		one := &d.doc.entries[i]
		names[d.declared[ref(one.kind, one.name)]] = one.name
	}
	for name, id := range d.vmIDs {
		names[id] = name
	}
	for i := range plan.Changes {
		change := &plan.Changes[i]
		switch {
		case change.Resource != nil:
			before, _ := d.index.ResourceByName(change.Kind, change.Name)
			change.Fields = resourceFields(names, &before, change.Resource)
		case change.Node != nil:
			change.Fields = nodeFields(d.nodes[change.Name], change.Node)
		case change.VM != nil:
			before := d.vms[change.Name]
			if before == nil {
				before = &cluster.VM{}
			}
			change.Fields = vmFields(names, before, change.VM)
		}
	}
}

// fieldList collects the fields that differ.
type fieldList []FieldChange

func (l *fieldList) add(field, from, to string) {
	if from != to {
		*l = append(*l, FieldChange{Field: field, From: from, To: to})
	}
}

func resourceFields(names map[string]string, a, b *cluster.Resource) []FieldChange {
	var fields fieldList
	form, _ := FormOf(b.Kind)
	for _, link := range form.Links {
		fields.add(link.Name, names[a.Links[link.Name]], names[b.Links[link.Name]])
	}
	for _, setting := range form.Settings {
		from, to := a.Settings[setting.Name], b.Settings[setting.Name]
		if from == to {
			continue
		}
		side := func(value string) string {
			switch {
			case value != "":
				return SettingText(setting, value)
			case setting.Default != "" && a.ID != "":
				return setting.Default + " (default)"
			default:
				return ""
			}
		}
		fields = append(fields, FieldChange{Field: setting.Name, From: side(from), To: side(to)})
	}
	for _, members := range form.Members {
		fields.add(members.Name, namesOfIDs(names, a.Members[members.Name]), namesOfIDs(names, b.Members[members.Name]))
	}
	for _, list := range form.Lists {
		fields.add(list.Name, strings.Join(a.Lists[list.Name], ", "), strings.Join(b.Lists[list.Name], ", "))
	}
	nodeKeys := func(r *cluster.Resource) map[string]string {
		words := make(map[string]string)
		for _, key := range r.NodeKeys {
			words["node key "+key.Name] = NodeKeyText(key)
		}
		return words
	}
	fields.maps(nodeKeys(a), nodeKeys(b))
	fields.maps(keyWords(a.Keys), keyWords(b.Keys))
	return fields
}

// namesOfIDs are the names of several things, in their order; of what has none, the ID.
func namesOfIDs(names map[string]string, ids []string) string {
	words := make([]string, len(ids))
	for i, id := range ids {
		words[i] = cmp.Or(names[id], id)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

// maps adds what differs between two sets of named texts, by name.
func (l *fieldList) maps(a, b map[string]string) {
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l.add(name, a[name], b[name])
	}
}

func keyWords(keys []cluster.Key) map[string]string {
	words := make(map[string]string, len(keys))
	for _, key := range keys {
		words[KeyField(key)] = KeyText(key)
	}
	return words
}

// KeyField is how a key is called in differences: key NAME, with its class if that is not system.
func KeyField(key cluster.Key) string {
	if key.Class == cluster.SystemKey {
		return "key " + key.Name
	}
	return "key " + key.Name + " (" + string(key.Class) + ")"
}

// KeyText is a key's value and weight in words.
func KeyText(key cluster.Key) string {
	return "value " + figure(key.Value) + ", weight " + figure(key.Weight)
}

// NodeKeyText is a declared node key's default, and its weight if it is sticky, in words.
func NodeKeyText(key cluster.NodeKey) string {
	text := "default " + figure(key.Default)
	if key.Sticky {
		text += ", sticky, weight " + figure(key.Weight)
	}
	return text
}

// SettingText is a stored setting as people write it: sizes with a unit.
func SettingText(setting Setting, value string) string {
	if setting.Bytes {
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			return exact(units.Bytes(n))
		}
	}
	return value
}

func figure(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

// exact is a size in the largest unit that it is a whole number of, as 2G.
func exact(size units.Bytes) string {
	for _, unit := range []struct {
		size   units.Bytes
		letter string
	}{{units.TiB, "T"}, {units.GiB, "G"}, {units.MiB, "M"}, {units.KiB, "K"}} {
		if size != 0 && size%unit.size == 0 {
			return strconv.FormatInt(int64(size/unit.size), 10) + unit.letter
		}
	}
	return strconv.FormatInt(int64(size), 10)
}

func nodeFields(a, b *cluster.Node) []FieldChange {
	var fields fieldList
	fields.add(LinkCluster, a.Cluster, b.Cluster)
	ratio := func(f *float64) string {
		if f == nil {
			return "as its cluster"
		}
		return figure(*f)
	}
	fields.add(cluster.SettingRAMRatio, ratio(a.Settings.RAMRatio), ratio(b.Settings.RAMRatio))
	fields.add(cluster.SettingCPURatio, ratio(a.Settings.CPURatio), ratio(b.Settings.CPURatio))
	overhead := func(size *units.Bytes) string {
		if size == nil {
			return "as its cluster"
		}
		return exact(*size)
	}
	fields.add(cluster.SettingOverhead, overhead(a.Settings.Overhead), overhead(b.Settings.Overhead))
	values := func(n *cluster.Node) map[string]string {
		words := make(map[string]string, len(n.Keys))
		for name, value := range n.Keys {
			words[nodeKeyField(name)] = figure(value)
		}
		return words
	}
	from, to := values(a), values(b)
	for name := range from {
		if _, kept := to[name]; !kept {
			to[name] = "not set"
		}
	}
	fields.maps(from, to)
	fields.add(fieldLabels, strings.Join(a.Labels, ", "), strings.Join(b.Labels, ", "))
	fields.add(fieldManagement, strconv.FormatBool(a.Management), strconv.FormatBool(b.Management))
	fields.add(fieldUnbalanced, strconv.FormatBool(a.Unbalanced), strconv.FormatBool(b.Unbalanced))
	return fields
}

func vmFields(names map[string]string, a, b *cluster.VM) []FieldChange {
	var fields fieldList
	named := func(ids []string) string {
		words := make([]string, len(ids))
		for i, id := range ids {
			words[i] = names[id]
		}
		return strings.Join(words, ", ")
	}
	size := func(n units.Bytes) string {
		if n == 0 {
			return ""
		}
		return exact(n)
	}
	count := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	fields.add(LinkVDC, names[a.VDC], names[b.VDC])
	fields.add(fieldWithin, names[a.Within], names[b.Within])
	fields.add(LinkOffer, names[a.Offer], names[b.Offer])
	fields.add(LinkImage, names[a.Image], names[b.Image])
	fields.add("memory", size(a.Spec.Memory), size(b.Spec.Memory))
	fields.add("vcpus", count(a.Spec.VCPUs), count(b.Spec.VCPUs))
	fields.add("machine", a.Spec.Machine, b.Spec.Machine)
	fields.add("firmware", a.Spec.Firmware, b.Spec.Firmware)
	fields.add("cpu", a.Spec.CPU, b.Spec.CPU)
	fields.add("disks", joined(named(a.Disks), diskWords(a.Spec.Disks)), joined(named(b.Disks), diskWords(b.Spec.Disks)))
	fields.add("nics", named(a.NICs), named(b.NICs))
	fields.add("networks", strings.Join(a.Spec.Networks, ", "), strings.Join(b.Spec.Networks, ", "))
	fields.add("kernel", a.Spec.Kernel, b.Spec.Kernel)
	fields.add("initrd", a.Spec.Initrd, b.Spec.Initrd)
	fields.add("cmdline", a.Spec.Cmdline, b.Spec.Cmdline)
	fields.long(fieldUserData, "user data", a.Spec.UserData, b.Spec.UserData)
	fields.long("xml", "XML", a.Spec.XML, b.Spec.XML)
	fields.maps(keyWords(a.Keys), keyWords(b.Keys))
	fields.add(fieldPreferred, namesOfIDs(names, a.Preferred), namesOfIDs(names, b.Preferred))
	if busy(a) {
		for i := range fields {
			fields[i].Note = atNextStart
		}
	}
	// These are looked at whenever the VM may move.
	fields.add(fieldLabels, strings.Join(a.Labels, ", "), strings.Join(b.Labels, ", "))
	fields.add(fieldMigration, MigrationText(a.Migration), MigrationText(b.Migration))
	fields.add(fieldHA, strconv.FormatBool(a.HA), strconv.FormatBool(b.HA))
	return fields
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

func diskWords(disks []cluster.Disk) string {
	words := make([]string, len(disks))
	for i, disk := range disks {
		words[i] = fmt.Sprintf("%s (%s, %s", disk.Path, disk.Format, disk.Bus)
		if disk.ReadOnly {
			words[i] += ", read-only"
		}
		words[i] += ")"
	}
	return strings.Join(words, ", ")
}

// long adds a text of many lines, of which only its length is told.
func (l *fieldList) long(field, what, from, to string) {
	if from == to {
		return
	}
	told := func(text string) string {
		if text == "" {
			return ""
		}
		return fmt.Sprintf("%d lines of %s", strings.Count(strings.TrimRight(text, "\n"), "\n")+1, what)
	}
	*l = append(*l, FieldChange{Field: field, From: told(from), To: told(to)})
}
