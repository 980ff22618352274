package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/estate"
	"berth/shared/units"
)

// reader collects what is wrong with a file, so that its author sees all of it at once.
type reader struct {
	file     string
	problems []estate.Problem
}

func (r *reader) refuse(at *yaml.Node, next, format string, a ...any) {
	line := 1
	if at != nil {
		line = max(at.Line, 1)
	}
	r.refuseLine(line, next, format, a...)
}

func (r *reader) refuseLine(line int, next, format string, a ...any) {
	r.problems = append(r.problems, estate.Problem{File: r.file, Line: line, Message: fmt.Sprintf(format, a...), Next: next})
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// document reads the one YAML document of a file. It is nil when there is none.
func (r *reader) document(data []byte) *yaml.Node {
	const next = "write one YAML mapping; 'berth simulate --help' shows an example"
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	if err := decoder.Decode(&document); err != nil {
		line, text := 1, strings.TrimPrefix(err.Error(), "yaml: ")
		if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
			line, _ = strconv.Atoi(m[1]) // digits; one that overflows is no line
			text = m[2]
		}
		if errors.Is(err, io.EOF) {
			text = "the file is empty"
		}
		r.refuseLine(max(line, 1), next, "%s", text)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.refuse(&second, "leave out what follows ---", "a second YAML document, want one")
	case !errors.Is(err, io.EOF):
		r.refuse(nil, next, "what follows the document is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) != 1 {
		return nil
	}
	return document.Content[0]
}

// mapping is one YAML mapping whose fields are taken one by one; what nobody takes is unknown.
type mapping struct {
	*reader
	what   string // for people: "node hv1"
	node   *yaml.Node
	keys   map[string]*yaml.Node
	values map[string]*yaml.Node
	asked  []string
}

// mapping reads a mapping; one of another kind is refused and read as an empty one.
func (r *reader) mapping(node *yaml.Node, what string) *mapping {
	m := &mapping{reader: r, what: what, node: node, keys: make(map[string]*yaml.Node), values: make(map[string]*yaml.Node)}
	if node.Kind != yaml.MappingNode {
		r.refuse(node, "write its fields as name: value", "%s is %s, want a mapping", what, kindOf(node))
		return m
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.refuse(key, "name the field with a word", "a field name of %s is %s", what, kindOf(key))
		case m.keys[key.Value] != nil:
			r.refuse(key, "leave one out", "%s has %s twice, first on line %d", what, key.Value, m.keys[key.Value].Line)
		default:
			m.keys[key.Value], m.values[key.Value] = key, value
		}
	}
	return m
}

// has tells whether the field is there.
func (m *mapping) has(name string) bool { return m.values[name] != nil }

// take is the value of a field, nil if it is not there. An alias is refused: a file is read as it stands.
func (m *mapping) take(name string) *yaml.Node {
	m.asked = append(m.asked, name)
	value := m.values[name]
	if value != nil && value.Kind == yaml.AliasNode {
		m.refuse(value, "write the value out", "%s of %s is a YAML alias", name, m.what)
		return nil
	}
	return value
}

// need is take for a field that has to be there.
func (m *mapping) need(name, next string) *yaml.Node {
	value := m.take(name)
	if value == nil && !m.has(name) && m.node.Kind == yaml.MappingNode {
		m.refuse(m.node, next, "%s has no %s", m.what, name)
	}
	return value
}

// close refuses the fields that nobody asked for.
func (m *mapping) close() {
	for i := 0; i+1 < len(m.node.Content) && m.node.Kind == yaml.MappingNode; i += 2 {
		key := m.node.Content[i]
		if key.Kind == yaml.ScalarNode && !slices.Contains(m.asked, key.Value) {
			known := slices.Compact(slices.Sorted(slices.Values(m.asked)))
			m.refuse(key, "use "+strings.Join(known, ", "), "unknown field %q in %s", key.Value, m.what)
		}
	}
}

func kindOf(node *yaml.Node) string {
	switch {
	case node.Kind == yaml.MappingNode:
		return "a mapping"
	case node.Kind == yaml.SequenceNode:
		return "a list"
	case node.Kind == yaml.AliasNode:
		return "a YAML alias"
	case node.Tag == "!!null" || node.Value == "":
		return "empty"
	default:
		return strconv.Quote(node.Value)
	}
}

func scalar(node *yaml.Node) (string, bool) {
	return node.Value, node.Kind == yaml.ScalarNode && node.Tag != "!!null" && node.Value != ""
}

// text is a field's text; empty when it is not there.
func (m *mapping) text(name string) string {
	value := m.take(name)
	if value == nil {
		return ""
	}
	return m.textOf(value, name)
}

func (m *mapping) textOf(value *yaml.Node, name string) string {
	text, is := scalar(value)
	if !is {
		m.refuse(value, "give one word or text", "%s of %s is %s, want a text", name, m.what, kindOf(value))
		return ""
	}
	return text
}

