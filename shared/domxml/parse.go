package domxml

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"libvirt.org/go/libvirtxml"
)

// Info is what Berth needs to know of a domain document.
type Info struct {
	Name        string // empty if the document has none
	UUID        string // empty if the document has none
	Type        string // kvm or qemu
	Arch        string // empty: the node's own
	Machine     string // empty: the hypervisor's default
	MemoryBytes int64  // what the guest is promised: <memory>, not <currentMemory>
	VCPUs       int    // the maximum, not those plugged in at the start
	Passthrough bool   // the guest sees the node's own CPU
}

// Parse reads a domain document and checks what Berth relies on: that it is well formed and within the bounds, that
// libvirt's own model can hold it, and that it says how much memory and how many vCPUs the guest has. It does not judge
// devices; libvirt does. Every error wraps ErrInvalid and names the line where that can be told.
func Parse(text string) (Info, error) {
	document, err := scan(text)
	if err != nil {
		return Info{}, err
	}
	var info Info
	// What a person gets wrong most often comes first: our own errors name element and line, the model's name neither.
	if info.MemoryBytes, err = document.memory(); err != nil {
		return Info{}, err
	}
	if info.VCPUs, err = document.vcpus(); err != nil {
		return Info{}, err
	}
	var model libvirtxml.Domain
	if err := model.Unmarshal(text); err != nil {
		return Info{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	info.Type = model.Type
	if info.Type != "kvm" && info.Type != "qemu" {
		return Info{}, fmt.Errorf("%w: line %d: domain type %q: write type='kvm' or type='qemu'", ErrInvalid, document.root.line, info.Type)
	}
	if info.Name, err = document.optional("name"); err != nil {
		return Info{}, err
	}
	if info.UUID, err = document.optional("uuid"); err != nil {
		return Info{}, err
	}
	if info.UUID != "" && !validUUID(info.UUID) {
		return Info{}, fmt.Errorf("%w: line %d: <uuid> %q: write 8-4-4-4-12 hexadecimal digits, or leave it out",
			ErrInvalid, document.children["uuid"][0].line, info.UUID)
	}
	info.Passthrough = model.CPU != nil && model.CPU.Mode == CPUHostPassthrough
	if model.OS != nil && model.OS.Type != nil {
		info.Arch, info.Machine = model.OS.Type.Arch, model.OS.Type.Machine
	}
	return info, nil
}

func (d *document) optional(name string) (string, error) {
	e, found, err := d.top(name)
	if err != nil || !found {
		return "", err
	}
	return strings.TrimSpace(e.text), nil
}

func (d *document) memory() (int64, error) {
	e, found, err := d.top("memory")
	if err != nil {
		return 0, err
	}
	if !found {
		return 0, fmt.Errorf("%w: no <memory>: say how much the guest gets, for instance <memory unit='MiB'>512</memory>", ErrInvalid)
	}
	number, err := strconv.ParseUint(strings.TrimSpace(e.text), 10, 63)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%w: line %d: <memory> %q: write a whole number above 0", ErrInvalid, e.line, e.text)
	}
	scale, known := unitScale(e.attribute("unit"))
	if !known {
		return 0, fmt.Errorf("%w: line %d: <memory> unit %q: write KiB, MiB, GiB or TiB", ErrInvalid, e.line, e.attribute("unit"))
	}
	if number > math.MaxInt64/scale {
		return 0, fmt.Errorf("%w: line %d: <memory> is beyond any machine", ErrInvalid, e.line)
	}
	return int64(number * scale), nil
}

func (d *document) vcpus() (int, error) {
	e, found, err := d.top("vcpu")
	if err != nil {
		return 0, err
	}
	if !found {
		return 1, nil // libvirt's default
	}
	number, err := strconv.ParseUint(strings.TrimSpace(e.text), 10, 16)
	if err != nil || number == 0 {
		return 0, fmt.Errorf("%w: line %d: <vcpu> %q: write a whole number from 1 to 65535", ErrInvalid, e.line, e.text)
	}
	return int(number), nil
}

// unitScale is libvirt's reading of a memory unit: KiB when there is none, powers of 1024 for K and KiB, of 1000 for KB.
func unitScale(unit string) (uint64, bool) {
	unit = strings.ToLower(unit)
	switch unit {
	case "":
		return 1 << 10, true
	case "b", "byte", "bytes":
		return 1, true
	}
	power := strings.IndexByte("kmgtpe", unit[0]) + 1
	base := uint64(1024)
	switch unit[1:] {
	case "", "ib":
	case "b":
		base = 1000
	default:
		return 0, false
	}
	if power == 0 {
		return 0, false
	}
	scale := uint64(1)
	for range power {
		scale *= base
	}
	return scale, true
}

func validUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if !strings.ContainsRune("0123456789abcdefABCDEF", c) {
				return false
			}
		}
	}
	return true
}
