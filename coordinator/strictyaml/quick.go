package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// quickRun is the number of such lines in a row from which the quick reader pays.
const quickRun = 32

// quick reads a file that has long lists of plain mappings, one a line, such as
//
//   - {name: hv1, memory: 64G, cpus: 16}
//
// several times faster than the YAML library, which would take most of the time that the file of a large cluster needs. It
// returns the same tree as the library, except for the columns. If it cannot do that, ok is false and the library has to read
// the file. It cuts the lines out, puts one word in the place of each run of them, and lets the library read the rest.
func quick(data []byte) (root *yaml.Node, ok bool) {
	cut, runs := cutRuns(data)
	if len(runs) == 0 {
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(cut))
	var document, second yaml.Node
	if decoder.Decode(&document) != nil || !errors.Is(decoder.Decode(&second), io.EOF) || len(document.Content) != 1 {
		return nil, false
	}
	found := 0
	root = document.Content[0]
	splice(root, runs, &found)
	return root, found == len(runs) // fewer if lines of a text only looked like a list
}

// cutRun is a run of lines that was cut out.
type cutRun struct {
	word  string
	items []*yaml.Node
}

// quickWord, followed by a number, stands in the place of a run. A file that contains it is left to the library.
const quickWord = "berth-quick-run-"

// cutRuns takes the runs out of a file. Their lines stay as empty ones, so that all others keep their numbers.
func cutRuns(data []byte) (cut []byte, runs []cutRun) {
	if bytes.Contains(data, []byte(quickWord)) {
		return nil, nil
	}
	text := string(data)
	cut = make([]byte, 0, 4096)
	q := &quickReader{tags: make(map[string]string)}
	line := 1
	for rest := text; rest != ""; {
		indent := plainItem(rest)
		if indent < 0 {
			end := lineEnd(rest)
			cut, rest, line = append(cut, rest[:end]...), rest[end:], line+1
			continue
		}
		start, first := rest, line
		var items []*yaml.Node
		for rest != "" && plainItem(rest) == indent {
			end := lineEnd(rest)
			item := q.item(strings.TrimSuffix(rest[indent:end], "\n"), line, indent+1)
			if item == nil {
				break
			}
			items, rest, line = append(items, item), rest[end:], line+1
		}
		switch {
		case len(items) == 0:
			end := lineEnd(rest)
			cut, rest, line = append(cut, rest[:end]...), rest[end:], line+1
		case len(items) < quickRun:
			cut = append(cut, start[:len(start)-len(rest)]...)
		default:
			one := cutRun{word: quickWord + strconv.Itoa(len(runs)), items: items}
			runs = append(runs, one)
			cut = append(append(append(cut, start[:indent]...), "- "...), one.word...)
			for range line - first {
				cut = append(cut, '\n')
			}
		}
	}
	return cut, runs
}

func lineEnd(text string) int {
	if at := strings.IndexByte(text, '\n'); at >= 0 {
		return at + 1
	}
	return len(text)
}

// plainItem is the indentation of a line that begins with a mapping in a list; -1 for any other line.
func plainItem(text string) int {
	for i := range len(text) {
		if text[i] != ' ' {
			if strings.HasPrefix(text[i:], "- {") {
				return i
			}
			return -1
		}
	}
	return -1
}

// quickReader makes nodes. It allocates many of them at once.
type quickReader struct {
	nodes []yaml.Node
	tags  map[string]string // of the names of fields
}

func (q *quickReader) node(kind yaml.Kind, line, column int) *yaml.Node {
	if len(q.nodes) == cap(q.nodes) {
		q.nodes = make([]yaml.Node, 0, 4096)
	}
	q.nodes = append(q.nodes, yaml.Node{Kind: kind, Line: line, Column: column})
	return &q.nodes[len(q.nodes)-1]
}

// item reads "- {name: value, name: value}" whose names and values have no special meaning in YAML. It returns nil for
// anything else.
func (q *quickReader) item(text string, line, column int) *yaml.Node {
	inner, closed := strings.CutSuffix(strings.TrimPrefix(text, "- {"), "}")
	if !closed || inner == "" {
		return nil
	}
	mapping := q.node(yaml.MappingNode, line, column+2)
	mapping.Tag, mapping.Style = "!!map", yaml.FlowStyle
	mapping.Content = make([]*yaml.Node, 0, 2+2*strings.Count(inner, ","))
	at := column + 3
	for more := true; more; {
		var pair string
		pair, inner, more = strings.Cut(inner, ", ")
		name, value, is := strings.Cut(pair, ": ")
		if !is || !plainName(name) || !plainValue(value) {
			return nil
		}
		key := q.node(yaml.ScalarNode, line, at)
		key.Value = name
		tag, known := q.tags[name]
		if !known {
			tag = key.ShortTag()
			q.tags[name] = tag
		}
		key.Tag = tag
		figure := q.node(yaml.ScalarNode, line, at+len(name)+2)
		figure.Value = value
		figure.Tag = tagOf(figure)
		mapping.Content = append(mapping.Content, key, figure)
		at += len(pair) + 2
	}
	return mapping
}

func plainName(name string) bool {
	for i := range len(name) {
		if c := name[i]; (c < 'a' || c > 'z') && c != '_' {
			return false
		}
	}
	return name != ""
}

// plainValue allows letters and digits, and after the first of them also . _ / + and -.
func plainValue(value string) bool {
	for i := range len(value) {
		switch c := value[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9':
		case i > 0 && (c == '.' || c == '_' || c == '/' || c == '+' || c == '-'):
		default:
			return false
		}
	}
	return value != ""
}

// tagOf is the type that YAML gives a plain value. The library is asked only where that is not obvious.
func tagOf(figure *yaml.Node) string {
	value := figure.Value
	digits := 0
	for digits < len(value) && value[digits] >= '0' && value[digits] <= '9' {
		digits++
	}
	switch {
	case digits == len(value) && digits < 18 && (value[0] != '0' || digits == 1):
		return "!!int"
	case digits > 0 && digits == len(value)-1 && strings.IndexByte("KMGT", value[digits]) >= 0:
		return "!!str"
	default:
		return figure.ShortTag()
	}
}

// splice puts the items of each run in the place of its word.
func splice(node *yaml.Node, runs []cutRun, found *int) {
	if node.Kind != yaml.SequenceNode {
		for _, child := range node.Content {
			splice(child, runs, found)
		}
		return
	}
	var whole []*yaml.Node
	for i, child := range node.Content {
		if *found < len(runs) && child.Kind == yaml.ScalarNode && child.Value == runs[*found].word {
			if whole == nil {
				whole = append(whole, node.Content[:i]...)
			}
			whole = append(whole, runs[*found].items...)
			*found++
			continue
		}
		splice(child, runs, found)
		if whole != nil {
			whole = append(whole, child)
		}
	}
	if whole != nil {
		node.Content = whole
	}
}
