// Package connected tells which networks a VM is connected to: at its next start, and while it runs. Its record is one place of three:
// a VM that is described by XML has its interfaces there, and people attach and detach some later. It is pure: records go in.
package connected

import (
	"slices"
	"strings"

	"berth/coordinator/model"
	"berth/shared/domxml"
)

// Nowhere is how an edit says that an interface is in no network.
const Nowhere = "in no network"

// AtStart are the networks that the next start of a VM connects it to, ascending, each once. Named are those of its NICs before the plain
// ones of its record; a VM that is described by XML has none of them.
func AtStart(vm *model.VM, named []string) []string {
	return edited(vm.Edits(), byRecord(vm, named, vm.Edits()))
}

// Running are the networks that a VM is connected to while it runs: what its record has been given since counts from its next start on. Of
// a VM that was taken in nobody has kept what it was started with, so its record says it.
func Running(vm *model.VM, named []string) []string {
	if vm.Ran == nil {
		return edited(vm.Drifted(), byRecord(vm, named, vm.Drifted()))
	}
	var ran []nic
	for i := range vm.Ran {
		if one := &vm.Ran[i]; one.Kind == string(domxml.InterfaceDevice) {
			ran = append(ran, nic{one.Key, one.Network})
		}
	}
	return edited(vm.Drifted(), ran)
}

type nic struct{ address, network string }

// byRecord are the interfaces by the record of a VM. Addresses are made up only if an edit is about one: for all VMs of a fleet that is
// dear.
func byRecord(vm *model.VM, named []string, edits []model.DeviceEdit) []nic {
	if vm.Spec.XML != "" || slices.ContainsFunc(edits, ofInterface) {
		if devices, err := (domxml.Spec{XML: vm.Spec.XML, Networks: named}).Devices(vm.ID); err == nil {
			return interfaces(devices)
		}
	}
	if vm.Spec.XML != "" {
		return nil // nothing can be started of it, and the start says why
	}
	nics := make([]nic, 0, len(named))
	for _, network := range named {
		nics = append(nics, nic{network: network})
	}
	return nics
}

func interfaces(devices []domxml.Device) (nics []nic) {
	for i := range devices {
		if one := &devices[i]; one.Kind == domxml.InterfaceDevice {
			nics = append(nics, nic{one.Key, one.Network})
		}
	}
	return nics
}

func ofInterface(edit model.DeviceEdit) bool { return edit.Kind == string(domxml.InterfaceDevice) }

// edited are the networks of interfaces after edits.
func edited(edits []model.DeviceEdit, nics []nic) []string {
	var networks []string
	changed := func(n nic) bool {
		return slices.ContainsFunc(edits, func(e model.DeviceEdit) bool { return ofInterface(e) && strings.EqualFold(e.Key, n.address) })
	}
	for _, one := range nics {
		if one.network != "" && !changed(one) {
			networks = append(networks, one.network)
		}
	}
	for _, edit := range edits {
		if ofInterface(edit) && edit.Is != "" && edit.Is != Nowhere {
			networks = append(networks, edit.Is)
		}
	}
	slices.Sort(networks)
	return slices.Compact(networks)
}
