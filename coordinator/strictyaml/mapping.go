// Package strictyaml reads YAML files that people write. A file is read field by field: a field that nobody asked for is a
// mistake, and so is one that is there twice. All mistakes of a file are collected, each with its line and with what to do.
package strictyaml

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

	"berth/coordinator/schema"
)

// Reader collects what is wrong with a file, so that its author sees all of it at once.
type Reader struct {
	File     string
	Problems []schema.Problem
}

// Refuse reports a problem in the line of a node, or in the first line if there is no node. Next is what to do about it.
func (r *Reader) Refuse(at *yaml.Node, next, format string, a ...any) {
	line := 1
	if at != nil {
		line = max(at.Line, 1)
	}
	r.RefuseLine(line, next, format, a...)
}

// RefuseLine reports a problem in a line.
func (r *Reader) RefuseLine(line int, next, format string, a ...any) {
	r.Problems = append(r.Problems, schema.Problem{File: r.File, Line: line, Message: fmt.Sprintf(format, a...), Next: next})
}

var yamlLine = regexp.MustCompile(`^(?:yaml: )?line (\d+): (.*)$`)

// Document reads the one YAML document of a file. It is nil when there is none. Next is what to do about a file that is not
// YAML.
func (r *Reader) Document(data []byte, next string) *yaml.Node {
	if root, ok := quick(data); ok {
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
		r.RefuseLine(max(line, 1), next, "%s", text)
		return nil
	}
	switch err := decoder.Decode(&second); {
	case err == nil:
		r.Refuse(&second, "leave out what follows ---", "a second YAML document, want one")
	case !errors.Is(err, io.EOF):
		r.Refuse(nil, next, "what follows the document is no YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if len(document.Content) != 1 {
		return nil
	}
	return document.Content[0]
}

// Mapping is one YAML mapping. Its fields are taken one by one, and a field that was not taken is unknown.
type Mapping struct {
	*Reader
	What  string // for people: "node hv1"
	Node  *yaml.Node
	index map[string]int // from names to places in the content of Node; nil if there are few fields
	asked []string       // names of the fields that were taken
}

// few is the number of fields up to which a search through all of them is faster than a map.
const few = 16

// Mapping reads a mapping. A node of another kind is refused and read as an empty mapping.
func (r *Reader) Mapping(node *yaml.Node, what string) *Mapping {
	m := &Mapping{Reader: r, What: what, Node: node, asked: make([]string, 0, 24)}
	if node.Kind != yaml.MappingNode {
		r.Refuse(node, "write its fields as name: value", "%s is %s, want a mapping", what, KindOf(node))
		return m
	}
	if len(node.Content) > 2*few {
		m.index = make(map[string]int, len(node.Content)/2)
		for i := len(node.Content)/2*2 - 2; i >= 0; i -= 2 { // backwards, so that the first of two fields with one name counts
			if key := node.Content[i]; key.Kind == yaml.ScalarNode {
				m.index[key.Value] = i
			}
		}
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode {
			r.Refuse(key, "name the field with a word", "a field name of %s is %s", what, KindOf(key))
		} else if first := m.At(key.Value); first != i {
			r.Refuse(key, "leave one out", "%s has %s twice, first on line %d", what, key.Value, node.Content[first].Line)
		}
	}
	return m
}

// At is the place of a field's name in the content of Node; -1 if the field is not there.
func (m *Mapping) At(name string) int {
	if m.index != nil {
		if at, there := m.index[name]; there {
			return at
		}
		return -1
	}
	for i := 0; i+1 < len(m.Node.Content) && m.Node.Kind == yaml.MappingNode; i += 2 {
		if key := m.Node.Content[i]; key.Value == name && key.Kind == yaml.ScalarNode {
			return i
		}
	}
	return -1
}

// Value is the value of a field; nil if the field is not there.
func (m *Mapping) Value(name string) *yaml.Node {
	if at := m.At(name); at >= 0 {
		return m.Node.Content[at+1]
	}
	return nil
}

// Has tells whether the field is there.
func (m *Mapping) Has(name string) bool { return m.At(name) >= 0 }

// Take is the value of a field that is known; nil if the field is not there. An alias is refused: a file is read as it
// stands.
func (m *Mapping) Take(name string) *yaml.Node {
	m.asked = append(m.asked, name)
	value := m.Value(name)
	if value != nil && value.Kind == yaml.AliasNode {
		m.Refuse(value, "write the value out", "%s of %s is a YAML alias", name, m.What)
		return nil
	}
	return value
}

// Need is Take for a field that has to be there.
func (m *Mapping) Need(name, next string) *yaml.Node {
	value := m.Take(name)
	if value == nil && !m.Has(name) && m.Node.Kind == yaml.MappingNode {
		m.Refuse(m.Node, next, "%s has no %s", m.What, name)
	}
	return value
}

// Close refuses the fields that were not taken.
func (m *Mapping) Close() {
	for i := 0; i+1 < len(m.Node.Content) && m.Node.Kind == yaml.MappingNode; i += 2 {
		key := m.Node.Content[i]
		if key.Kind == yaml.ScalarNode && !slices.Contains(m.asked, key.Value) {
			known := slices.Compact(slices.Sorted(slices.Values(m.asked)))
			m.Refuse(key, "use "+strings.Join(known, ", "), "unknown field %q in %s", key.Value, m.What)
		}
	}
}

// KindOf names what a node is, for people.
func KindOf(node *yaml.Node) string {
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
