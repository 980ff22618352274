package domxml

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Identity is who a domain is: libvirt's UUID and name, and Berth's mark.
type Identity struct {
	UUID string
	Name string
	Mark Mark
}

// Mark is what Berth leaves in the metadata of every domain that it runs.
type Mark struct {
	Epoch     uint64 // of the VM, when this copy was started or moved here
	Operation string // ID of the operation that brought it here
	Node      string // ID of the node that was to run it
}

// WithIdentity gives a domain document another identity: name, UUID and Berth's mark are replaced or added, and every
// other byte stays as it was. So it serves an administrator's document and, in a migration, libvirt's own, neither of
// which may lose what our model of domain XML does not know.
func WithIdentity(text string, id Identity) (string, error) {
	if err := id.check(); err != nil {
		return "", err
	}
	document, err := scan(text)
	if err != nil {
		return "", err
	}
	if document.root.inner.start == document.root.whole.end {
		return "", fmt.Errorf("%w: the domain is empty", ErrInvalid)
	}
	edits, err := document.identityEdits(id)
	if err != nil {
		return "", err
	}
	return splice(text, edits), nil
}

// edit replaces a part of a document; an empty part is an insertion.
type edit struct {
	at   span
	text string
}

func (d *document) identityEdits(id Identity) ([]edit, error) {
	top := span{d.root.inner.start, d.root.inner.start}
	var edits []edit
	for _, part := range []struct{ name, value string }{{"name", id.Name}, {"uuid", id.UUID}} {
		e, found, err := d.top(part.name)
		if err != nil {
			return nil, err
		}
		text := "<" + part.name + ">" + escape(part.value) + "</" + part.name + ">"
		if found {
			edits = append(edits, edit{e.whole, text})
		} else {
			edits = append(edits, edit{top, "\n  " + text})
		}
	}
	mark := id.Mark.element()
	metadata, found, err := d.top("metadata")
	switch {
	case err != nil:
		return nil, err
	case len(d.marks) > 0:
		edits = append(edits, edit{d.marks[0].whole, mark})
		for _, copied := range d.marks[1:] {
			edits = append(edits, edit{copied.whole, ""})
		}
	case !found:
		edits = append(edits, edit{top, "\n  <metadata>" + mark + "</metadata>"})
	case metadata.inner.start == metadata.whole.end: // <metadata/>
		edits = append(edits, edit{metadata.whole, "<metadata>" + mark + "</metadata>"})
	default:
		edits = append(edits, edit{span{metadata.inner.end, metadata.inner.end}, mark})
	}
	return edits, nil
}

// splice applies edits that do not overlap. Insertions at one place keep their order and come before a replacement there.
func splice(text string, edits []edit) string {
	slices.SortStableFunc(edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.at.start, b.at.start), cmp.Compare(a.at.end, b.at.end))
	})
	var out strings.Builder
	done := 0
	for _, e := range edits {
		out.WriteString(text[done:e.at.start])
		out.WriteString(e.text)
		done = e.at.end
	}
	out.WriteString(text[done:])
	return out.String()
}

func (id Identity) check() error {
	switch {
	case !validUUID(id.UUID):
		return fmt.Errorf("VM ID %q is not a UUID", id.UUID)
	case id.Name == "" || strings.ContainsAny(id.Name, "/\n"):
		return fmt.Errorf("VM name %q: a domain's name is not empty and has no slash or line break", id.Name)
	case id.Mark.Epoch == 0:
		return fmt.Errorf("VM %s has epoch 0: epochs start at 1", id.Name)
	}
	return nil
}

// Prefix is that of the mark's namespace in documents that Berth writes.
const Prefix = "berth"

func (m Mark) element() string {
	return `<` + Prefix + `:` + markName + ` xmlns:` + Prefix + `="` + Namespace + `" epoch="` + strconv.FormatUint(m.Epoch, 10) +
		`" operation="` + escape(m.Operation) + `" node="` + escape(m.Node) + `"/>`
}

// Text is the mark alone, without its namespace, as libvirt takes the metadata of Namespace.
func (m Mark) Text() string {
	return `<` + markName + ` epoch="` + strconv.FormatUint(m.Epoch, 10) +
		`" operation="` + escape(m.Operation) + `" node="` + escape(m.Node) + `"/>`
}

// WithoutMark takes Berth's mark out of a domain document. Every other byte stays as it was.
func WithoutMark(text string) (string, error) {
	document, err := scan(text)
	if err != nil {
		return "", err
	}
	var edits []edit
	for _, mark := range document.marks {
		edits = append(edits, edit{mark.whole, ""})
	}
	return splice(text, edits), nil
}

// Metadata reads Berth's mark from a whole domain document. ok is false when there is none, or none that can be read:
// then the domain is not Berth's.
func Metadata(text string) (mark Mark, ok bool) {
	document, err := scan(text)
	if err != nil || len(document.marks) != 1 {
		return Mark{}, false
	}
	return document.marks[0].mark()
}

// ParseMark reads the mark alone, the text that libvirt returns for the metadata of Namespace.
func ParseMark(text string) (mark Mark, ok bool) {
	var e struct {
		Attributes []xml.Attr `xml:",any,attr"`
	}
	if err := xml.Unmarshal([]byte(text), &e); err != nil {
		return Mark{}, false
	}
	found := element{attributes: e.Attributes}
	return found.mark()
}

func (e *element) mark() (Mark, bool) {
	epoch, err := strconv.ParseUint(e.attribute("epoch"), 10, 64)
	if err != nil || epoch == 0 {
		return Mark{}, false
	}
	return Mark{Epoch: epoch, Operation: e.attribute("operation"), Node: e.attribute("node")}, true
}

func escape(text string) string {
	var out bytes.Buffer
	_ = xml.EscapeText(&out, []byte(text)) // a bytes.Buffer does not fail
	return out.String()
}
