package machine

import (
	"strings"

	"berth/agent/hypervisor"
)

// LocalFolder is where machines have files of guests on their own file systems. What one has there no other one sees, and each has files of
// the same names.
const LocalFolder = "/local"

// localFile is the guest's file on the machine's own file system; empty: it has none.
func localFile(d *hypervisor.Domain) string {
	for _, source := range d.Sources {
		if strings.HasPrefix(source.Path, LocalFolder+"/") {
			return source.Path
		}
	}
	return ""
}

// writeLocal is a guest's writing to its file on the machine. No other machine may have one of that name with more than it has.
func writeLocal(h *Machine, d *Domain) {
	file := localFile(&d.Domain)
	if file == "" {
		return
	}
	here, newest := h.local[file], 0
	for _, one := range h.machines {
		newest = max(newest, one.local[file])
	}
	if here < newest {
		h.Broken("disk", d.UUID, "runs on %s with another file of the name %s: %d writes of %d", h.ID, file, here, newest)
	}
	h.local[file] = newest + 1
}
