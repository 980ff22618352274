// Package drift compares what a guest runs with and what its record says. People change guests beside Berth: they take snapshots, copy
// disks to another place, attach and detach devices. The running guest is right about itself, so its next start uses what it ran with last.
// It is pure: records and reports go in, and what differs comes out.
package drift

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/shared/domxml"
)

// Baseline are the disks and interfaces that a VM is started with by its record. The error says that its record leads nowhere.
func Baseline(source estate.Source, vm *model.VM) ([]domxml.Device, error) {
	spec, err := estate.SpecOf(source, *vm)
	if err != nil {
		return nil, err
	}
	wanted := domxml.Spec{
		MemoryBytes: int64(spec.Memory), VCPUs: spec.VCPUs, Kernel: spec.Kernel, Networks: spec.Networks, XML: spec.XML,
	}
	for _, one := range spec.Disks {
		wanted.Disks = append(wanted.Disks, domxml.Disk{
			Path: one.Path, Pool: one.Pool, Volume: one.Volume, Format: one.Format, Bus: one.Bus, ReadOnly: one.ReadOnly,
		})
	}
	return wanted.Devices(vm.ID)
}

// Compare tells what of a running guest differs from its baseline, by kind and key. Facts are of the node that shows it: there a file in
// the folder of a pool can be named both ways. An edit has the element of the live device if that is known, else one that is made of what
// is.
func Compare(vm *model.VM, baseline []domxml.Device, live []model.Device, facts *model.NodeFacts) ([]model.DeviceEdit, error) {
	unnamed := slices.ContainsFunc(baseline, func(d domxml.Device) bool { return d.Key == "" })
	seed := strings.TrimSuffix(model.VolumeName(model.SeedID(vm.ID), ""), ".")
	var edits []model.DeviceEdit
	for i := range live {
		one := &live[i]
		at := slices.IndexFunc(baseline, func(d domxml.Device) bool { return is(&d, one.Kind, one.Key) })
		switch {
		case one.Key == "", unnamed && one.Kind == string(domxml.InterfaceDevice): // a document without addresses gets others at each start
			continue
		case strings.HasPrefix(base(one.Source), seed):
			continue // the node adds it to what the record says
		case at >= 0 && same(&baseline[at], one, facts):
			continue
		}
		edit := model.DeviceEdit{Kind: one.Kind, Key: one.Key, Is: liveText(one), Source: one.Source, Media: one.Media, XML: one.XML}
		var old domxml.Device
		if at >= 0 {
			old = baseline[at]
			edit.Was = text(&old)
		}
		if edit.XML == "" {
			made, err := domxml.MakeDevice(old.XML, shared(one))
			if err != nil {
				return nil, err
			}
			edit.XML = made
		}
		edits = append(edits, edit)
	}
	for i := range baseline {
		one := &baseline[i]
		lives := func(d model.Device) bool { return is(one, d.Kind, d.Key) }
		if slices.ContainsFunc(live, lives) || one.Key == "" || unnamed && one.Kind == domxml.InterfaceDevice {
			continue
		}
		edits = append(edits, model.DeviceEdit{Kind: string(one.Kind), Key: one.Key, Was: text(one)})
	}
	slices.SortFunc(edits, func(a, b model.DeviceEdit) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Key, b.Key))
	})
	return edits, bounded(edits)
}

// bounded refuses what is too much for a record.
func bounded(edits []model.DeviceEdit) error {
	length := 0
	for i := range edits {
		length += len(edits[i].XML)
	}
	if len(edits) > model.MaxDriftEdits || length > model.MaxDriftXML {
		return fmt.Errorf("%d devices of it were changed beside Berth, with %d bytes: at most %d and %d bytes are kept", len(edits), length,
			model.MaxDriftEdits, model.MaxDriftXML)
	}
	return nil
}

// After is the record of a VM that ran on a node with these edits, and whether that is news.
func After(vm model.VM, edits []model.DeviceEdit, node string, at time.Time) (after model.VM, news bool) {
	if slices.EqualFunc(edits, vm.Drifted(), alike) && (vm.Drift == nil || vm.Drift.Node == node) {
		return vm, false
	}
	if len(edits) == 0 {
		vm.Drift = nil
		return vm, true
	}
	drift := model.Drift{Node: node, Since: at, Edits: edits}
	if old := vm.Drift; old != nil && slices.EqualFunc(edits, old.Edits, alike) { // it has moved with them
		drift.Since, drift.Accepted, drift.Reverted = old.Since, old.Accepted, old.Reverted
	}
	vm.Drift = &drift
	return vm, true
}

// alike tells whether two edits are the same change: how the element is written does not matter.
func alike(a, b model.DeviceEdit) bool {
	a.XML, b.XML = "", ""
	return a == b
}

