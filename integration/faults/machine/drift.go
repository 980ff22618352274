package machine

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

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
	file := d.Disks()[root]
	made := fmt.Sprintf("%s/%s.%d", path.Dir(cmp.Or(file, WideFolder+"/")), vm, h.changes)
	edit := domxml.DeviceEdit{Kind: domxml.DiskDevice, Key: root}
	switch has := d.Disks()[extra] != ""; {
	case what == script.VirshSnapshot && file != "":
		h.backing[made] = file
		edit.XML = d.rewritten(root, file, made)
	case what == script.VirshPivot && file != "":
		edit.XML = d.rewritten(root, file, made)
	case what == script.VirshCommit && h.backing[file] != "":
		edit.XML = d.rewritten(root, file, h.backing[file])
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
	writeLocal(h, d)
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

// TellRuns lets an agent that begins know what the guests run with. One of an earlier release does not ask for those that have ended.
func TellRuns(h *Machine, old bool) {
	if !old {
		tellLast(h)
	}
	for _, d := range h.Sorted() {
		tellRun(h, d, true)
	}
}

// lastWords are what a guest ran with last that has ended here, as the service keeps them that passes on what libvirt writes down.
type lastWords struct {
	of *Domain
}

// lastHeard is how long an agent has to live after an end until nobody keeps what the guest ran with.
const lastHeard = time.Minute

// keepLast keeps what a guest ran with that has just ended, or left. It ends with the machine's power, as the guests do.
func keepLast(h *Machine, d *Domain) {
	if !h.Drifts || !d.Managed || d.Forgotten {
		return
	}
	if !h.On {
		h.last = nil
		return
	}
	h.last = append(h.last, &lastWords{of: d})
	dropLast(h)
}

// dropLast forgets what is kept now, if the agent that lives now does so a while later.
func dropLast(h *Machine) {
	if !h.hasAgent() {
		return
	}
	agent, told := h.Agent, len(h.last)
	until := h.last[max(told-1, 0):told]
	h.After(lastHeard, func() {
		if agent.IsDead() || len(until) == 0 {
			return
		}
		if at := slices.Index(h.last, until[0]); at >= 0 {
			h.last = slices.Clone(h.last[at+1:])
		}
	})
}

// tellLast lets an agent that begins know what guests ran with last that have ended, before it tells anybody that they are gone. Those that
// have left by a migration ran on.
func tellLast(h *Machine) {
	for _, one := range h.last {
		if d := one.of; d.Reason != "migrated" {
			h.Agent.Saw(hypervisor.Event{
				UUID: d.UUID, Name: d.Name, Kind: hypervisor.EventRan, Ran: &hypervisor.Ran{Epoch: d.Epoch, Devices: d.Devices, Ended: true},
			})
		}
	}
	dropLast(h)
}
