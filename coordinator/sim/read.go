package sim

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"berth/coordinator/estate"
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
	if root, ok := estate.Quick(data); ok {
		return root
	}
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
	what  string // for people: "node hv1"
	node  *yaml.Node
	index map[string]int // of names into the node's content; nil: there are few, which are looked through
	asked []string
}

// few is how many fields are looked through faster than a map of them is made.
const few = 16

// mapping reads a mapping; one of another kind is refused and read as an empty one.
func (r *reader) mapping(node *yaml.Node, what string) *mapping {
	m := &mapping{reader: r, what: what, node: node, asked: make([]string, 0, 24)}
	if node.Kind != yaml.MappingNode {
		r.refuse(node, "write its fields as name: value", "%s is %s, want a mapping", what, kindOf(node))
		return m
	}
	if len(node.Content) > 2*few {
		m.index = make(map[string]int, len(node.Content)/2)
		for i := len(node.Content)/2*2 - 2; i >= 0; i -= 2 { // of two with one name the first counts
			if key := node.Content[i]; key.Kind == yaml.ScalarNode {
				m.index[key.Value] = i
			}
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode {
			r.refuse(key, "name the field with a word", "a field name of %s is %s", what, kindOf(key))
		} else if first := m.at(key.Value); first != i {
			r.refuse(key, "leave one out", "%s has %s twice, first on line %d", what, key.Value, node.Content[first].Line)
		}
	}
	return m
}

// at is where in the node's content a field is; -1 if it is not there.
func (m *mapping) at(name string) int {
	if m.index != nil {
		if at, there := m.index[name]; there {
			return at
		}
		return -1
	}
	for i := 0; i+1 < len(m.node.Content) && m.node.Kind == yaml.MappingNode; i += 2 {
		if key := m.node.Content[i]; key.Value == name && key.Kind == yaml.ScalarNode {
			return i
		}
	}
	return -1
}

// value is that of a field; nil if it is not there.
func (m *mapping) value(name string) *yaml.Node {
	if at := m.at(name); at >= 0 {
		return m.node.Content[at+1]
	}
	return nil
}

// has tells whether the field is there.
func (m *mapping) has(name string) bool { return m.at(name) >= 0 }

// take is the value of a field, nil if it is not there. An alias is refused: a file is read as it stands.
func (m *mapping) take(name string) *yaml.Node {
	m.asked = append(m.asked, name)
	value := m.value(name)
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
