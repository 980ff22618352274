// Package yamlnode builds the nodes of a YAML document, so that what is written reads back as it was meant.
package yamlnode

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Fields is a mapping that is being written.
type Fields struct {
	content []*yaml.Node
}

// Mapping is an empty mapping.
func Mapping() *Fields { return &Fields{} }

// Set adds a field.
func (f *Fields) Set(name string, value *yaml.Node) { f.content = append(f.content, Word(name), value) }

// Empty tells whether no field was added.
func (f *Fields) Empty() bool { return len(f.content) == 0 }

// List adds a list, if anything is in it. Lists of names stand on one line.
func (f *Fields) List(name string, items []*yaml.Node) {
	if len(items) == 0 {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: items, Style: yaml.FlowStyle}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			list.Style = 0
		}
	}
	f.Set(name, list)
}

// Comment is written behind the last field.
func (f *Fields) Comment(text string) { f.content[len(f.content)-1].LineComment = "# " + oneLine(text) }

// Node is the mapping, a field on each line.
func (f *Fields) Node() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: f.content} }

// Flow is the mapping on one line.
func (f *Fields) Flow() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: f.content, Style: yaml.FlowStyle}
}

// Word is a text. It is quoted where it would be read as something else.
func Word(text string) *yaml.Node {
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	if strings.Contains(text, "\n") && !literal(text) {
		node.Style = yaml.DoubleQuotedStyle
	}
	return node
}

// literal tells whether a text of several lines comes back unchanged from a literal block.
func literal(text string) bool {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line != strings.TrimRight(line, " \t") || strings.ContainsAny(line, "\t\r\u0085\u2028\u2029\ufeff") {
			return false
		}
	}
	return !strings.HasPrefix(text, " ") && !strings.HasPrefix(text, "\n") && !strings.HasSuffix(text, "\n\n")
}

// Bare is a number, a size or a truth value: never quoted.
func Bare(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// Scalar is bare where that is read as it is written, and a word otherwise.
func Scalar(text string) *yaml.Node {
	if _, err := strconv.ParseFloat(text, 64); err == nil || text == "true" || text == "false" {
		return Bare(text)
	}
	return Word(text)
}

// oneLine keeps a text within a comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
