package faults

import (
	"slices"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/units"
)

// follows are the phases that may come after one (I6). Every phase but the last may be its own successor: a cancel and the
// like change the record and not the phase.
var follows = map[operation.Kind]map[operation.Phase][]operation.Phase{
	operation.Start: {
		operation.Queued:     {operation.Dispatched, operation.Placing, operation.Ended},
		operation.Dispatched: {operation.Judging, operation.Placing, operation.Clearing, operation.Ended},
		operation.Judging:    {operation.Placing, operation.Clearing, operation.Ended},
		operation.Placing:    {operation.Queued, operation.Dispatched, operation.Ended},
		operation.Clearing:   {operation.Placing, operation.Ended},
	},
	operation.Adopt: {
		operation.Dispatched: {operation.Judging, operation.Ended},
		operation.Judging:    {operation.Ended},
	},
	operation.Stop: {
		operation.Dispatched: {operation.Judging, operation.Ended},
		operation.Judging:    {operation.Dispatched, operation.Ended},
	},
	operation.Migrate: {
		operation.Preparing:  {operation.Copying, operation.Clearing, operation.Ended},
		operation.Copying:    {operation.HandedOver, operation.Judging, operation.Discarding, operation.Clearing, operation.Ended},
		operation.Judging:    {operation.HandedOver, operation.Discarding, operation.Clearing, operation.Ended},
		operation.HandedOver: {operation.Judging, operation.Discarding, operation.Clearing, operation.Ended},
		operation.Discarding: {operation.Reverting, operation.Judging, operation.Clearing, operation.Ended},
		operation.Reverting:  {operation.Judging, operation.Ended},
		operation.Clearing:   {operation.Ended},
	},
}

// checkStep compares one committed step with what was before and with what is on the hosts.
func (w *World) checkStep(before *state.Snapshot, op *operation.Operation) {
	was, known := before.Operation(op.ID)
	w.note("phase", string(op.Kind), op.ID, string(op.Phase)+" "+string(op.Result))
	switch {
	case !known:
		w.result.Operations++
		if op.Restart {
			w.result.Restarts++
		}
		if other, live := before.LiveOperationOf(op.VM); live {
			w.broken("I1", op.ID, "begins while %s works on the VM", other.ID)
		}
	case !was.Live():
		w.broken("I6", op.ID, "goes on from its end")
	case was.Phase != op.Phase && !slices.Contains(follows[op.Kind][was.Phase], op.Phase):
		w.broken("I6", op.ID, "goes from %s to %s", was.Phase, op.Phase)
	case op.Step < was.Step:
		w.broken("I6", op.ID, "its step goes back from %d to %d", was.Step, op.Step)
	}
	if known {
		w.release(&was, op)
	}
	switch {
	case op.Kind == operation.Start && op.Phase == operation.Dispatched && (!known || was.Step != op.Step):
		w.checkStart(op)
		if working, _ := w.store.Snapshot().StartsOn(op.Target); working > parallelStarts {
			w.broken("overload", op.ID, "is one of %d starts on %s, which are to be %d", working, op.Target, parallelStarts)
		}
	case op.Phase == operation.HandedOver && (!known || was.Phase != op.Phase):
		w.checkHandOver(op)
	case op.Result == operation.Parked && was.Result != operation.Parked:
		w.note("parked", op.ID, "", op.Message)
	}
	if !known || was.Target != op.Target {
		w.checkRoom(op.Target)
	}
}

// release notes what a step takes for proven: that an epoch does not run on a host, and never will again (I4).
func (w *World) release(was, op *operation.Operation) {
	left := func(node string, epoch uint64) {
		key := [2]string{node, op.VM}
		w.void[key] = max(w.void[key], epoch)
	}
	switch {
	case op.Kind == operation.Start && was.Target != "" && (op.Phase == operation.Placing || op.Result == operation.Failed):
		left(was.Target, was.Epoch)
	case op.Kind == operation.Stop && op.Result == operation.Done:
		left(op.Source, op.Epoch)
	case op.Phase == operation.HandedOver && was.Phase != operation.HandedOver:
		left(op.Source, op.SourceEpoch)
	case op.Phase == operation.Reverting:
		left(op.Target, op.Epoch)
	}
}

// checkStart is I2: when a start is committed nobody else can run the VM.
func (w *World) checkStart(op *operation.Operation) {
	for _, h := range w.hosts {
		d := h.domains[op.VM]
		if d == nil || d.byHand {
			continue
		}
		if d.State == hypervisor.Running || d.State == hypervisor.Starting {
			w.broken("I2", op.ID, "a start on %s, epoch %d, is committed while %s has it %s, epoch %d", op.Target, op.Epoch, h.id, d.State, d.Epoch)
		}
	}
}

func (w *World) checkHandOver(op *operation.Operation) {
	if d := w.host(op.Source).domains[op.VM]; d != nil && d.State == hypervisor.Running && !d.byHand {
		w.broken("I2", op.ID, "is handed over while the source runs it")
	}
}

