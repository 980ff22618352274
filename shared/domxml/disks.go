package domxml

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
)

// Attached is a disk of a domain document.
type Attached struct {
	Source

	Target   string // vda ...; unique in a domain
	Format   string // as the document says; empty: it does not
	ReadOnly bool
}

// Source is where a disk's content is: a file or block device of the node, or a volume of one of its pools.
type Source struct {
	Path         string
	Pool, Volume string
}

// Disks lists the disks of a domain document in its order. A drive without a medium has an empty source.
func Disks(text string) ([]Attached, error) {
	document, err := scan(text)
	if err != nil {
		return nil, err
	}
	var disks []Attached
	for _, disk := range document.disks {
		disks = append(disks, disk.attached())
	}
	return disks, nil
}

func (d *deviceElement) attached() Attached {
	source, target, driver := d.parts["source"], d.parts["target"], d.parts["driver"]
	_, readOnly := d.parts["readonly"]
	path := source.attribute("file")
	if path == "" {
		path = source.attribute("dev")
	}
	return Attached{
		Source: Source{Path: path, Pool: source.attribute("pool"), Volume: source.attribute("volume")},
		Target: target.attribute("dev"), Format: driver.attribute("type"), ReadOnly: readOnly,
	}
}

// MoveDisks writes other sources into a domain document, by target, for a node where the content of those disks is
// elsewhere and complete: what a disk was a thin copy of is left out. Every other byte stays as it was. What the guest sees
// of a disk does not depend on its source, so libvirt's ABI check does not mind.
func MoveDisks(text string, to map[string]Source) (string, error) {
	document, err := scan(text)
	if err != nil {
		return "", err
	}
	var edits []edit
	moved := 0
	for _, disk := range document.disks {
		source, wanted := to[disk.attached().Target]
		if !wanted {
			continue
		}
		old, found := disk.parts["source"]
		if !found {
			return "", fmt.Errorf("%w: line %d: disk %s has no source", ErrInvalid, disk.line, disk.attached().Target)
		}
		kind, element := source.element()
		edits = append(edits,
			edit{span{disk.whole.start, disk.inner.start}, disk.startTag(kind)},
			edit{old.whole, element + "<backingStore/>"})
		for _, stale := range []string{"backingStore", "mirror"} {
			if part, found := disk.parts[stale]; found {
				edits = append(edits, edit{part.whole, ""})
			}
		}
		moved++
	}
	if moved != len(to) {
		return "", fmt.Errorf("%w: it has %d of the %d disks that are to be moved", ErrInvalid, moved, len(to))
	}
	return splice(text, edits), nil
}

// element is the source as a document has it, and what that makes the disk's type.
func (s Source) element() (kind, text string) {
	switch {
	case s.Volume != "":
		return "volume", `<source pool="` + escape(s.Pool) + `" volume="` + escape(s.Volume) + `"/>`
	case strings.HasPrefix(s.Path, "/dev/"):
		return "block", `<source dev="` + escape(s.Path) + `"/>`
	default:
		return "file", `<source file="` + escape(s.Path) + `"/>`
	}
}

// startTag is the disk's, with another type.
func (d *deviceElement) startTag(kind string) string {
	attributes := slices.DeleteFunc(slices.Clone(d.attributes), func(a xml.Attr) bool { return a.Name.Local == "type" })
	text := `<disk type="` + kind + `"`
	for _, a := range attributes {
		text += " " + a.Name.Local + `="` + escape(a.Value) + `"`
	}
	return text + ">"
}
