package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/agent/hypervisor"
	"berth/shared/domxml"
)

// WidePool is a storage pool that is declared as shared, and WideFolder its folder on every machine.
const (
	WidePool   = "wide"
	WideFolder = "/wide"
)

// Bind gives a guest what libvirt does not migrate, or a job of somebody else. It tells whether the guest runs here, and is free.
func Bind(h *Machine, vm string, binding domxml.Binding) (*Domain, bool) {
	d := h.Domains[vm]
	if d == nil || d.State != hypervisor.Running || d.move != nil || d.Forgotten || len(d.Bindings) > 0 || !h.Up || h.Hung || h.Frozen {
		return nil, false
	}
	h.Note("is bound", h.ID, vm, string(binding.Kind))
	d.Bindings, d.BoundAt = []domxml.Binding{binding}, h.Now
	h.changed(d)
	return d, true
}

// Release ends what binds a guest.
func Release(h *Machine, d *Domain) {
	if h.Domains[d.UUID] != d || len(d.Bindings) == 0 {
		return
	}
	h.Note("is released", h.ID, d.UUID, "")
	d.Bindings = []domxml.Binding{}
	h.changed(d)
}

// refuseBound is libvirt's refusal to migrate a guest that is bound; nil: it is not.
func refuseBound(d *Domain) error {
	switch {
	case len(d.Bindings) == 0:
		return nil
	case d.HasJob():
		return fmt.Errorf("%w: domain has active block job", hypervisor.ErrBusy)
	default:
		return fmt.Errorf("%w: domain has assigned non-USB host devices", hypervisor.ErrUnsupported)
	}
}

// HasJob tells whether somebody else's job is at work on a guest.
func (d *Domain) HasJob() bool {
	return slices.ContainsFunc(d.Bindings, func(b domxml.Binding) bool { return b.Kind == domxml.JobBinding })
}

// wideFile is the guest's file in the pool that is declared as shared; empty: it has none.
func (d *Domain) wideFile() string { return wideFile(&d.Domain) }

var errNoFile = errors.New("internal error: cannot access storage file: no such file or directory")

// lacksFile tells whether a domain has a file in that pool which the machine does not have. Before its first guest wrote to it, it is
// everywhere, and so is an old one where such files were left.
func lacksFile(h *Machine, read *hypervisor.Domain) bool {
	file := wideFile(read)
	return file != "" && !h.OldFiles && h.newestFile(file) > 0 && h.files[[2]string{h.Side, file}] == 0
}

func wideFile(d *hypervisor.Domain) string {
	for _, source := range d.Sources {
		if strings.HasPrefix(source.Path, WideFolder+"/") {
			return source.Path
		}
	}
	return ""
}

// writeWide is a guest's writing to its file in the pool that is declared as shared: to what its machine has there.
func writeWide(h *Machine, d *Domain) {
	if file := d.wideFile(); file != "" {
		h.files[[2]string{h.Side, file}] = h.newestFile(file) + 1
	}
}

func (s *Site) newestFile(file string) (writes int) {
	for _, one := range s.machines {
		writes = max(writes, s.files[[2]string{one.Side, file}])
	}
	return writes
}

// HasNewest tells whether what the machine has of a file in the pool that is declared as shared is what was written last.
func HasNewest(h *Machine, file string) bool {
	return h.files[[2]string{h.Side, file}] == h.newestFile(file)
}
