// Package drifts keeps in the records of VMs what people have changed of them beside Berth while they ran, so that the next start, on any
// node and under any leader, uses what ran last; and which node alone has a disk of them. Package drift says where to look and
// compares; this package asks and writes.
package drifts

import (
	"context"
	"reflect"
	"slices"
	"sync"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

const (
	// every is between two looks at guests whose devices have changed.
	every = 500 * time.Millisecond
	// askLimit is how long a node has to tell the devices of a guest: it is asked again.
	askLimit = time.Second
	// lastLimit is how long it has when the guest is about to be stopped. Those that were told last may be older than the last change, and a
	// node that is so busy does not stop it sooner either.
	lastLimit = 10 * time.Second
	// atOnce is how many VMs are looked at in one turn: after an election all are.
	atOnce = 256
	// boundEvery is between two looks at VMs that are bound to their nodes: somebody may have declared the pool that their disks are in.
	boundEvery = 10 * time.Second
)

// Drifts follows them. It is safe for concurrent use.
type Drifts struct {
	*lead.Leader

	mu     sync.Mutex
	shrunk map[string]bool // by ID, VMs with a disk that was smaller than its record when somebody looked last
}

// New makes a Drifts that follows nothing before Follow is called.
func New(leader *lead.Leader) *Drifts { return &Drifts{Leader: leader, shrunk: map[string]bool{}} }

// Follow writes down what has changed, until the context ends.
func (d *Drifts) Follow(ctx context.Context) {
	d.forget()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var due []string // IDs of VMs
	waits, looked := map[string]model.ToldDevices{}, d.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := d.Store.Snapshot()
		if lead.Quarantined(snapshot) != nil || snapshot.FeatureLevel() < state.DriftLevel {
			continue
		}
		changed := d.Inventory.ChangedDevices()
		if d.Now().Sub(looked) >= boundEvery {
			looked = d.Now()
			for _, vm := range snapshot.VMsMarked(model.MarkBound) {
				if _, waiting := waits[vm.ID]; !waiting {
					changed = append(changed, model.ToldDevices{VM: vm.ID})
				}
			}
		}
		for _, told := range changed {
			if _, waiting := waits[told.VM]; !waiting {
				due = append(due, told.VM)
			}
			waits[told.VM] = told
		}
		now := due[:min(len(due), atOnce)]
		due = slices.Clone(due[len(now):])
		for _, id := range now {
			if d.settle(ctx, snapshot, waits[id]) {
				delete(waits, id)
			} else {
				due = append(due, id)
			}
		}
	}
}

// look is what is known now.
func (d *Drifts) look(snapshot *state.Snapshot) *drift.Look {
	return &drift.Look{
		Records: snapshot, At: d.Now(), Shown: d.Inventory.Shown, RanOn: d.Inventory.RanOn,
		Facts: func(node string) model.NodeFacts { return d.Inventory.Facts(node, d.Now()) },
	}
}

// settle looks at one VM. It is false if the VM is to be looked at again: an operation works on it, nothing was stored, or not all of what
// follows is known.
func (d *Drifts) settle(ctx context.Context, snapshot *state.Snapshot, told model.ToldDevices) bool {
	look := d.look(snapshot)
	found := look.Settle(told)
	if found.Ask != "" {
		limited, cancel := context.WithTimeout(ctx, askLimit)
		defer cancel()
		done, err := d.Agents.Perform(limited, found.Ask, lead.Task{Devices: &lead.CopyOf{VM: found.VM.ID, Epoch: found.VM.Epoch}})
		if err == nil {
			found = look.Answered(found, done.Devices)
		} else {
			found = look.Unanswered(found)
		}
	}
	before, after := &found.Before, &found.VM
	grown := found.Grown()
	if !found.Again {
		d.note(told.VM, found.Disks)
	}
	if found.Again || reflect.DeepEqual(*after, *before) && len(grown) == 0 {
		return !found.Again && !found.Unsure
	}
	command := d.resized(before, found.Disks)
	if !reflect.DeepEqual(*after, *before) {
		command.VMs, command.Events = []model.VM{*after}, append(drift.Events(before, after, d.Now(), lead.Berth), command.Events...)
	}
	if !d.Spend(after.Holder) {
		return false
	}
	return d.Try(ctx, command) && !found.Unsure
}

// resized is a command that writes down which disks of a VM somebody has made larger beside Berth, if nobody changes it or them meanwhile.
func (d *Drifts) resized(vm *model.VM, disks []drift.Resized) state.Command {
	command := state.Command{
		Key: d.NewID(), Kind: "follow vm", Caller: lead.Berth, At: d.Now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
	}
	for i := range disks {
		if one := &disks[i]; !one.Shrunk() {
			lead.Change(&command, one.Taken())
			command.Events = append(command.Events, one.Event(vm, command.At, lead.Berth))
		}
	}
	return command
}

// Last is the record of a VM that is about to be stopped, with what its node shows of its devices now.
func (d *Drifts) Last(ctx context.Context, snapshot *state.Snapshot, vm model.VM) model.VM {
	if snapshot.FeatureLevel() < state.DriftLevel {
		return vm
	}
	limited, cancel := context.WithTimeout(ctx, lastLimit)
	defer cancel()
	done, err := d.Agents.Perform(limited, vm.Holder, lead.Task{Devices: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	return d.look(snapshot).Last(vm, done.Devices, err == nil)
}

// Ran is the record of a VM that runs nowhere, with what it ran with last. Its record may have a holder still, which has lost it.
func (d *Drifts) Ran(snapshot *state.Snapshot, vm model.VM) model.VM {
	if snapshot.FeatureLevel() < state.DriftLevel {
		return vm
	}
	return d.look(snapshot).Ran(vm)
}

// Bound is the record of a stopped VM whose devices somebody has changed with Berth, with the node that alone has a disk of it.
func (d *Drifts) Bound(snapshot *state.Snapshot, vm model.VM) model.VM {
	return d.look(snapshot).Bound(vm)
}

// Wrote binds a VM whose start has ended to the node that alone has a disk of it, and says what is to be told of that.
func (d *Drifts) Wrote(snapshot *state.Snapshot, next *operation.Next) []model.Event {
	if snapshot.FeatureLevel() < state.DriftLevel {
		return nil
	}
	before := next.VM
	d.look(snapshot).Wrote(next)
	return drift.Events(&before, &next.VM, d.Now(), lead.Berth)
}

// note keeps in mind whether one of the disks of a VM that were resized beside Berth was made smaller.
func (d *Drifts) note(vm string, resized []drift.Resized) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.ContainsFunc(resized, func(r drift.Resized) bool { return r.Shrunk() }) {
		d.shrunk[vm] = true
	} else {
		delete(d.shrunk, vm)
	}
}

// forget begins anew: the nodes tell a new leader of all disks.
func (d *Drifts) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.shrunk)
}