// checkRoom is I7.
func (w *World) checkRoom(node string) {
	h := w.host(node)
	if h == nil {
		return
	}
	if used := usage(w.store.Snapshot())[node]; used > units.Bytes(h.memory) {
		w.broken("I7", node, "%d bytes are promised of %d", used, h.memory)
	}
}

// ordered is asked before an agent's start or resume takes effect (I4).
func (w *World) ordered(h *host, vm string, epoch uint64, kind string) {
	if void, known := w.void[[2]string{h.id, vm}]; known && epoch <= void {
		w.broken("I4", vm, "%s on %s of epoch %d, which is known not to run there since epoch %d was released", kind, h.id, epoch, void)
	}
}

// runs is asked when a guest has got to run: it runs nowhere else, and this is the copy that ran last (I8).
func (w *World) runs(d *domain) {
	for _, h := range w.hosts {
		other := h.domains[d.UUID]
		if other != nil && other != d && other.State == hypervisor.Running && !other.byHand && !d.byHand {
			w.broken("I8", d.UUID, "runs on %s (epoch %d) and on %s (epoch %d)", h.id, other.Epoch, d.host.id, d.Epoch)
		}
	}
	if d.version != d.guest.version {
		w.broken("I8", d.UUID, "an old copy runs on %s (epoch %d)", d.host.id, d.Epoch)
	}
	d.guest.version++
	d.version = d.guest.version
	d.guest.running = d
}

// isStopping tells whether a VM is to be stopped on a host.
func (w *World) isStopping(vm string, on *host) bool {
	op, live := w.store.Snapshot().LiveOperationOf(vm)
	return live && op.Kind == operation.Stop && op.Source == on.id
}

// ends is asked when an agent has a guest shut down or destroyed: somebody wants that, or another copy is the guest.
func (w *World) ends(d *domain, kind string) {
	if w.isStopping(d.UUID, d.host) || w.excused[d.UUID] {
		return
	}
	op, live := w.store.Snapshot().LiveOperationOf(d.UUID)
	if live && w.available[d.UUID] && w.sourceDied(&op) {
		return // nobody knows whether the copy on the target is the guest: it is restarted from its disks
	}
	if d.version != d.guest.version {
		return
	}
	for _, h := range w.hosts {
		if other := h.domains[d.UUID]; other != nil && other != d && other.guest == d.guest && other.version == d.guest.version {
			return
		}
	}
	w.broken("lost", d.UUID, "%s of the only copy, on %s, and no stop was asked for", kind, d.host.id)
}

// excuse tells that a fault has ended the guest.
func (w *World) excuse(vm string) { w.excused[vm] = true }

// sourceDied tells that the source's host has lost its power since a migration began.
func (w *World) sourceDied(op *operation.Operation) bool {
	h := w.host(op.Source)
	return op.Kind == operation.Migrate && (!h.on || h.bootID() != op.SourceBoot)
}

// judge compares the records with the hosts when everything has come to rest.
func (w *World) judge() {
	snapshot := w.store.Snapshot()
	for _, op := range snapshot.LiveOperations() {
		switch {
		case op.Result == operation.Parked && w.sourceDied(&op):
			// Nobody can tell whether the copy on the target is the guest.
		case op.Result == operation.Parked:
			w.broken("parked", op.ID, "%s", op.Message)
		default:
			w.broken("stuck", op.ID, "%s is in phase %s since %s", op.Kind, op.Phase, op.UpdatedAt.Sub(began))
		}
	}
	w.judgeNodes(snapshot)
	records := map[string]model.VM{}
	for _, vm := range snapshot.VMs() {
		records[vm.ID] = vm
		if vm.Operation != "" {
			continue
		}
		if h := w.host(vm.Holder); h != nil && h.domains[vm.ID] == nil && !w.excused[vm.ID] {
			w.broken("lost", vm.ID, "the record says that %s runs it", vm.Holder)
		}
	}
	for _, h := range w.hosts {
		for _, d := range h.sorted() {
			vm, known := records[d.UUID]
			if d.byHand || vm.Operation != "" {
				continue
			}
			runs, held := d.State == hypervisor.Running || d.State == hypervisor.Starting, vm.Holder == h.id && !d.byOwner
			switch {
			case !runs && !held:
				// A leftover of which the evidence tells; nobody resumes its epoch.
			case !known:
				w.broken("record", d.UUID, "%s has it %s, and there is no such VM", h.id, d.State)
			case vm.Holder != h.id || vm.Epoch != d.Epoch:
				w.broken("record", d.UUID, "%s has it %s under epoch %d, and the record says %q, epoch %d", h.id, d.State, d.Epoch, vm.Holder, vm.Epoch)
			case d.State != hypervisor.Running:
				w.broken("record", d.UUID, "its holder %s has it %s", h.id, d.State)
			}
		}
	}
}
