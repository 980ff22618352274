package domxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Node is an element of a document as it stands there, also one that libvirt does not know.
type Node struct {
	Space      string // namespace
	Name       string
	Attributes []NodeAttribute
	Text       string // of an element; of one with children there is only space
	Children   []*Node
	Line       int
}

// NodeAttribute is an attribute of a Node. Declarations of prefixes are none.
type NodeAttribute struct{ Space, Name, Value string }

// Read reads a document whole, as every other program reads it: what two parsers could understand in two ways is refused. The error wraps
// ErrInvalid.
func Read(text string) (*Node, error) {
	if _, err := scan(text); err != nil {
		return nil, err
	}
	decoder := xml.NewDecoder(strings.NewReader(text))
	var open []*Node
	var root *Node
	torn := map[*Node]bool{} // a comment stands in it: some read the text before, some all of it
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			one := nodeOf(&token)
			one.Line, _ = decoder.InputPos()
			if len(open) == 0 {
				root = one
			} else {
				parent := open[len(open)-1]
				parent.Children = append(parent.Children, one)
			}
			open = append(open, one)
		case xml.CharData:
			if len(open) > 0 {
				open[len(open)-1].Text += string(token)
			}
		case xml.Comment:
			if len(open) > 0 {
				torn[open[len(open)-1]] = true
			}
		case xml.EndElement:
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if mixed := len(last.Children) > 0 || torn[last]; mixed && strings.TrimSpace(last.Text) != "" {
				return nil, fmt.Errorf("%w: line %d: <%s> has text beside elements or comments: leave one out", ErrInvalid, last.Line, last.Name)
			}
		}
	}
}

func nodeOf(token *xml.StartElement) *Node {
	one := &Node{Space: token.Name.Space, Name: token.Name.Local}
	for _, a := range token.Attr {
		if a.Name.Space != "xmlns" {
			one.Attributes = append(one.Attributes, NodeAttribute{Space: a.Name.Space, Name: a.Name.Local, Value: a.Value})
		}
	}
	return one
}

// text writes a node as it was read. Namespaces are given prefixes of its own.
func (n *Node) text(out *strings.Builder, prefixes *[]string) {
	name := n.Name
	if n.Space != "" {
		name = prefixed(n.Space, prefixes) + ":" + name
	}
	out.WriteString("<" + name)
	for _, a := range n.Attributes {
		attribute := a.Name
		if a.Space != "" {
			attribute = prefixed(a.Space, prefixes) + ":" + attribute
		}
		out.WriteString(" " + attribute + `="` + escape(a.Value) + `"`)
	}
	out.WriteString(">")
	if len(n.Children) == 0 {
		out.WriteString(escape(n.Text))
	}
	for _, child := range n.Children {
		child.text(out, prefixes)
	}
	out.WriteString("</" + name + ">")
}

func prefixed(space string, prefixes *[]string) string {
	at := slices.Index(*prefixes, space)
	if at < 0 {
		at = len(*prefixes)
		*prefixes = append(*prefixes, space)
	}
	return fmt.Sprintf("n%d", at)
}

// String writes a node, and nothing that was between its elements.
func (n *Node) String() string {
	var out strings.Builder
	var prefixes []string
	n.text(&out, &prefixes)
	text, declared := out.String(), ""
	for i, space := range prefixes {
		declared += fmt.Sprintf(` xmlns:n%d="%s"`, i, escape(space))
	}
	at := strings.IndexAny(text, " >")
	return text[:at] + declared + text[at:]
}

// plain refuses a document whose bytes are not what every program makes of them: it would be judged as one text and started as another.
func plain(text string) error {
	switch {
	case !utf8.ValidString(text):
		return fmt.Errorf("%w: it is not UTF-8: write it in UTF-8", ErrInvalid)
	case strings.ContainsRune(text, 0):
		return fmt.Errorf("%w: it has a NUL byte: remove it", ErrInvalid)
	case strings.HasPrefix(text, "\ufeff"):
		return fmt.Errorf("%w: it begins with a byte order mark: remove it", ErrInvalid)
	case strings.Contains(text, "<![CDATA["):
		return fmt.Errorf("%w: it has a CDATA section: write &lt; and &amp; instead", ErrInvalid)
	}
	return nil
}

// instruction refuses what tells a parser to do something. The declaration at the beginning says what the document is in any case.
func (s *scanner) instruction(token xml.ProcInst, at span) error {
	if token.Target != "xml" || at.start != 0 {
		return fmt.Errorf("%w: line %d: a processing instruction <?%s?>: remove it, libvirt needs none", ErrInvalid, s.line(), token.Target)
	}
	return nil
}

// alike refuses an element that some parsers read as another one.
func (s *scanner) alike(token *xml.StartElement) error {
	if strings.Contains(token.Name.Local, ":") {
		return fmt.Errorf("%w: line %d: <%s> has two prefixes", ErrInvalid, s.line(), token.Name.Local)
	}
	for i, a := range token.Attr {
		if strings.Contains(a.Name.Local, ":") {
			return fmt.Errorf("%w: line %d: attribute %s of <%s> has two prefixes", ErrInvalid, s.line(), a.Name.Local, token.Name.Local)
		}
		if slices.ContainsFunc(token.Attr[:i], func(b xml.Attr) bool { return a.Name == b.Name }) {
			return fmt.Errorf("%w: line %d: <%s> has the attribute %s twice: remove one", ErrInvalid, s.line(), token.Name.Local, a.Name.Local)
		}
	}
	return nil
}