// Conflict is why a VM cannot be started with its edits any more, because its record was changed under them; empty: it can.
func Conflict(vm *model.VM, baseline []domxml.Device) string {
	for _, edit := range vm.Edits() {
		at := slices.IndexFunc(baseline, func(d domxml.Device) bool { return is(&d, edit.Kind, edit.Key) })
		now := ""
		if at >= 0 {
			now = text(&baseline[at])
		}
		switch {
		case now == edit.Was, edit.Media: // what is in a drive is no disk that somebody could have written to
		case edit.Is == "" && now == "": // it was detached, and the record has it no more
		default:
			return fmt.Sprintf("%s; since then its record was changed, which has %s there now", edit.Text(), cmp.Or(now, "nothing"))
		}
	}
	return ""
}

func is(device *domxml.Device, kind, key string) bool {
	return string(device.Kind) == kind && strings.EqualFold(device.Key, key)
}

func same(device *domxml.Device, live *model.Device, facts *model.NodeFacts) bool {
	if device.Kind == domxml.InterfaceDevice {
		return device.Network == live.Network
	}
	a, b := model.DiskSource(device.Source), live.Source
	if a == b {
		return true
	}
	if (a.Path == "") != (b.Path == "") {
		volume, file := a, b
		if a.Path != "" {
			volume, file = b, a
		}
		for _, pool := range facts.Pools {
			if pool.Name == volume.Pool && pool.Path != "" {
				return path.Clean(file.Path) == path.Join(pool.Path, volume.Volume)
			}
		}
		return base(volume) == base(file) // the node does not tell where the pool is
	}
	return a.Path != "" && path.Clean(a.Path) == path.Clean(b.Path)
}

// base is the name that a source has in its folder or pool.
func base(source model.DiskSource) string {
	if source.Path == "" {
		return source.Volume
	}
	return path.Base(source.Path)
}

func text(device *domxml.Device) string {
	if device.Kind == domxml.InterfaceDevice {
		return cmp.Or(device.Network, "in no network")
	}
	return sourceText(model.DiskSource(device.Source), device.Media)
}

func liveText(device *model.Device) string {
	if device.Kind == string(domxml.InterfaceDevice) {
		return cmp.Or(device.Network, "in no network")
	}
	return sourceText(device.Source, device.Media)
}

func sourceText(source model.DiskSource, media bool) string {
	switch {
	case source != (model.DiskSource{}):
		return source.Text()
	case media:
		return "empty"
	default:
		return "neither a file nor a volume"
	}
}

func shared(device *model.Device) domxml.Device {
	return domxml.Device{
		Kind: domxml.DeviceKind(device.Kind), Key: device.Key, Source: domxml.Source(device.Source), Format: device.Format,
		Network: device.Network, Media: device.Media,
	}
}

// Events tell what has changed between two records of a VM.
func Events(before, after *model.VM, at time.Time, caller string) []model.Event {
	var events []model.Event
	tell := func(kind, text string) {
		events = append(events, model.Event{At: at, Kind: kind, Subject: "vm/" + after.Name, Caller: caller, Message: text})
	}
	for _, edit := range after.Drifted() {
		if !slices.ContainsFunc(before.Drifted(), func(old model.DeviceEdit) bool { return alike(old, edit) }) {
			tell("vm.changed-beside", edit.Text()+": its next start uses that")
		}
	}
	for _, edit := range before.Drifted() {
		if !slices.ContainsFunc(after.Drifted(), func(now model.DeviceEdit) bool { return now.Kind == edit.Kind && now.Key == edit.Key }) {
			tell("vm.as-recorded", edit.Kind+" "+edit.Key+" is as its record has it again")
		}
	}
	switch {
	case after.Bound != "" && before.Bound == "":
		tell("vm.bound", "a disk of it is in no pool that is declared as shared: it stays on its node")
	case after.Bound == "" && before.Bound != "":
		tell("vm.unbound", "all its disks are in pools that are declared as shared")
	}
	return events
}

// Accepted is a VM whose record has what somebody has changed of it beside Berth. One that is described by XML has it there from now on.
func Accepted(vm model.VM) (model.VM, error) {
	if vm.Spec.XML == "" {
		drift := *vm.Drift
		drift.Accepted, drift.Reverted = true, false
		vm.Drift = &drift
		return vm, nil
	}
	var changes []domxml.DeviceEdit
	for _, edit := range vm.Drift.Edits {
		changes = append(changes, domxml.DeviceEdit{Kind: domxml.DeviceKind(edit.Kind), Key: edit.Key, XML: edit.XML})
	}
	text, err := domxml.EditDevices(vm.Spec.XML, changes)
	if err != nil {
		return vm, err
	}
	vm.Spec.XML, vm.Drift = text, nil
	return vm, nil
}

// Reverted is a VM whose next start uses its record, whatever it has run with.
func Reverted(vm model.VM) model.VM {
	drift := *vm.Drift
	drift.Accepted, drift.Reverted = false, true
	vm.Drift = &drift
	return vm
}
