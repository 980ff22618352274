package machine

import (
	"fmt"
	"strings"

	"berth/agent/hypervisor"
	"berth/integration/faults/script"
	"berth/shared/domxml"
)

// Disks are the files that a domain has under its targets.
func (d *Domain) Disks() map[string]string {
	disks := map[string]string{}
	for _, one := range d.Devices {
		if one.Kind == domxml.DiskDevice {
			disks[one.Key] = one.Source.Path
		}
	}
	return disks
}

// Change is somebody who changes with virsh what a guest has while it runs here. It tells whether that was possible: libvirt refuses it
// during a migration, and there is nothing to commit without a snapshot, or to detach.
func Change(h *Machine, vm string, what script.What) bool {
	d := h.Domains[vm]
	if d == nil || !d.Managed || d.State != hypervisor.Running || d.move != nil || d.JobActive || d.Forgotten || len(d.Bindings) > 0 ||
		!h.Up || h.Hung || h.Frozen {
		return false
	}
	const root, extra = "vda", "vdb"
	h.changes++
	path := d.Disks()[root]
	made := fmt.Sprintf("%s/%s.%d", WideFolder, vm, h.changes)
	edit := domxml.DeviceEdit{Kind: domxml.DiskDevice, Key: root}
	switch has := d.Disks()[extra] != ""; {
	case what == script.VirshSnapshot && path != "":
		h.backing[made] = path
		edit.XML = d.rewritten(root, path, made)
	case what == script.VirshPivot && path != "":
		edit.XML = d.rewritten(root, path, made)
	case what == script.VirshCommit && h.backing[path] != "":
		edit.XML = d.rewritten(root, path, h.backing[path])
	case what == script.VirshAttach && !has:
		disk, err := domxml.NewDisk(domxml.Disk{Path: made, Format: "qcow2"}, func(target string) bool { return target != extra })
		if err != nil {
			panic(err)
		}
		edit.Key, edit.XML = extra, disk.XML
	case what == script.VirshDetach && has:
		edit.Key = extra
	default:
		return false
	}
	xml, err := domxml.EditDevices(d.xml, []domxml.DeviceEdit{edit})
	if err != nil {
		panic(err)
	}
	read, err := readXML(xml)
	if err != nil {
		panic(err)
	}
	h.Note(string(what), h.ID, vm, fmt.Sprint(read.Devices[0].Source.Path))
	d.xml, d.Devices, d.Sources = xml, read.Devices, read.Sources
	writeWide(h, d)
	tellRun(h, d, false)
	h.changed(d)
	return true
}

// rewritten is the element of a disk with another file.
func (d *Domain) rewritten(target, from, to string) string {
	for _, one := range d.Devices {
		if one.Kind == domxml.DiskDevice && one.Key == target {
			return strings.ReplaceAll(one.XML, from+"'", to+"'")
		}
	}
	return ""
}

// tellRun lets the agent know what a guest runs with, as the files do that libvirt keeps of their state. Found tells that the agent finds
// it so as it begins.
func tellRun(h *Machine, d *Domain, found bool) {
	if h.Drifts && d.Managed && !d.Forgotten {
		h.deliver(hypervisor.Event{
			UUID: d.UUID, Name: d.Name, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{Epoch: d.Epoch, Devices: d.Devices, Found: found},
		})
	}
}

// TellRuns lets an agent that begins know what the guests run with.
func TellRuns(h *Machine) {
	for _, d := range h.Sorted() {
		tellRun(h, d, true)
	}
}
