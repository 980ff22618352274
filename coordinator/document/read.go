package document

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/model"
	"berth/coordinator/schema"
	"berth/shared/units"
)

// reader takes a tree of YAML apart and collects what is wrong with it, so that one run tells all.
type reader struct {
	file     string
	problems []schema.Problem
}

func (r *reader) report(at *yaml.Node, subject, message, next string) {
	r.problems = append(r.problems, schema.Problem{File: r.file, Line: at.Line, Subject: subject, Message: message, Next: next})
}

func (r *reader) invalid(at *yaml.Node, subject string, err error) {
	problem := schema.ProblemOf(subject, "", err)
	problem.File, problem.Line = r.file, at.Line
	r.problems = append(r.problems, problem)
}

// plain refuses what makes one line mean another one: aliases (which may go round), merges and tags.
func (r *reader) plain(node *yaml.Node) bool {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		r.report(node, "", "anchors and aliases are not taken, they may go round in a circle", "write the values out")
		return false
	case node.Style&yaml.TaggedStyle != 0:
		r.report(node, "", "the tag "+node.Tag+" is not taken", "leave it out")
		return false
	case node.Tag == "!!merge":
		r.report(node, "", "<< is not taken", "write the values out")
		return false
	}
	sound := true
	for _, child := range node.Content {
		sound = r.plain(child) && sound
	}
	return sound
}

// field is one field of a mapping.
type field struct {
	name, value *yaml.Node
}

// mapping has the fields of a mapping by name. What is not known, empty or there twice is reported.
func (r *reader) mapping(node *yaml.Node, subject string, known ...string) map[string]*yaml.Node {
	fields := make(map[string]*yaml.Node)
	for _, f := range r.pairs(node, subject) {
		if !slices.Contains(known, f.name.Value) {
			r.report(f.name, subject, "unknown field "+strconv.Quote(f.name.Value), "known are "+strings.Join(known, ", "))
			continue
		}
		fields[f.name.Value] = f.value
	}
	return fields
}

// pairs has the fields of a mapping in order.
func (r *reader) pairs(node *yaml.Node, subject string) []field {
	if node.Kind != yaml.MappingNode {
		r.report(node, subject, "want fields, found "+shown(node), "write name: value, one a line")
		return nil
	}
	lines := make(map[string]int)
	var fields []field
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		switch before, twice := lines[name.Value]; {
		case name.Kind != yaml.ScalarNode:
			r.report(name, subject, "a field's name is "+shown(name), "write a word")
			continue
		case twice:
			r.report(name, subject, fmt.Sprintf("%s is there twice, first in line %d", strconv.Quote(name.Value), before), "keep one")
			continue
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
			r.report(name, subject, strconv.Quote(name.Value)+" is empty", "give it a value or leave the line out")
		default:
			fields = append(fields, field{name, value})
		}
		lines[name.Value] = name.Line
	}
	return fields
}

func (r *reader) list(node *yaml.Node, subject, name string) []*yaml.Node {
	if node == nil {
		return nil
	}
	if node.Kind != yaml.SequenceNode {
		r.report(node, subject, name+": want a list, found "+shown(node), "write [] or one - a line")
		return nil
	}
	return node.Content
}

// text is a plain value, as it is written; false if it is none.
func (r *reader) text(node *yaml.Node, subject, name string) (string, bool) {
	if node == nil {
		return "", false
	}
	if node.Kind != yaml.ScalarNode || node.Tag == "!!null" {
		r.report(node, subject, name+": want one value, found "+shown(node), "write it behind the colon")
		return "", false
	}
	return node.Value, true
}

// number is a plain number; false if it is none. A text is not taken for one, even if it looks like one.
func (r *reader) number(node *yaml.Node, subject, name string) (float64, bool) {
	text, ok := r.text(node, subject, name)
	if !ok {
		return 0, false
	}
	f, err := strconv.ParseFloat(text, 64)
	if node.Tag != "!!int" && node.Tag != "!!float" || err != nil && !strings.HasPrefix(strings.TrimLeft(text, "+-"), ".") {
		r.invalid(node, subject, &model.InvalidError{Field: name, Value: strconv.Quote(text), Want: "a number, without quotes"})
		return 0, false
	}
	if err != nil { // .inf and .nan
		r.invalid(node, subject, &model.InvalidError{Field: name, Value: text, Want: "a finite number from -1e9 to 1e9"})
		return 0, false
	}
	if err := model.ValidateKeyFigure(name, f); err != nil {
		r.invalid(node, subject, err)
		return 0, false
	}
	return f, true
}

func (r *reader) whole(node *yaml.Node, subject, name string) (int, bool) {
	text, ok := r.text(node, subject, name)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		r.invalid(node, subject, &model.InvalidError{Field: name, Value: strconv.Quote(text), Want: "a whole number"})
		return 0, false
	}
	return n, true
}

func (r *reader) size(node *yaml.Node, subject, name string) (units.Bytes, bool) {
	text, ok := r.text(node, subject, name)
	if !ok {
		return 0, false
	}
	n, err := units.ParseBytes(text)
	if err != nil {
		r.invalid(node, subject, &model.InvalidError{Field: name, Value: strconv.Quote(text), Want: "a size, for instance 512M or 4G"})
		return 0, false
	}
	return n, true
}

func (r *reader) truth(node *yaml.Node, subject, name string) bool {
	text, ok := r.text(node, subject, name)
	if ok && text != "true" && text != "false" {
		r.invalid(node, subject, &model.InvalidError{Field: name, Value: strconv.Quote(text), Want: "true or false"})
	}
	return text == "true"
}

// shown is what a node is, for people.
func shown(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "fields"
	case yaml.SequenceNode:
		return "a list"
	default:
		if node.Tag == "!!null" {
			return "nothing"
		}
		const most = 40
		if len(node.Value) > most {
			return strconv.Quote(node.Value[:most]) + "..."
		}
		return strconv.Quote(node.Value)
	}
}
