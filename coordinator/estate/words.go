package estate

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"berth/coordinator/document"
	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// atNextStart is said of what changes of a VM that runs.
const atNextStart = "takes effect at the next start"

// describe fills in what the changes of a plan change, field by field.
func (d *differ) describe(plan *Plan) {
	names := d.now.names()
	for i := range d.doc.Entries {
		one := &d.doc.Entries[i]
		names[d.declared[schema.Ref(one.Kind, one.Name)]] = one.Name
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
			change.Fields = NodeFields(*d.nodes[change.Name], *change.Node)
		case change.VM != nil:
			before := d.vms[change.Name]
			if before == nil {
				before = &model.VM{}
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

func resourceFields(names map[string]string, a, b *model.Resource) []FieldChange {
	var fields fieldList
	form, _ := schema.FormOf(b.Kind)
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
				return schema.SettingText(setting, value)
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
	nodeKeys := func(r *model.Resource) map[string]string {
		words := make(map[string]string)
		for _, key := range r.NodeKeys {
			words["node key "+key.Name] = schema.NodeKeyText(key)
		}
		return words
	}
	fields.maps(nodeKeys(a), nodeKeys(b))
	fields.maps(keyWords(a.Keys), keyWords(b.Keys))
	if from, to := document.SpellingText(a), document.SpellingText(b); from != to && a.ID != "" {
		fields = append(fields, FieldChange{Field: "spelled", From: from, To: to, Note: "as 'berth export' writes it"})
	}
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

func keyWords(keys []model.Key) map[string]string {
	words := make(map[string]string, len(keys))
	for _, key := range keys {
		words[schema.KeyField(key)] = schema.KeyText(key)
	}
	return words
}

// recordFields are the fields that differ between two records of a VM or a node. Of one that runs it is said what waits for the
// next start.
func recordFields[R any](names map[string]string, table []schema.Field[R], a, b *R, runs bool) []FieldChange {
	var all []FieldChange
	for i := range table {
		f := &table[i]
		if f.Same(a, b) {
			continue
		}
		var fields fieldList
		if from, several := f.Parts(a); several {
			to, _ := f.Parts(b)
			for name := range from {
				if _, kept := to[name]; !kept && f.Unset != "" {
					to[name] = f.Unset
				}
			}
			fields.maps(from, to)
		} else if from, to := f.Text(a, names), f.Text(b, names); from != to {
			fields = append(fields, FieldChange{Field: f.Name, From: from, To: to})
		}
		for i := range fields {
			if runs && !f.Live {
				fields[i].Note, fields[i].Waits = atNextStart, true
			}
		}
		all = append(all, fields...)
	}
	return all
}

func vmFields(names map[string]string, a, b *model.VM) []FieldChange {
	return recordFields(names, schema.VM, a, b, busy(a))
}
