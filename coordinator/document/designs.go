package document

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/coordinator/yamlnode"
)

// designFields are ours of the names that fields of a group have in oVirt.
var designFields = map[string]string{
	"hosts_rule": model.SettingNodesRule, "hosts_enforcing": model.SettingNodesEnforcing, "hosts": model.MembersNodes,
	"host_labels": model.ListNodeLabels,
}

// enforcingOf are the flags of a group's rules. Where a rule is written with oVirt's fields, it has its flag among them.
var enforcingOf = map[string]string{
	model.SettingVMsRule: model.SettingVMsEnforcing, model.SettingNodesRule: model.SettingNodesEnforcing,
}

// Fields of a rule as oVirt has it, in the order in which they are kept and written.
const (
	fieldEnabled   = "enabled"
	fieldPositive  = "positive"
	fieldEnforcing = "enforcing"
)

// spelling is how a document has written a field: the name that it has in the designs, or ours. What comes after the name are the
// fields of a rule that were there. A rule that is not enabled has no direction in its record, so the one that was written stands here:
//
//	hosts_rule enabled positive=true enforcing
type spelling struct {
	name   string
	fields []string
}

func (s spelling) String() string { return strings.Join(append([]string{s.name}, s.fields...), " ") }

func spellingOf(text string) spelling {
	words := strings.Fields(text)
	if len(words) == 0 {
		return spelling{}
	}
	return spelling{name: words[0], fields: words[1:]}
}

// has tells whether a field was written, and the direction that stands with it.
func (s spelling) has(field string) (direction string, written bool) {
	for _, word := range s.fields {
		if name, value, _ := strings.Cut(word, "="); name == field {
			return value, true
		}
	}
	return "", false
}

// ours is an entry with our names for those of oVirt, and with each rule as two words where it was written with oVirt's fields:
// {enabled: true, positive: true, enforcing: false}. The lines stay as they are. Spelled is how the entry was written, by our names.
func (p *parser) ours(form schema.Form, node *yaml.Node) (own *yaml.Node, spelled map[string]string) {
	spelled = make(map[string]string)
	if form.Kind != model.KindGroup || node.Kind != yaml.MappingNode {
		return node, spelled
	}
	entry := *node
	entry.Content = nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := *node.Content[i], node.Content[i+1]
		written := name.Value
		if own, known := designFields[written]; known {
			name.Value, spelled[own] = own, written
		}
		flag, isRule := enforcingOf[name.Value]
		if !isRule || value.Kind != yaml.MappingNode {
			entry.Content = append(entry.Content, &name, value)
			continue
		}
		content, fields := p.rule(&name, value, schema.Ref(form.Kind, nameIn(node)))
		entry.Content = append(entry.Content, content...)
		spelled[name.Value] = spelling{written, fields}.String()
		if written != name.Value {
			spelled[flag] = strings.TrimSuffix(written, "rule") + fieldEnforcing
		}
	}
	return &entry, spelled
}

// rule is a rule with oVirt's fields as our two fields, and which of its fields were there. One that is not enabled keeps its flag.
func (p *parser) rule(name, value *yaml.Node, subject string) (content []*yaml.Node, written []string) {
	fields := p.mapping(value, subject, fieldEnabled, fieldPositive, fieldEnforcing)
	flag := func(field string, otherwise bool) bool {
		text, ok := p.text(fields[field], subject, name.Value+" "+field)
		if !ok {
			return otherwise
		}
		if text != "true" && text != "false" {
			p.invalid(fields[field], subject, &model.InvalidError{
				Field: name.Value + " " + field, Value: strconv.Quote(text), Want: "true or false",
			})
		}
		return text == "true"
	}
	polarity := model.Negative
	enabled, positive, enforcing := flag(fieldEnabled, true), flag(fieldPositive, false), flag(fieldEnforcing, false)
	switch {
	case !enabled:
		polarity = model.Disabled
	case fields[fieldPositive] == nil:
		p.report(value, subject, name.Value+" without positive", "write positive: true for together, or false for apart")
	case positive:
		polarity = model.Positive
	}
	for _, field := range []string{fieldEnabled, fieldPositive, fieldEnforcing} {
		switch {
		case fields[field] == nil:
		case field == fieldPositive && !enabled:
			written = append(written, field+"="+strconv.FormatBool(positive))
		default:
			written = append(written, field)
		}
	}
	word := func(text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: value.Line}
	}
	flagName := word(enforcingOf[name.Value])
	return []*yaml.Node{name, word(string(polarity)), flagName, word(strconv.FormatBool(enforcing))}, written
}

