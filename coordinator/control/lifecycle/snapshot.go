package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/binding"
	"berth/coordinator/control/drifts"
	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// aboutSnapshot tells whether operations of a kind work on a snapshot.
func aboutSnapshot(kind operation.Kind) bool {
	return kind == operation.Snapshot || kind == operation.Restore || kind == operation.Forget
}

// snapshotting checks what somebody asks for about a snapshot, and writes it into the operation and into the record. The record has it from
// now on, whatever becomes of the operation.
func snapshotting(l *Lifecycle, snapshot *state.Snapshot, op *operation.Operation, vm *model.VM, request ActOnVM) error {
	if snapshot.FeatureLevel() < state.SnapshotLevel {
		return notAllKnow(vm, "work on snapshots")
	}
	off, known := vm.Holder == "", vm.Snapshot(request.Snapshot.Name)
	work := &operation.SnapshotWork{Name: request.Snapshot.Name, Tag: op.ID, Off: off}
	op.Snapshot = work
	if err := snapshotAllowed(vm, known, request); err != nil {
		return err
	}
	if off {
		if err := provenOff(l, snapshot, vm); err != nil {
			return err
		}
		if vm.EpochsGiven() == 0 {
			return snapshotRefused(vm, fmt.Sprintf("start it first: 'berth vm start %s'", vm.Name),
				"VM %q has never run, and has written nothing", vm.Name)
		}
		op.Epoch = vm.EpochsGiven()
		*vm = l.drifts.Ran(snapshot, *vm)
		known = vm.Snapshot(work.Name)
	}
	disks, err := snapshotDisks(l, snapshot, vm, request.Kind)
	if err != nil {
		return err
	}
	switch request.Kind {
	case operation.Snapshot:
		work.Disks, work.Freeze = disks, cmp.Or(request.Snapshot.Freeze, model.FreezeAuto)
		if off && work.Freeze == model.FreezeAlways {
			return snapshotRefused(vm, "leave out --freeze: what does not run writes nothing",
				"VM %q does not run, and has nothing to freeze", vm.Name)
		}
		vm.WithSnapshot(model.Snapshot{
			Name: work.Name, Tag: work.Tag, TakenAt: op.CreatedAt, TakenBy: request.Caller, Description: request.Snapshot.Description,
			Disks: disks, Partial: true,
		})
	case operation.Restore:
		if differs := known.Differs(disks); differs != "" {
			return snapshotRefused(vm, fmt.Sprintf("give it the disks back that it had then, or delete the snapshot: "+
				"'berth vm snapshot delete %s --name %s --force'", vm.Name, known.Name),
				"VM %q has other disks than when snapshot %q was taken: %s", vm.Name, known.Name, differs)
		}
		work.Tag, work.Disks, work.Before = known.Tag, known.Disks, vm.Reverting
		vm.Reverting = known.Name
	default:
		work.Tag, work.Again = known.Tag, known.Partial
		work.Disks, work.Left = stillThere(known.Disks, disks)
		if vm.Reverting == known.Name { // with force alone: its disks stay as they are now
			vm.Reverting = ""
		}
		partial := *known
		partial.Partial = true
		vm.WithSnapshot(partial)
	}
	return snapshotNode(l, snapshot, op, vm)
}

// stillThere are the disks of a snapshot that a VM still has, named as it has them now, and in words those that it has not. A file may be
// named by its path and by its pool.
func stillThere(had, has []model.SnapshotDisk) (still []model.SnapshotDisk, left string) {
	var gone []string
	for _, one := range had {
		at := slices.IndexFunc(has, func(d model.SnapshotDisk) bool {
			return d.Target == one.Target && d.Source.FileName() == one.Source.FileName()
		})
		if at >= 0 {
			still = append(still, has[at])
		} else {
			gone = append(gone, fmt.Sprintf("%s (%s)", one.Target, one.Source.Text()))
		}
	}
	if len(gone) > 0 {
		left = "it stays in the files of disks that the VM has no more: " + strings.Join(gone, ", ")
	}
	return still, left
}

// snapshotAllowed refuses by what the record of a VM says.
func snapshotAllowed(vm *model.VM, known *model.Snapshot, request ActOnVM) error {
	name, take := request.Snapshot.Name, request.Kind == operation.Snapshot
	list := fmt.Sprintf("see 'berth vm snapshot list %s'", vm.Name)
	switch {
	case take && vm.Reverting != "":
		return revertingFirst(vm, "of which nobody takes a snapshot")
	case take && known != nil && known.Partial:
		return snapshotRefused(vm, fmt.Sprintf("remove it with 'berth vm snapshot delete %s --name %s', or choose another name", vm.Name, name),
			"VM %q has a snapshot %q that was not taken or not removed to the end", vm.Name, name)
	case take && known != nil:
		return snapshotRefused(vm, "choose another name; 'berth vm snapshot delete' removes one",
			"VM %q has a snapshot %q already", vm.Name, name)
	case take && len(vm.Snapshots) >= model.MaxSnapshots:
		return snapshotRefused(vm, fmt.Sprintf("delete one: 'berth vm snapshot list %s' shows them", vm.Name),
			"VM %q has %d snapshots, and %d is the most", vm.Name, len(vm.Snapshots), model.MaxSnapshots)
	case take:
		return nil
	case known == nil:
		return &lead.Error{
			Code: lead.NotFound, Subject: "vm/" + vm.Name, Message: fmt.Sprintf("VM %q has no snapshot %q", vm.Name, name), NextStep: list,
		}
	case request.Kind == operation.Forget && vm.Reverting == name && !request.Force:
		return revertingFirst(vm, "so the snapshot is still needed")
	case request.Kind == operation.Forget:
		return nil
	case vm.Holder != "":
		return snapshotRefused(vm, fmt.Sprintf("stop it first: 'berth vm stop %s'", vm.Name),
			"VM %q runs, and its disks are not changed under it", vm.Name)
	case known.Partial:
		return snapshotRefused(vm, list,
			"snapshot %q of VM %q was not taken or not removed to the end: nobody knows what is in it", name, vm.Name)
	}
	return nil
}

