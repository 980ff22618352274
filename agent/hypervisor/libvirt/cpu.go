package libvirt

import (
	"crypto/sha256"
	"fmt"
	"slices"

	libvirtgo "libvirt.org/go/libvirt"
	"libvirt.org/go/libvirtxml"

	"berth/shared/domxml"
)

// guestCPUs are the CPUs that guests of a node can have.
type guestCPUs struct {
	models []string // named ones, ascending
	host   string   // see hypervisor.HostInfo.HostCPU
}

// readCPUs asks what the kind of guest that this node runs can have.
func (h *Hypervisor) readCPUs(conn *libvirtgo.Connect, capabilitiesXML string) (guestCPUs, error) {
	capabilities, err := domxml.ParseCapabilities(capabilitiesXML)
	if err != nil {
		return guestCPUs{}, err
	}
	machine, err := capabilities.Machine(h.virt)
	if err != nil {
		return guestCPUs{}, nil // it runs no guests; a start there is told why
	}
	text, err := conn.GetDomainCapabilities("", machine.Arch, machine.Type, machine.DomainType, 0)
	if is(err, libvirtgo.ERR_NO_SUPPORT) {
		return guestCPUs{}, nil
	}
	if err != nil {
		return guestCPUs{}, err
	}
	return parseCPUs(text)
}

// parseCPUs reads the domain capabilities. What host-passthrough shows is not told there, but host-model is libvirt's name
// for as much of it as QEMU knows: two nodes where that is the same can exchange guests.
func parseCPUs(text string) (guestCPUs, error) {
	var model libvirtxml.DomainCaps
	if err := model.Unmarshal(text); err != nil {
		return guestCPUs{}, fmt.Errorf("domain capabilities: %w", err)
	}
	var cpus guestCPUs
	if model.CPU == nil {
		return cpus, nil
	}
	passedThrough := false
	for _, mode := range model.CPU.Modes {
		switch {
		case mode.Supported != "yes":
		case mode.Name == "custom":
			for _, named := range mode.Models {
				if named.Usable == "yes" {
					cpus.models = append(cpus.models, named.Name)
				}
			}
		case mode.Name == "host-model":
			cpus.host = fingerprint(model.Arch, mode)
		case mode.Name == "host-passthrough":
			passedThrough = true
		}
	}
	if !passedThrough {
		cpus.host = ""
	}
	slices.Sort(cpus.models)
	cpus.models = slices.Compact(cpus.models)
	return cpus, nil
}

// fingerprint is short and the same for the same CPU: the model's name for people, and a sum of everything.
func fingerprint(arch string, mode libvirtxml.DomainCapsCPUMode) string {
	if len(mode.Models) == 0 {
		return ""
	}
	name := mode.Models[0].Name
	features := make([]string, 0, len(mode.Features))
	for _, feature := range mode.Features {
		features = append(features, feature.Policy+" "+feature.Name)
	}
	slices.Sort(features)
	sum := sha256.Sum256(fmt.Append(nil, arch, "\n", mode.Vendor, "\n", name, "\n", features))
	return fmt.Sprintf("%s-%x", name, sum[:4])
}