// Spelling is how a resource is written where it is not written by our names, by these: what its document said, as far as the resource
// still is so. What was changed since has our names.
func Spelling(r *model.Resource) map[string]string {
	if len(r.Spelled) == 0 {
		return nil
	}
	if r.Kind == model.KindGroup {
		return groupSpelling(r)
	}
	out := make(map[string]string)
	form, _ := schema.FormOf(r.Kind)
	for _, setting := range form.Settings {
		said, value := r.Spelled[setting.Name], r.Settings[setting.Name]
		if canonical, err := setting.Canonical(said); err == nil && setting.IsAlias(said) && canonical == value {
			out[setting.Name] = said
		}
	}
	return out
}

func groupSpelling(r *model.Resource) map[string]string {
	out := make(map[string]string)
	for own, text := range r.Spelled {
		said := spellingOf(text)
		value, set := r.Settings[own]
		enforcing, flagged := r.Settings[enforcingOf[own]]
		switch {
		case !set && len(r.Members[own]) == 0 && len(r.Lists[own]) == 0:
		case flagged && len(said.fields) > 0:
			said.fields = ruleFields(said, value, enforcing)
			out[own] = said.String()
		case designFields[said.name] == own:
			out[own] = said.name
		}
	}
	for rule, flag := range enforcingOf {
		if len(spellingOf(out[rule]).fields) > 0 {
			delete(out, flag) // it stands among the rule's fields
		}
	}
	return out
}

// ruleFields are the fields of a rule that are written: those that were there, and those without which it would be another rule.
func ruleFields(said spelling, polarity, enforcing string) []string {
	var fields []string
	disabled := polarity == string(model.Disabled)
	if _, written := said.has(fieldEnabled); written || disabled {
		fields = append(fields, fieldEnabled)
	}
	switch direction, _ := said.has(fieldPositive); {
	case !disabled:
		fields = append(fields, fieldPositive)
	case direction != "":
		fields = append(fields, fieldPositive+"="+direction)
	}
	if _, written := said.has(fieldEnforcing); written || enforcing == "true" {
		fields = append(fields, fieldEnforcing)
	}
	return fields
}

// SpellingText is Spelling in words.
func SpellingText(r *model.Resource) string {
	return strings.Join(slices.Sorted(maps.Values(Spelling(r))), ", ")
}

// AsSpelled is an entry that is written by our names as the resource's own document has written it.
func AsSpelled(r *model.Resource, entry *yaml.Node) *yaml.Node {
	spelled := Spelling(r)
	if len(spelled) == 0 {
		return entry
	}
	out := *entry
	out.Content = nil
	for i := 0; i+1 < len(entry.Content); i += 2 {
		own, value := entry.Content[i].Value, entry.Content[i+1]
		said := spellingOf(spelled[own])
		switch {
		case said.name == "" && foldedIn(spelled, own):
		case said.name == "":
			out.Content = append(out.Content, entry.Content[i], value)
		case r.Kind != model.KindGroup:
			out.Content = append(out.Content, entry.Content[i], yamlnode.Word(said.name))
		case len(said.fields) > 0:
			out.Content = append(out.Content, yamlnode.Word(said.name), ruleNode(said, value.Value, r.Settings[enforcingOf[own]]))
		default:
			out.Content = append(out.Content, yamlnode.Word(said.name), value)
		}
	}
	return &out
}

// foldedIn tells whether a field is the flag of a rule that is written with fields.
func foldedIn(spelled map[string]string, own string) bool {
	for rule, flag := range enforcingOf {
		if flag == own && len(spellingOf(spelled[rule]).fields) > 0 {
			return true
		}
	}
	return false
}

// ruleNode is a rule as oVirt has it.
func ruleNode(said spelling, polarity, enforcing string) *yaml.Node {
	fields := yamlnode.Mapping()
	for _, word := range said.fields {
		field, direction, _ := strings.Cut(word, "=")
		switch field {
		case fieldEnabled:
			direction = strconv.FormatBool(polarity != string(model.Disabled))
		case fieldEnforcing:
			direction = enforcing
		case fieldPositive:
			if direction == "" {
				direction = strconv.FormatBool(polarity == string(model.Positive))
			}
		}
		fields.Set(field, yamlnode.Bare(direction))
	}
	return fields.Flow()
}
