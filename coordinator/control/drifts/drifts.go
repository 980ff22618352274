// Package drifts keeps in the records of VMs what people have changed of them beside Berth while they ran, so that the next start, on any
// node and under any leader, uses what ran last; and which node alone has a disk of them. Package drift compares; this package asks and
// writes.
package drifts

import (
	"context"
	"reflect"
	"slices"
	"time"

	"berth/coordinator/admission"
	"berth/coordinator/binding"
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
type Drifts struct{ *lead.Leader }

// New makes a Drifts that follows nothing before Follow is called.
func New(leader *lead.Leader) *Drifts { return &Drifts{Leader: leader} }

// Follow writes down what has changed, until the context ends.
func (d *Drifts) Follow(ctx context.Context) {
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
			for _, vm := range snapshot.VMs() {
				if _, waiting := waits[vm.ID]; !waiting && vm.Bound != "" {
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

// settle looks at one VM. It is false if the VM is to be looked at again: an operation works on it, or nothing was stored.
func (d *Drifts) settle(ctx context.Context, snapshot *state.Snapshot, told model.ToldDevices) bool {
	vm, known := snapshot.VM(told.VM)
	op, _ := snapshot.LiveOperationOf(told.VM)
	switch {
	case !known:
		return true // a stranger's
	case vm.Operation != "" && op.Kind != operation.Reboot: // which leaves the guest where it is, with what it has, and takes minutes
		return false
	}
	var after model.VM
	if node := d.runsOn(&vm); node == "" {
		after = d.atRest(snapshot, d.ran(snapshot, vm, vm.LastNode, told))
	} else if after, known = d.seen(ctx, snapshot, vm, node, told); !known {
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
	limited, cancel := context.WithTimeout(ctx, lastLimit)
	defer cancel()
	done, err := d.Agents.Perform(limited, vm.Holder, lead.Task{Devices: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	if err == nil {
		return d.compare(snapshot, vm, vm.Holder, done.Devices)
	}
	if domain, _ := d.shown(&vm, vm.Holder); domain != nil && !amended(&vm) { // it may have been told, and not be written down yet
		return d.compare(snapshot, vm, vm.Holder, domain.Devices)
	}
	return vm
}

// ran is the record of a VM that has ended on a node, with what it ran with: it has written to that. Told is what the node had told while
// it ran, if anything. Another node may tell the end: somebody moved the VM there, and it ended before anybody had written that down.
func (d *Drifts) ran(snapshot *state.Snapshot, vm model.VM, node string, told model.ToldDevices) model.VM {
	if vm.Settled == vm.Epoch {
		return vm
	}
	for _, on := range slices.Backward(d.Inventory.RanOn(vm.ID)) {
		facts := d.Inventory.Facts(on, d.Now())
		if last, ended := facts.LastRuns[vm.ID]; ended && last.Epoch == vm.Epoch {
			return d.compare(snapshot, vm, on, last.Devices)
		}
	}
	if told.Devices != nil && told.Node == node && told.Epoch == vm.Epoch && !amended(&vm) {
		return d.compare(snapshot, vm, node, told.Devices)
	}
	return vm
}

// Ran is the record of a VM that runs nowhere, with what it ran with last. Its record may have a holder still, which has lost it.
func (d *Drifts) Ran(snapshot *state.Snapshot, vm model.VM) model.VM {
	if snapshot.FeatureLevel() < state.DriftLevel {
		return vm
	}
	return d.ran(snapshot, vm, vm.LastNode, model.ToldDevices{})
}

// amended tells whether somebody has changed devices of the VM with Berth. What a node has told may be older than that.
func amended(vm *model.VM) bool { return len(vm.ChangedBeside()) < len(vm.Drifted()) }

// runsOn is the node that a VM is to be looked at on: its holder, or, where that does not have it, the one on which somebody has started
// it beside Berth, or to which somebody has moved it. It writes to its disks there. Empty: it runs nowhere, or on several.
func (d *Drifts) runsOn(vm *model.VM) string {
	if vm.Holder != "" {
		if domain, listed := d.shown(vm, vm.Holder); domain != nil || !listed {
			return vm.Holder
		}
	}
	var found []string
	for _, node := range d.Inventory.Shown(vm.ID) {
		if domain, _ := d.shown(vm, node); domain != nil {
			found = append(found, node)
		}
	}
	if len(found) != 1 {
		return vm.Holder
	}
	return found[0]
}

// seen is the record of a VM with what differs of the guest that a node shows, or of what was told of it before it ended. It is false if
// that is to be asked again.
func (d *Drifts) seen(
	ctx context.Context, snapshot *state.Snapshot, vm model.VM, node string, told model.ToldDevices,
) (model.VM, bool) {
	domain, listed := d.shown(&vm, node)
	if !listed {
		return vm, false // its libvirt was restarted, perhaps, or nobody hears its node: the change is not forgotten meanwhile
	}
	if domain == nil {
		return d.ran(snapshot, vm, node, told), true
	}
	after := d.compare(snapshot, vm, node, domain.Devices)
	if (after.Drift == nil || after.Drift == vm.Drift) && !amended(&vm) {
		return after, true
	}
	// The elements themselves are only asked for where they are needed.
	limited, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	done, err := d.Agents.Perform(limited, node, lead.Task{Devices: &lead.CopyOf{VM: vm.ID, Epoch: vm.Epoch}})
	if err == nil {
		return d.compare(snapshot, vm, node, done.Devices), true
	}
	if domain, listed = d.shown(&vm, node); domain == nil && listed && !amended(&vm) {
		return after, true // it has ended meanwhile: what was told of it will do
	}
	return vm, false
}

// shown is the domain of a VM as a node has shown it last; nil: nothing tells what it runs with. Listed tells whether the node tells now
// what it has.
func (d *Drifts) shown(vm *model.VM, node string) (domain *model.Domain, listed bool) {
	facts := d.Inventory.Facts(node, d.Now())
	domain = facts.Domain(vm.ID)
	if domain == nil || domain.Devices == nil || !domain.Managed || domain.Epoch != vm.Epoch ||
		!domain.State.Lives() || domain.State == model.DomainPausedMigration && node != vm.Holder { // a guest that was restored may stand so, too
		return nil, facts.DomainsKnown
	}
	return domain, facts.DomainsKnown
}

// compare is the record of a VM that runs on a node with these devices.
func (d *Drifts) compare(snapshot *state.Snapshot, vm model.VM, node string, live []model.Device) model.VM {
	baseline, err := drift.Baseline(snapshot, &vm)
	if err != nil {
		return vm // a link of it leads nowhere: its next start says so
	}
	facts := d.Inventory.Facts(node, d.Now())
	record, _ := snapshot.Node(node)
	edits := drift.Compare(&vm, baseline, live, &facts)
	if len(edits) > 0 {
		factsOf := func(id string) model.NodeFacts { return d.Inventory.Facts(id, d.Now()) }
		permitted := admission.Permitted(snapshot, factsOf, record.ClusterName())
		edits = drift.Judged(edits, baseline, permitted)
	}
	after, _ := drift.After(vm, edits, node, d.Now())
	return bind(snapshot, after, node, &facts)
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

// Bound is the record of a stopped VM whose devices somebody has changed with Berth, with the node that alone has a disk of it: the one
// that it ran on last, if any.
func (d *Drifts) Bound(snapshot *state.Snapshot, vm model.VM) model.VM {
	if vm.LastNode == "" {
		return vm
	}
	facts := d.Inventory.Facts(vm.LastNode, d.Now())
	return bind(snapshot, vm, vm.LastNode, &facts)
}

// Started is the record of a VM whose start has ended, with the node that alone has a disk of it, and what is to be told of that: a guest
// writes at once, and the next order may come before anybody has looked at it.
func (d *Drifts) Started(snapshot *state.Snapshot, vm model.VM) (model.VM, []model.Event) {
	if snapshot.FeatureLevel() < state.DriftLevel {
		return vm, nil
	}
	after := d.Bound(snapshot, vm)
	return after, drift.Events(&vm, &after, d.Now(), lead.Berth)
}

// bind is the record of a VM with the node that alone has a disk of it, or alone is to have its document. What is not known leaves it
// as it is.
func bind(snapshot *state.Snapshot, vm model.VM, node string, facts *model.NodeFacts) model.VM {
	if !facts.PoolsKnown {
		return vm
	}
	record, _ := snapshot.Node(node)
	local, err := drift.LocalDisk(snapshot, &vm, record.ClusterName(), facts)
	switch {
	case err != nil:
	case local != "" || binding.Lacks(snapshot, &vm, record.ClusterName()) != "":
		vm.Bound = node
	default:
		vm.Bound = ""
	}
	return vm
}
