package document

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/schema"
)

// designFields are ours of the names that fields of a group have in oVirt.
var designFields = map[string]string{
	"hosts_rule": model.SettingNodesRule, "hosts_enforcing": model.SettingNodesEnforcing, "hosts": model.MembersNodes,
	"host_labels": model.ListNodeLabels,
}

// ours is an entry with our names for those of oVirt, and with each rule as two words where it was written with oVirt's fields:
// {enabled: true, positive: true, enforcing: false}. The lines stay as they are.
func (p *parser) ours(form schema.Form, node *yaml.Node) *yaml.Node {
	if form.Kind != model.KindGroup || node.Kind != yaml.MappingNode {
		return node
	}
	own := *node
	own.Content = nil
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := *node.Content[i], node.Content[i+1]
		if ours, known := designFields[name.Value]; known {
			name.Value = ours
		}
		isRule := name.Value == model.SettingVMsRule || name.Value == model.SettingNodesRule
		if isRule && value.Kind == yaml.MappingNode {
			own.Content = append(own.Content, p.rule(&name, value, schema.Ref(form.Kind, nameIn(node)))...)
		} else {
			own.Content = append(own.Content, &name, value)
		}
	}
	return &own
}

// rule is a rule with oVirt's fields as our two fields. One that is not enabled keeps its flag.
func (p *parser) rule(name, value *yaml.Node, subject string) []*yaml.Node {
	fields := p.mapping(value, subject, "enabled", "positive", "enforcing")
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
	switch enabled, positive := flag("enabled", true), flag("positive", false); {
	case !enabled:
		polarity = model.Disabled
	case fields["positive"] == nil:
		p.report(value, subject, name.Value+" without positive", "write positive: true for together, or false for apart")
	case positive:
		polarity = model.Positive
	}
	word := func(text string) *yaml.Node {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text, Line: value.Line}
	}
	enforcing := strings.TrimSuffix(name.Value, "_rule") + "_enforcing"
	return []*yaml.Node{name, word(string(polarity)), word(enforcing), word(strconv.FormatBool(flag("enforcing", false)))}
}
