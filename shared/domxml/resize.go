package domxml

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// errParts says that the size of a guest is made of parts, of which nobody has said which is to change.
var errParts = errors.New("its document makes its size of parts")

// Resize writes another size into a domain document: with so much memory, and so many vCPUs plugged in at the start; 0 leaves either as it
// is. Memory is also the most that the guest can have while it runs: it may take all of that before its balloon holds anything back. vCPUs
// that are not plugged in take nothing, so the document's maximum stays, unless more are wanted. Every other byte stays as it was.
func Resize(text string, memory int64, vcpus int) (string, error) {
	document, err := scan(text)
	if err != nil {
		return "", err
	}
	var domain libvirtxml.Domain
	if err := domain.Unmarshal(text); err != nil {
		return "", fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	var edits []edit
	if memory > 0 {
		if part := memoryPart(&domain); part != "" {
			return "", fmt.Errorf("%w, its memory by %s", errParts, part)
		}
		if edits, err = document.resizeMemory(memory); err != nil {
			return "", err
		}
	}
	if vcpus > 0 {
		one, err := document.resizeVCPUs(&domain, vcpus)
		if err != nil {
			return "", err
		}
		edits = append(edits, one...)
	}
	return splice(text, edits), nil
}

func memoryPart(domain *libvirtxml.Domain) string {
	switch {
	case domain.MaximumMemory != nil:
		return "<maxMemory>"
	case domain.CPU != nil && domain.CPU.Numa != nil:
		return "<numa>"
	case domain.Devices != nil && len(domain.Devices.Memorydevs) > 0:
		return "memory devices"
	}
	return ""
}

func (d *document) resizeMemory(memory int64) (edits []edit, err error) {
	size := strconv.FormatUint(uint64(kib(memory)), 10)
	for _, name := range []string{"memory", "currentMemory"} {
		e, found, err := d.top(name)
		if err != nil {
			return nil, err
		}
		if found {
			edits = append(edits, edit{e.whole, tagWithout(&e, name, "unit") + " unit='KiB'>" + size + "</" + name + ">"})
		}
	}
	return edits, nil
}

func (d *document) resizeVCPUs(domain *libvirtxml.Domain, vcpus int) ([]edit, error) {
	most, err := d.vcpus()
	if err != nil {
		return nil, err
	}
	e, found, err := d.top("vcpu")
	parts := ""
	switch {
	case err != nil:
		return nil, err
	case domain.VCPUs != nil:
		parts = "<vcpus>"
	case vcpus > most && domain.CPU != nil && domain.CPU.Topology != nil:
		parts = "<topology>"
	case vcpus > most && domain.CPU != nil && domain.CPU.Numa != nil:
		parts = "<numa>"
	}
	if parts != "" {
		return nil, fmt.Errorf("%w, its vCPUs by %s", errParts, parts)
	}
	if !found {
		if vcpus == most {
			return nil, nil
		}
		return []edit{{span{d.root.inner.start, d.root.inner.start}, "<vcpu>" + strconv.Itoa(vcpus) + "</vcpu>"}}, nil
	}
	current := ""
	if vcpus < most {
		current = " current='" + strconv.Itoa(vcpus) + "'"
	}
	return []edit{{e.whole, tagWithout(&e, "vcpu", "current") + current + ">" + strconv.Itoa(max(vcpus, most)) + "</vcpu>"}}, nil
}

// tagWithout is the start of an element's tag without one of its attributes.
func tagWithout(e *element, name, without string) string {
	var out strings.Builder
	out.WriteString("<" + name)
	for _, a := range e.attributes {
		if a.Name.Space == "" && a.Name.Local != without {
			out.WriteString(" " + a.Name.Local + "=" + `"` + escape(a.Value) + `"`)
		}
	}
	return out.String()
}
