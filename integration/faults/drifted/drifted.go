// Package drifted compares what guests of the simulator run with, after people have changed it with virsh, with what their records say and
// with what they are started with next.
package drifted

import (
	"maps"

	"berth/coordinator/model"
	"berth/integration/faults/machine"
	"berth/integration/faults/script"
)

// Guests are those of a site. What one ran with last is what has its last writes.
type Guests struct {
	Site *machine.Site

	ran  map[string]map[string]string // by VM: its disks, by their targets
	kept map[string]bool              // VMs whose records have that
	late map[string]int               // for how many looks a leader has been told in a row of what the record does not have
}

// New makes those of a site.
func New(site *machine.Site) *Guests {
	return &Guests{Site: site, ran: map[string]map[string]string{}, kept: map[string]bool{}, late: map[string]int{}}
}

// Change is somebody who changes a guest, wherever it runs.
func (g *Guests) Change(machines []*machine.Machine, vm string, what script.What) {
	for _, h := range machines {
		if machine.Change(h, vm, what) {
			g.Site.Draw(script.Drift)
			g.ran[vm] = h.Domains[vm].Disks()
			g.kept[vm] = false
		}
	}
}

// Runs is told when a guest has got to run. It has the disks that it ran with last, if the record had them: nobody has asked for others.
func (g *Guests) Runs(d *machine.Domain) {
	if !g.Site.Drifts {
		return
	}
	is := d.Disks()
	if was, known := g.ran[d.UUID]; known && g.kept[d.UUID] && !maps.Equal(is, was) {
		g.Site.Broken("drift", d.UUID, "runs on %s with %v, and ran with %v last, as its record had it", d.At.ID, is, was)
	}
	g.ran[d.UUID] = is
}

// Recorded is told of the records of VMs that are stored.
func (g *Guests) Recorded(vms []model.VM) {
	for i := range vms {
		if ran, known := g.ran[vms[i].ID]; known {
			g.recorded(&vms[i], ran)
		}
	}
}

func (g *Guests) recorded(vm *model.VM, ran map[string]string) {
	if Next(vm)["?"] != "" {
		g.Site.Broken("drift", vm.ID, "is to be started with an element that its record does not have")
	}
	has := maps.Equal(Next(vm), ran)
	if g.kept[vm.ID] && !has {
		g.Site.Broken("drift", vm.ID, "ran with %v last, and its record says %v from now on", ran, Next(vm))
	}
	g.kept[vm.ID] = has
}

// Next are the disks that a VM is started with by its record, by their targets.
func Next(vm *model.VM) map[string]string {
	disks := map[string]string{}
	for i, disk := range vm.Spec.Disks {
		disks["vd"+string(rune('a'+i))] = disk.Path
	}
	for _, edit := range vm.Edits() {
		switch {
		case edit.Is == "":
			delete(disks, edit.Key)
		case edit.XML == "":
			disks["?"] = edit.Key
		default:
			disks[edit.Key] = edit.Source.Path
		}
	}
	return disks
}

// Starts is told of a start that a leader begins, with the record that it begins with and what it knows of a node. What that has told of
// the guest's end counts.
func (g *Guests) Starts(vm *model.VM, epoch uint64, node *model.NodeFacts) {
	run, told := node.LastRuns[vm.ID]
	if told && run.Epoch == epoch && maps.Equal(disks(run.Devices), g.ran[vm.ID]) && !maps.Equal(Next(vm), g.ran[vm.ID]) {
		g.Site.Broken("drift", vm.ID, "is started with %v, and its node has told that it ran with %v last", Next(vm), g.ran[vm.ID])
	}
}

// tooLate is for how many looks a change may be told and not written down: a question to its node may be lost, and the disk be slow.
const tooLate = 180

// Told is asked at each look of a leader whether it may be that the record does not have what the VM's node shows. Able tells that nothing
// is in the way of asking the node. One that has not listed its guests is waited for.
func (g *Guests) Told(vm *model.VM, facts *model.NodeFacts, able bool) {
	domain := facts.Domain(vm.ID)
	runs := domain != nil && domain.Epoch == vm.Epoch && domain.State == model.DomainRunning
	told := able && facts.DomainsKnown && vm.Operation == "" && runs && maps.Equal(disks(domain.Devices), g.ran[vm.ID])
	if !told || maps.Equal(Next(vm), g.ran[vm.ID]) {
		delete(g.late, vm.ID)
		return
	}
	if g.late[vm.ID]++; g.late[vm.ID] == tooLate {
		g.Site.Broken("drift", vm.ID, "is shown with %v, and its record says %v all the time", g.ran[vm.ID], Next(vm))
	}
}

// Judge compares a guest with the record that has it, when everything has come to rest; nil: it is not there.
func (g *Guests) Judge(vm *model.VM, d *machine.Domain) {
	if !g.Site.Drifts || d == nil || d.Epoch != vm.Epoch || !d.Managed {
		return
	}
	if next := Next(vm); !maps.Equal(next, d.Disks()) {
		g.Site.Broken("drift", vm.ID, "runs with %v, and is started with %v next", d.Disks(), next)
	}
}

func disks(devices []model.Device) map[string]string {
	found := map[string]string{}
	for _, one := range devices {
		if one.Kind == "disk" {
			found[one.Key] = one.Source.Path
		}
	}
	return found
}
