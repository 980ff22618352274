// Package drifts keeps in the records of VMs what people have changed of them beside Berth while they ran, so that the next start, on any
// node and under any leader, uses what ran last; and which node alone has a disk of them. Package drift compares; this package asks and
// writes.
package drifts

import (
	"context"
	"maps"
	"reflect"
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
	for _, vm := range d.Store.Snapshot().VMs() {
		if vm.Bound != "" {
			bound[vm.ID] = true
		}
	}
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
	var after model.VM
	if vm.Holder == "" {
		after = d.atRest(snapshot, vm)
	} else if after, known = d.seen(ctx, snapshot, vm); !known {
		return false
	}
	if reflect.DeepEqual(after, vm) {
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
	return d.compare(snapshot, vm, done.Devices)
}

// seen is the record of a VM with what differs of the guest that its holder shows. It is false if that is to be asked again.
func (d *Drifts) seen(ctx context.Context, snapshot *state.Snapshot, vm model.VM) (model.VM, bool) {
	domain := d.shown(&vm)
	if domain == nil {
		return vm, true
	}
	after := d.compare(snapshot, vm, domain.Devices)
	if after.Drift == nil || after.Drift == vm.Drift {
		return after, true
	}
	// The elements themselves are only asked for where they are needed.
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	done, err := d.Agents.Perform(limited, vm.Holder, lead.Task{Devices: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	switch {
	case err == nil:
		return d.compare(snapshot, vm, done.Devices), true
	case d.shown(&vm) == nil:
		return after, true // it has ended meanwhile: what was told of it will do
	default:
		return vm, false
	}
}

// shown is the domain of a VM as its holder shows it; nil: nothing tells what it runs with.
func (d *Drifts) shown(vm *model.VM) *model.Domain {
	facts := d.Inventory.Facts(vm.Holder, d.Now())
	domain := facts.Domain(vm.ID)
	if domain == nil || !facts.DomainsKnown || domain.Devices == nil || !domain.Managed || domain.Epoch != vm.Epoch ||
		!domain.State.Lives() || domain.State == model.DomainPausedMigration {
		return nil
	}
	return domain
}

// compare is the record of a VM that runs with these devices.
func (d *Drifts) compare(snapshot *state.Snapshot, vm model.VM, live []model.Device) model.VM {
	baseline, err := drift.Baseline(snapshot, &vm)
	if err != nil {
		return vm // a link of it leads nowhere: its next start says so
	}
	facts := d.Inventory.Facts(vm.Holder, d.Now())
	after, _ := drift.After(vm, drift.Compare(&vm, baseline, live, &facts), vm.Holder, d.Now())
	return bind(snapshot, after, vm.Holder, &facts)
}

// atRest is the record of a stopped VM: somebody may have moved its disks, or declared the pool that they are in.
func (d *Drifts) atRest(snapshot *state.Snapshot, vm model.VM) model.VM {
	bound, _ := snapshot.Node(vm.Bound)
	for _, node := range snapshot.Nodes() {
		facts := d.Inventory.Facts(node.ID, d.Now())
		if node.ClusterName() == bound.ClusterName() && facts.Liveness == model.Up && facts.PoolsKnown {
			return bind(snapshot, vm, vm.Bound, &facts)
		}
	}
	return vm
}

// bind is the record of a VM with the node that alone has a disk of it. What is not known leaves it as it is.
func bind(snapshot *state.Snapshot, vm model.VM, node string, facts *model.NodeFacts) model.VM {
	if !facts.PoolsKnown {
		return vm
	}
	record, _ := snapshot.Node(node)
	local, err := drift.LocalDisk(snapshot, &vm, record.ClusterName(), facts)
	switch {
	case err != nil:
	case local != "":
		vm.Bound = node
	default:
		vm.Bound = ""
	}
	return vm
}
