package evidence

import (
	"fmt"
	"slices"

	"berth/coordinator/model"
)

// KeepsMemory tells whether a copy is off and libvirt keeps its memory: 'virsh managedsave' does that, and libvirt-guests may for all
// guests of a host that shuts down. Whoever starts it there lets it run on, also beside a copy that was started elsewhere meanwhile.
func (c Copy) KeepsMemory() bool { return c.Domain.Saved && c.Domain.State == model.DomainShutoff }

// endsMemory says how somebody lets such a copy run on, or gives its memory up.
func (c Copy) endsMemory() string {
	return fmt.Sprintf("'virsh start %s' on %s lets it run on, and 'virsh managedsave-remove %s' there gives its memory up",
		c.argument(), c.Name, c.argument())
}

// keeper is the node that keeps memory of a VM: the one that shows it, or else the one that has told so last and has not listed its domains
// without it since. Empty: none does.
func (s *Survey) keeper(vm *model.VM) string {
	var keepers []string
	for _, one := range s.shownOf(vm.ID) {
		if one.KeepsMemory() && !isLeft(vm, one.Node, &one.Domain) {
			keepers = append(keepers, one.Node)
		}
	}
	told := s.of(vm.Kept)
	switch {
	case slices.Contains(keepers, vm.Kept), told != nil && told.worth != heard:
		return vm.Kept
	case len(keepers) > 0:
		return keepers[0]
	default:
		return ""
	}
}

// keepsMemory tells whether a node keeps memory of a VM as far as is known, and how somebody ends that.
func (h *hearing) keepsMemory(vm *model.VM) (ends string, keeps bool) {
	domain := h.facts.Domain(vm.ID)
	switch {
	case domain != nil && (Copy{Domain: *domain}).KeepsMemory():
		return Copy{Name: h.node.Name, Domain: *domain}.endsMemory(), true
	case vm.Kept == h.node.ID:
		return Copy{Name: h.node.Name, Domain: model.Domain{Name: vm.Name}}.endsMemory(), true
	default:
		return "", false
	}
}

// savedOn is a copy whose memory is kept, on another node than the given one; false: there is none.
func savedOn(copies []Copy, but string) (Copy, bool) {
	at := slices.IndexFunc(copies, func(c Copy) bool { return c.KeepsMemory() && c.Node != but })
	if at < 0 {
		return Copy{}, false
	}
	return copies[at], true
}

// kept says of a VM that runs nowhere that its memory is kept here.
func (c Copy) kept() string {
	return fmt.Sprintf("its memory is saved on %s, so it is started nowhere else: %s", c.Name, c.endsMemory())
}

// keptBeside says of a VM that runs elsewhere that memory of it is kept here.
func (c Copy) keptBeside() string {
	return fmt.Sprintf("%s keeps memory of it from before, with which 'virsh start' or a boot of that host lets it run a second time: "+
		"'virsh managedsave-remove %s' there gives that up", c.Name, c.argument())
}
