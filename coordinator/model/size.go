package model

import (
	"slices"
	"strconv"
	"time"

	"berth/shared/units"
)

// Size is how large a VM is.
type Size struct {
	Memory units.Bytes `json:"memory"`
	VCPUs  int         `json:"vcpus"`
}

// PendingChange is a field of a VM's record that was changed while the VM ran, and takes effect at its next start.
type PendingChange struct {
	Field string    `json:"field"`         // as people call it: memory
	Was   string    `json:"was,omitempty"` // what the VM was started with, in words; empty: nothing
	Next  string    `json:"next,omitempty"`
	By    string    `json:"by"` // caller
	At    time.Time `json:"at"`
}

// MaxPendingText is how long each side of a pending change may be: a record stays small.
const MaxPendingText = 256 // characters

// NextSize is how large the VM will be when it is started again.
func (v *VM) NextSize() Size { return Size{v.Spec.Memory, v.Spec.VCPUs} }

// SizeOn is how large the VM is while a node holds it: as it was started, or larger if the node shows it larger. Domain is what that node
// shows of it; nil: it does not show it. Of a VM that an earlier release has started only the node knows the size; if that does not tell,
// the record has to do.
func (v *VM) SizeOn(domain *Domain) Size {
	size := v.RanSize
	if domain != nil && domain.State.Holds() {
		size.Memory, size.VCPUs = max(size.Memory, v.MemoryOf(domain)), max(size.VCPUs, domain.VCPUs)
	}
	if size.Memory <= 0 {
		size.Memory = v.Spec.Memory
	}
	if size.VCPUs <= 0 {
		size.VCPUs = v.Spec.VCPUs
	}
	return size
}

// ownMemory is what a process of QEMU may have beside the memory of its guest: code, queues of its devices, a screen. Generous, so that no
// guest which keeps to its balloon counts for more than that.
const ownMemory = 512 * units.MiB

// MemoryOf is the memory of a domain that the VM's holder shows: what it was started with, or what its balloon leaves it, if somebody has
// wanted that with Berth. A balloon that is not known counts for nothing, and neither does one that the guest does not keep to: after a
// reboot it has all of its memory until a driver gives it back, and libvirt tells the balloon of before meanwhile.
func (v *VM) MemoryOf(domain *Domain) units.Bytes {
	if !v.Ballooned || domain.Balloon == nil {
		return domain.Memory
	}
	counted := *domain.Balloon
	if domain.Resident != nil && *domain.Resident > counted+ownMemory {
		counted = *domain.Resident
	}
	return min(counted, domain.Memory)
}

// Resize gives the VM another size at its next start, and where it runs, if it does: there too it has that now. A size of 0 is left as it
// is. By is who has wanted it.
func (v *VM) Resize(size Size, by string, at time.Time) {
	now := v.SizeOn(nil)
	field := func(name, text string) {
		if v.Holder == "" {
			return
		}
		v.Pending = slices.DeleteFunc(slices.Clone(v.Pending), func(p PendingChange) bool { return p.Field == name })
		v.Pending = append(v.Pending, PendingChange{Field: name, Was: text, Next: text, By: by, At: at})
	}
	if v.Spec.MaxMemory > 0 {
		v.Spec.MaxMemory = max(v.Spec.MaxMemory, size.Memory)
	}
	if v.Spec.MaxVCPUs > 0 {
		v.Spec.MaxVCPUs = max(v.Spec.MaxVCPUs, size.VCPUs)
	}
	if size.Memory > 0 {
		v.Spec.Memory, now.Memory, v.Ballooned = size.Memory, size.Memory, v.Holder != ""
		field(MemoryField, size.Memory.String())
	}
	if size.VCPUs > 0 {
		v.Spec.VCPUs, now.VCPUs = size.VCPUs, size.VCPUs
		field(VCPUsField, strconv.Itoa(size.VCPUs))
	}
	if v.Holder != "" {
		v.RanSize = now
	}
}

// ChangedLive are the figures of its size that were changed with Berth while it runs, and by whom.
func (v *VM) ChangedLive() []PendingChange {
	if v.Holder == "" {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(v.Pending), func(p PendingChange) bool { return p.Was != p.Next })
}

// Names of the fields of a VM's size.
const (
	MemoryField = "memory"
	VCPUsField  = "vcpus"
)

// Defer keeps changes that were made to the record of a VM that runs. A field that is again what the VM was started with waits no more.
func (v *VM) Defer(changes []PendingChange) {
	for _, change := range changes {
		change.Was, change.Next = shortened(change.Was), shortened(change.Next)
		at := slices.IndexFunc(v.Pending, func(p PendingChange) bool { return p.Field == change.Field })
		if at < 0 {
			v.Pending = append(slices.Clip(v.Pending), change)
			continue
		}
		change.Was = v.Pending[at].Was
		v.Pending = slices.Clone(v.Pending)
		if v.Pending[at] = change; change.Was == change.Next {
			v.Pending = slices.Delete(v.Pending, at, at+1)
		}
	}
	if len(v.Pending) == 0 {
		v.Pending = nil
	}
}

func shortened(text string) string {
	runes := []rune(text)
	if len(runes) <= MaxPendingText {
		return text
	}
	return string(runes[:MaxPendingText-3]) + "..."
}
