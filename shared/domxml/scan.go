package domxml

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Bounds of a document. libvirt's own documents are far below all three; a document above one is hostile or a slip.
const (
	MaxBytes  = 256 << 10
	maxDepth  = 32
	maxTokens = 20_000
)

// ErrInvalid is the cause of every refusal of a document. The text says what is wrong, where, and what to write instead.
var ErrInvalid = errors.New("domain XML is not valid")

// Namespace and the local name of the mark that Berth leaves in a domain's metadata.
const (
	Namespace = "https://berth.dev/domain/1"
	markName  = "vm"
)

// span is a part of a document, as byte offsets.
type span struct{ start, end int }

// element is what the scan keeps of one element: where it stands, and its text if it has no child.
type element struct {
	whole, inner span
	line         int
	text         string
	attributes   []xml.Attr
}

// document is the outcome of one scan: the root, its children by local name, the disks and interfaces, and Berth's mark.
type document struct {
	root       element
	children   map[string][]element
	devices    element
	disks      []deviceElement
	interfaces []deviceElement
	marks      []element // one, unless somebody copied it
}

// deviceElement is one of the devices, with its children by local name.
type deviceElement struct {
	element
	parts map[string]element
}

// top tells the only child of the root with this name. Two of them are an error, because libvirt would take one and
// Berth perhaps the other.
func (d *document) top(name string) (element, bool, error) {
	found := d.children[name]
	switch len(found) {
	case 0:
		return element{}, false, nil
	case 1:
		return found[0], true, nil
	default:
		return element{}, false, fmt.Errorf("%w: line %d: a second <%s>, the first is on line %d: remove one",
			ErrInvalid, found[1].line, name, found[0].line)
	}
}

// scan walks a domain document once, within the bounds.
func scan(text string) (*document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are read: leave out what is not part of the domain",
			ErrInvalid, len(text), MaxBytes)
	}
	if err := plain(text); err != nil {
		return nil, err
	}
	s := scanner{decoder: xml.NewDecoder(strings.NewReader(text)), document: &document{children: map[string][]element{}}}
	for tokens := 0; ; tokens++ {
		if tokens == maxTokens {
			return nil, fmt.Errorf("%w: more than %d XML tokens: leave out what is not part of the domain", ErrInvalid, maxTokens)
		}
		start := int(s.decoder.InputOffset())
		token, err := s.decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, s.malformed(err)
		}
		if err := s.take(token, span{start, int(s.decoder.InputOffset())}); err != nil {
			return nil, err
		}
	}
	if s.document.root.whole.end == 0 {
		return nil, fmt.Errorf("%w: no <domain> element: give the text that `virsh dumpxml` prints", ErrInvalid)
	}
	return s.document, nil
}

// scanner is the state of a scan: the elements that are open now, outermost first.
type scanner struct {
	decoder  *xml.Decoder
	document *document
	open     []open
	parts    map[string]element // of the disk or interface that is open
}

type open struct {
	name xml.Name
	element
	leaf bool
}

func (s *scanner) line() int {
	line, _ := s.decoder.InputPos()
	return line
}

func (s *scanner) malformed(err error) error {
	if syntax, ok := errors.AsType[*xml.SyntaxError](err); ok {
		return fmt.Errorf("%w: line %d: %s: check the document with `virt-xml-validate`", ErrInvalid, syntax.Line, syntax.Msg)
	}
	return fmt.Errorf("%w: line %d: %w", ErrInvalid, s.line(), err)
}

func (s *scanner) take(token xml.Token, at span) error {
	switch token := token.(type) {
	case xml.StartElement:
		return s.begin(token, at)
	case xml.EndElement:
		s.end(at)
	case xml.CharData:
		if n := len(s.open); n > 0 {
			s.open[n-1].text += string(token)
		} else if strings.TrimSpace(string(token)) != "" {
			if s.document.root.whole.end == 0 {
				return fmt.Errorf("%w: line %d: text and no <domain> element: give the text that `virsh dumpxml` prints", ErrInvalid, s.line())
			}
			return fmt.Errorf("%w: line %d: text behind the domain: remove it", ErrInvalid, s.line())
		}
	case xml.ProcInst:
		return s.instruction(token, at)
	case xml.Directive:
		return fmt.Errorf("%w: line %d: a document type or entity declaration: remove it, libvirt needs none", ErrInvalid, s.line())
	}
	return nil
}

func (s *scanner) begin(token xml.StartElement, at span) error {
	if err := s.alike(&token); err != nil {
		return err
	}
	if len(s.open) == maxDepth {
		return fmt.Errorf("%w: line %d: elements nest deeper than %d", ErrInvalid, s.line(), maxDepth)
	}
	if len(s.open) == 0 {
		if s.document.root.whole.end != 0 {
			return fmt.Errorf("%w: line %d: a second top element <%s>: give one domain at a time", ErrInvalid, s.line(), token.Name.Local)
		}
		if token.Name.Local != "domain" {
			return fmt.Errorf("%w: line %d: the top element is <%s>, not <domain>: give the text that `virsh dumpxml` prints",
				ErrInvalid, s.line(), token.Name.Local)
		}
	} else {
		s.open[len(s.open)-1].leaf = false
	}
	s.open = append(s.open, open{
		name: token.Name, leaf: true,
		element: element{whole: span{start: at.start}, inner: span{start: at.end}, line: s.line(), attributes: token.Copy().Attr},
	})
	return nil
}

func (s *scanner) end(at span) {
	depth := len(s.open)
	last := s.open[depth-1]
	s.open = s.open[:depth-1]
	last.whole.end, last.inner.end = at.end, at.start
	if !last.leaf {
		last.text = ""
	}
	switch {
	case depth == 1:
		s.document.root = last.element
	case depth == 2 && last.name.Space == "":
		s.document.children[last.name.Local] = append(s.document.children[last.name.Local], last.element)
		if last.name.Local == "devices" {
			s.document.devices = last.element
		}
	case depth == 4 && s.open[1].name.Local == "devices" && isDevice(s.open[2].name.Local):
		if s.parts == nil {
			s.parts = map[string]element{}
		}
		s.parts[last.name.Local] = last.element
	case depth == 3 && s.open[1].name.Local == "devices" && last.name.Local == string(DiskDevice):
		s.document.disks = append(s.document.disks, deviceElement{last.element, s.parts})
		s.parts = nil
	case depth == 3 && s.open[1].name.Local == "devices" && last.name.Local == string(InterfaceDevice):
		s.document.interfaces = append(s.document.interfaces, deviceElement{last.element, s.parts})
		s.parts = nil
	case depth == 3 && s.open[1].name.Local == "metadata" && last.name == (xml.Name{Space: Namespace, Local: markName}):
		s.document.marks = append(s.document.marks, last.element)
	}
}

func isDevice(name string) bool { return name == string(DiskDevice) || name == string(InterfaceDevice) }

func (e *element) attribute(name string) string {
	for _, a := range e.attributes {
		if a.Name.Space == "" && a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