// provenOff refuses to work on the disks of a VM as long as it may run somewhere.
func provenOff(l *Lifecycle, snapshot *state.Snapshot, vm *model.VM) error {
	now := scene{snapshot: snapshot, survey: l.surveyOf(snapshot)}
	err := l.accounted(now, vm, startRequest{StartVM: StartVM{Name: vm.Name}})
	early, is := errors.AsType[*earlyError](err)
	switch {
	case errors.Is(err, errAskFirst), is && !l.ViewComplete(snapshot):
		return errNotYet
	case is:
		return early.refusal
	case err != nil:
		return err
	}
	return drifts.DisksFree(now.survey, vm, vm.LastNode)
}

// snapshotDisks are the disks of a VM that can have a snapshot. Unless one is removed, all of them have to.
func snapshotDisks(l *Lifecycle, snapshot *state.Snapshot, vm *model.VM, kind operation.Kind) ([]model.SnapshotDisk, error) {
	baseline, err := drift.Baseline(snapshot, vm)
	if err != nil {
		return nil, Unlinked(*vm, err)
	}
	guest := drift.Guest{VM: vm, Baseline: baseline}
	facts := l.Inventory.Facts(cmp.Or(vm.Holder, vm.LastNode), l.Now())
	if vm.Holder != "" {
		domain := facts.Domain(vm.ID)
		if domain == nil || domain.Devices == nil {
			node := lead.NodeName(snapshot, vm.Holder)
			return nil, &lead.Error{
				Code: lead.Unavailable, Subject: "vm/" + vm.Name,
				Message:  fmt.Sprintf("node %s does not tell which devices VM %q has", node, vm.Name),
				NextStep: fmt.Sprintf("see 'berth node show %s', and try again", node),
			}
		}
		guest.Live = domain.Devices
		if jobs := binding.Jobs(vm, &facts); len(jobs) > 0 {
			return nil, snapshotRefused(vm, "wait until that has ended", "a snapshot would be in the way of what somebody does to VM %q: it %s",
				vm.Name, jobs[0].Text())
		}
	}
	var disks []model.SnapshotDisk
	for _, one := range guest.Written(&facts) {
		why := ""
		switch {
		case one.Source == (model.DiskSource{}), one.Source.Path == "" && one.Source.Volume == "":
			why = "is " + drift.Text(&one)
		case strings.HasPrefix(one.Source.Path, "/dev/"):
			why = "is a block device (" + one.Source.Path + ")"
		case one.Format != "qcow2":
			why = fmt.Sprintf("(%s) is of format %s", one.Source.Text(), cmp.Or(one.Format, "unknown"))
		}
		if why == "" {
			disks = append(disks, model.SnapshotDisk{Target: one.Key, Source: one.Source})
		} else if kind != operation.Forget {
			return nil, snapshotRefused(vm,
				"convert it with 'qemu-img convert -O qcow2' while the VM is off, or keep its content with a backup client",
				"disk %s of VM %q %s, and only qcow2 files keep snapshots", one.Key, vm.Name, why)
		}
	}
	if len(disks) == 0 && kind != operation.Forget {
		return nil, snapshotRefused(vm, fmt.Sprintf("see 'berth vm show %s'", vm.Name), "VM %q has no disk that it writes to", vm.Name)
	}
	return disks, nil
}

// snapshotNode finds the node that does it: the one that runs the VM, or of a VM that is off the one that has its disks, or ran it last, or
// any other that sees them. One that is not heard is not asked: what it does later nobody would expect.
func snapshotNode(l *Lifecycle, snapshot *state.Snapshot, op *operation.Operation, vm *model.VM) error {
	candidates := []string{vm.Holder}
	if vm.Holder == "" {
		candidates = []string{cmp.Or(vm.Bound, vm.Home)}
		for _, id := range vm.Disks {
			if disk, _ := snapshot.Resource(id); candidates[0] == "" && disk.Volume != nil && len(disk.Volume.Nodes) > 0 {
				candidates = disk.Volume.Nodes
			}
		}
		if candidates[0] == "" {
			candidates = []string{vm.LastNode}
			cluster := estate.ClusterOf(snapshot)(vm)
			for _, node := range snapshot.Nodes() {
				if node.ClusterName() == cluster && node.ID != vm.LastNode {
					candidates = append(candidates, node.ID)
				}
			}
		}
	}
	at := slices.IndexFunc(candidates, l.Heard)
	if at < 0 {
		node := lead.NodeName(snapshot, candidates[0])
		return &lead.Error{
			Code: lead.Unavailable, Subject: "vm/" + vm.Name,
			Message:  fmt.Sprintf("node %s, which has the disks of VM %q, is not heard", cmp.Or(node, "unknown"), vm.Name),
			NextStep: fmt.Sprintf("see 'berth node show %s', and try again when it answers", cmp.Or(node, "NODE")),
		}
	}
	op.Source, op.SourceName = candidates[at], lead.NodeName(snapshot, candidates[at])
	return nil
}
