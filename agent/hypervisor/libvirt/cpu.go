package libvirt

import (
	libvirtgo "libvirt.org/go/libvirt"

	"berth/shared/domxml"
)

// readCPUs asks what the kind of guest that this node runs can have.
func (h *Hypervisor) readCPUs(conn *libvirtgo.Connect, capabilitiesXML string) (domxml.GuestCPUs, error) {
	capabilities, err := domxml.ParseCapabilities(capabilitiesXML)
	if err != nil {
		return domxml.GuestCPUs{}, err
	}
	machine, err := capabilities.Machine(h.virt)
	if err != nil {
		return domxml.GuestCPUs{}, nil // it runs no guests; a start there is told why
	}
	text, err := conn.GetDomainCapabilities("", machine.Arch, machine.Type, machine.DomainType, 0)
	if is(err, libvirtgo.ERR_NO_SUPPORT) {
		return domxml.GuestCPUs{}, nil
	}
	if err != nil {
		return domxml.GuestCPUs{}, err
	}
	return domxml.ParseCPUs(text)
}