// name is text for a name that has to be there.
func (m *mapping) name(field, next string) string {
	value := m.need(field, next)
	if value == nil {
		return ""
	}
	return m.textOf(value, field)
}

// word is a text that is one of those named.
func (m *mapping) word(name string, words ...string) string {
	text := m.text(name)
	if text != "" && !slices.Contains(words, text) {
		m.refuse(m.values[name], "use "+strings.Join(words, ", "), "%s of %s is %q", name, m.what, text)
		return ""
	}
	return text
}

// texts is a list of texts, or one text alone.
func (m *mapping) texts(name string) []string {
	value := m.take(name)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		if text := m.textOf(value, name); text != "" {
			return []string{text}
		}
		return nil
	}
	texts := make([]string, 0, len(value.Content))
	for _, one := range value.Content {
		if text := m.textOf(one, name); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// list are the elements of a field that is a list.
func (m *mapping) list(name string) []*yaml.Node {
	value := m.take(name)
	if value == nil {
		return nil
	}
	if value.Kind != yaml.SequenceNode {
		m.refuse(value, "begin each of its entries with a dash", "%s of %s is %s, want a list", name, m.what, kindOf(value))
		return nil
	}
	return value.Content
}

// field is a value by name, in the order of the file.
type field struct {
	name  string
	value *yaml.Node
}

// pairs are the fields of a field that is a mapping of names that the file chooses.
func (m *mapping) pairs(name string) []field {
	value := m.take(name)
	if value == nil {
		return nil
	}
	inner := m.mapping(value, name+" of "+m.what)
	fields := make([]field, 0, len(inner.values))
	for i := 0; i+1 < len(value.Content) && value.Kind == yaml.MappingNode; i += 2 {
		if key := value.Content[i].Value; inner.keys[key] == value.Content[i] {
			fields = append(fields, field{key, value.Content[i+1]})
		}
	}
	return fields
}

func (m *mapping) flag(name string) (set, given bool) {
	value := m.take(name)
	if value == nil {
		return false, false
	}
	if value.Kind != yaml.ScalarNode || value.Tag != "!!bool" {
		m.refuse(value, "use true or false", "%s of %s is %s", name, m.what, kindOf(value))
		return false, false
	}
	return strings.EqualFold(value.Value, "true"), true
}

func (m *mapping) size(name string) *units.Bytes {
	value := m.take(name)
	if value == nil {
		return nil
	}
	text, is := scalar(value)
	size, err := units.ParseBytes(text)
	if !is || err != nil {
		m.refuse(value, "give a size such as 512M or 4G", "%s of %s is %s, want a size", name, m.what, kindOf(value))
		return nil
	}
	return &size
}

// number is a finite number of at least least.
func (m *mapping) number(name string, least float64) *float64 {
	value := m.take(name)
	if value == nil {
		return nil
	}
	return m.numberOf(value, name, least)
}

func (m *mapping) numberOf(value *yaml.Node, name string, least float64) *float64 {
	text, _ := scalar(value)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(f) || math.Abs(f) > maxFigure || f < least {
		want := "a finite number"
		if least > -maxFigure {
			want = fmt.Sprintf("a number of at least %g", least)
		}
		m.refuse(value, "give "+want, "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &f
}

func (m *mapping) whole(name string, least, most int) *int {
	value := m.take(name)
	if value == nil {
		return nil
	}
	return m.wholeOf(value, name, least, most)
}

func (m *mapping) wholeOf(value *yaml.Node, name string, least, most int) *int {
	text, _ := scalar(value)
	n, err := strconv.Atoi(text)
	if err != nil || n < least || n > most {
		m.refuse(value, fmt.Sprintf("give a whole number from %d to %d", least, most), "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &n
}

func (m *mapping) seed(name string) *uint64 {
	value := m.take(name)
	if value == nil {
		return nil
	}
	text, _ := scalar(value)
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		m.refuse(value, "give a whole number from 0 to 18446744073709551615", "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &seed
}

// age is how long ago something was.
func (m *mapping) age(name string) *time.Duration {
	value := m.take(name)
	if value == nil {
		return nil
	}
	text, _ := scalar(value)
	age, err := time.ParseDuration(text)
	if err != nil || age < 0 {
		m.refuse(value, "give how long ago it was, such as 2s or 1m30s", "%s of %s is %s", name, m.what, kindOf(value))
		return nil
	}
	return &age
}

func (m *mapping) moment(name string) time.Time {
	value := m.take(name)
	if value == nil {
		return time.Time{}
	}
	text, _ := scalar(value)
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Year() < 1970 || at.Year() > 2200 {
		m.refuse(value, "give a moment such as 2026-03-01T12:00:00Z", "%s of %s is %s", name, m.what, kindOf(value))
		return time.Time{}
	}
	return at.UTC()
}
