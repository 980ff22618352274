package estate

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// fields is a mapping that is being written.
type fields struct {
	content []*yaml.Node
}

func mapping() *fields { return &fields{} }

func (f *fields) set(name string, value *yaml.Node) { f.content = append(f.content, word(name), value) }

// list adds a list, if anything is in it. Lists of names stand on one line.
func (f *fields) list(name string, items []*yaml.Node) {
	if len(items) == 0 {
		return
	}
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: items, Style: yaml.FlowStyle}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			list.Style = 0
		}
	}
	f.set(name, list)
}

// comment is written behind the last field.
func (f *fields) comment(text string) { f.content[len(f.content)-1].LineComment = "# " + oneLine(text) }

func (f *fields) node() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Content: f.content} }

// flow is the mapping on one line.
func (f *fields) flow() *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: f.content, Style: yaml.FlowStyle}
}

// word is a text. It is quoted where it would be read as something else.
func word(text string) *yaml.Node {
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

// bare is a number, a size or a truth value: never quoted.
func bare(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

// scalar is bare where that is read as it is written, and a word otherwise.
func scalar(text string) *yaml.Node {
	if _, err := strconv.ParseFloat(text, 64); err == nil || text == "true" || text == "false" {
		return bare(text)
	}
	return word(text)
}

func count(n int) *yaml.Node { return bare(strconv.Itoa(n)) }

// oneLine keeps a text within a comment.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '\u0085' || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, text)
}
