// Package drifts keeps in the records of VMs what people have changed of them beside Berth while they ran, so that the next start, on any
// node and under any leader, uses what ran last; and which node alone has a disk of them. Package drift compares; this package asks and
// writes.
package drifts

import (
	"context"
	"maps"
	"slices"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

const (
	// every is between two looks at guests whose devices have changed.
	every = 500 * time.Millisecond
	// askLimit is how long a node has to tell the devices of a guest that is about to be stopped: those that were told last will do.
	askLimit = time.Second
	// atOnce is how many VMs are looked at in one turn: after an election all are.
	atOnce = 256
	// boundEvery is between two looks at VMs that are bound to their nodes: somebody may have declared the pool that their disks are in.
	boundEvery = 10 * time.Second
)

// Drifts follows them. It is safe for concurrent use.
type Drifts struct{ *lead.Leader }

// New makes a Drifts that follows nothing before Follow is called.
func New(leader *lead.Leader) *Drifts { return &Drifts{Leader: leader} }

// Follow writes down what has changed, until the context ends.
func (d *Drifts) Follow(ctx context.Context) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	var due []string // IDs of VMs
	waits, bound, looked := map[string]bool{}, map[string]bool{}, d.Now()
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
			changed = append(changed, slices.Sorted(maps.Keys(bound))...)
		}
		for _, uuid := range changed {
			if !waits[uuid] {
				due, waits[uuid] = append(due, uuid), true
			}
		}
		now := due[:min(len(due), atOnce)]
		due = slices.Clone(due[len(now):])
		for _, id := range now {
			if d.settle(ctx, snapshot, id) {
				delete(waits, id)
			} else {
				due = append(due, id)
			}
			if vm, _ := d.Store.Snapshot().VM(id); vm.Bound != "" {
				bound[id] = true
			} else {
				delete(bound, id)
			}
		}
	}
}

// settle looks at one VM. It is false if the VM is to be looked at again: an operation works on it, or nothing was stored.
func (d *Drifts) settle(ctx context.Context, snapshot *state.Snapshot, id string) bool {
	vm, known := snapshot.VM(id)
	switch {
	case !known:
		return true // a stranger's
	case vm.Operation != "":
		return false
	}
	after, news := d.Seen(ctx, snapshot, vm, lead.AskLimit)
	if !news {
		return true
	}
	command := state.Command{
		Key: d.NewID(), Kind: "follow vm", Caller: lead.Berth, At: d.Now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: vm.ID, Revision: vm.Revision}},
		VMs:    []model.VM{after}, Events: drift.Events(&vm, &after, d.Now(), lead.Berth),
	}
	return d.Try(ctx, command)
}

// Last is the record of a VM that is about to be stopped, with what its node shows of its devices now.
func (d *Drifts) Last(ctx context.Context, snapshot *state.Snapshot, vm model.VM) model.VM {
	if snapshot.FeatureLevel() < state.DriftLevel {
		return vm
	}
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	done, err := d.Agents.Perform(limited, vm.Holder, lead.Task{Devices: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	if err != nil {
		return vm // what was told before is written down already
	}
	after, _ := d.compare(snapshot, vm, done.Devices)
	return after
}

// Seen is the record of a VM with what differs of the guest that its holder shows, and whether that is news.
func (d *Drifts) Seen(ctx context.Context, snapshot *state.Snapshot, vm model.VM, limit time.Duration) (model.VM, bool) {
	facts := d.Inventory.Facts(vm.Holder, d.Now())
	domain := facts.Domain(vm.ID)
	if vm.Holder == "" || domain == nil || !facts.DomainsKnown || domain.Devices == nil || !domain.Managed || domain.Epoch != vm.Epoch ||
		!domain.State.Lives() || domain.State == model.DomainPausedMigration {
		return vm, false
	}
	after, news := d.compare(snapshot, vm, domain.Devices)
	if !news || after.Drift == nil || after.Drift == vm.Drift {
		return after, news
	}
	// The elements themselves are only asked for where they are needed.
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	done, err := d.Agents.Perform(limited, vm.Holder, lead.Task{Devices: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	if err != nil {
		return after, true // it has ended meanwhile: what was told of it will do
	}
	return d.compare(snapshot, vm, done.Devices)
}

func (d *Drifts) compare(snapshot *state.Snapshot, vm model.VM, live []model.Device) (model.VM, bool) {
	baseline, err := drift.Baseline(snapshot, &vm)
	if err != nil {
		return vm, false // a link of it leads nowhere: its next start says so
	}
	facts := d.Inventory.Facts(vm.Holder, d.Now())
	edits, err := drift.Compare(&vm, baseline, live, &facts)
	if err != nil {
		d.Logger.Warn("what was changed of a VM beside Berth is not kept: its next start does not use it", "vm", vm.Name, "error", err)
		return vm, false
	}
	after, news := drift.After(vm, edits, vm.Holder, d.Now())
	node, _ := snapshot.Node(vm.Holder)
	local, err := drift.LocalDisk(snapshot, snapshot.Resources(model.KindPool), &after, node.ClusterName(), &facts)
	if err != nil {
		return vm, false
	}
	after.Bound = ""
	if local != "" {
		after.Bound = vm.Holder
	}
	return after, news || after.Bound != vm.Bound
}
