package domxml

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"libvirt.org/go/libvirtxml"
)

// GuestCPUs are the CPUs that guests of a node can have.
type GuestCPUs struct {
	Models []string // named ones, ascending
	// Host is the CPU that a guest has which gets all of the host's: the same text means the same CPU. Empty: guests cannot have it.
	Host string
}

// ParseCPUs reads the domain capabilities. What host-passthrough shows is not told there, but host-model is libvirt's name
// for as much of it as QEMU knows: two nodes where that is the same can exchange guests.
func ParseCPUs(text string) (GuestCPUs, error) {
	var model libvirtxml.DomainCaps
	if err := model.Unmarshal(text); err != nil {
		return GuestCPUs{}, fmt.Errorf("domain capabilities: %w", err)
	}
	var cpus GuestCPUs
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
					cpus.Models = append(cpus.Models, named.Name)
				}
			}
		case mode.Name == "host-model":
			cpus.Host = fingerprint(model.Arch, mode)
		case mode.Name == "host-passthrough":
			passedThrough = true
		}
	}
	if !passedThrough {
		cpus.Host = ""
	}
	slices.Sort(cpus.Models)
	cpus.Models = slices.Compact(cpus.Models)
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
