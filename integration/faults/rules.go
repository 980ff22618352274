package faults

import (
	"cmp"

	"berth/agent/hypervisor"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/downtime"
	"berth/integration/faults/machine"
	"berth/integration/faults/phases"
	"berth/integration/faults/promised"
	"berth/integration/faults/resized"
	"berth/integration/faults/stage"
	"berth/shared/units"
)

// rules compare what is committed, and what agents do, with what really is on the hosts (FAULTS.md, "Invariants").
type rules struct {
	*World
	void    map[[2]string]uint64 // by host and VM: the highest epoch that is known not to run there any more
	excused map[string]bool      // VMs whose guest a fault may have ended
	down    downtime.Down
	ran     map[string]bool // VMs that ran when the power of the whole site was cut, and that nobody was asked to do anything about since
	unheard map[string]bool // nodes that were proven to be off when nobody had ever heard them

	spare     map[string]string // by disk: the host whose copy of it is one too many
	reboots   map[string]int    // by VM: the operations that were to restart its guest, less the times that it was asked
	restarted map[string]bool   // VMs whose guest has since the last one of these has begun
	doubted   map[string]uint64 // by VM: the epoch of a copy that nobody knows to be the guest, because the host of its source died
}

func newRules(w *World) *rules {
	return &rules{
		World: w, down: downtime.Down{}, ran: map[string]bool{}, void: map[[2]string]uint64{},
		excused: map[string]bool{}, unheard: map[string]bool{}, reboots: map[string]int{},
		restarted: map[string]bool{}, spare: map[string]string{}, doubted: map[string]uint64{},
	}
}

// checkStep compares one committed step with what was before and with what is on the hosts.
func (r *rules) checkStep(before *state.Snapshot, op *operation.Operation) {
	was, known := before.Operation(op.ID)
	r.Note("phase", string(op.Kind), op.ID, string(op.Phase)+" "+string(op.Result))
	vm, _ := r.store.Snapshot().VM(op.VM)
	resized.Spare(r.spare, op, &vm)
	if op.Phase == operation.Discarding && op.Leftover == op.Target && r.available[op.VM] && r.sourceDied(op) {
		r.doubted[op.VM] = op.Epoch
	}
	switch {
	case !known:
		r.result.Operations++
		r.checkRestored(op)
		if op.Kind == operation.Start && !op.Restart {
			r.killers.Spare(op.VM)
		}
		if !op.Restart {
			delete(r.ran, op.VM)
		}
		if op.Restart {
			r.result.Restarts++
		}
		if op.Kind == operation.Reboot {
			r.reboots[op.VM]++
			r.restarted[op.VM] = false
		}
		if other, live := before.LiveOperationOf(op.VM); live {
			r.Broken("I1", op.ID, "begins while %s works on the VM", other.ID)
		}
	case !was.Live():
		r.Broken("I6", op.ID, "goes on from its end")
	case was.Phase != op.Phase && !phases.Follows(op.Kind, was.Phase, op.Phase):
		r.Broken("I6", op.ID, "goes from %s to %s", was.Phase, op.Phase)
	case op.Step < was.Step:
		r.Broken("I6", op.ID, "its step goes back from %d to %d", was.Step, op.Step)
	}
	if !op.Awaits() && (!known || was.Awaits()) && op.Live() {
		r.checkBound(op)
	}
	if known {
		if node, epoch := phases.Released(&was, op); node != "" {
			r.release(node, op.VM, epoch)
		}
	}
	switch {
	case op.Kind == operation.Start && op.Phase == operation.Dispatched && (!known || was.Step != op.Step):
		r.checkStart(op)
		if working, _ := r.store.Snapshot().StartsOn(op.Target); working > parallelStarts {
			r.Broken("overload", op.ID, "is one of %d starts on %s, which are to be %d", working, op.Target, parallelStarts)
		}
	case op.Phase == operation.Copying && (!known || was.Phase != op.Phase):
		r.checkTicket(op)
	case op.Phase == operation.HandedOver && (!known || was.Phase != op.Phase):
		r.checkHandOver(op)
		r.watchHandOver(op, 0)
	case op.Kind == operation.Reboot && op.Result == operation.Done && !r.restarted[op.VM]:
		r.Broken("reboot", op.ID, "is done, and the guest has not restarted since it began")
	case op.Result == operation.Parked && was.Result != operation.Parked:
		r.Note("parked", op.ID, "", op.Message)
	}
	if !known || was.Target != op.Target {
		r.checkFile(op)
		r.checkRoom(op.Target)
		if r.leader != nil && r.Sizes {
			r.sized.Targets(r.store.Snapshot(), op, r.leader.keeper.factsOf)
		}
	}
}

// release takes note that an epoch is known not to run on a node, and never will again (I4).
func (r *rules) release(node, vm string, epoch uint64) {
	key := [2]string{node, vm}
	r.void[key] = max(r.void[key], epoch)
}

// checkStart is I2: when a start is committed nobody else can run the VM.
func (r *rules) checkStart(op *operation.Operation) {
	r.checkRemoved(op)
	for _, h := range r.hosts {
		d := h.Domains[op.VM]
		if d == nil {
			continue
		}
		if d.State == hypervisor.Running || d.State == hypervisor.Starting {
			r.Broken("I2", op.ID, "a start on %s, epoch %d, is committed while %s has it %s, epoch %d", op.Target, op.Epoch, h.ID, d.State, d.Epoch)
		}
	}
}

func (r *rules) checkHandOver(op *operation.Operation) {
	if d := r.host(op.Source).Domains[op.VM]; d != nil && d.State == hypervisor.Running {
		r.Broken("I2", op.ID, "is handed over while the source runs it")
	}
}

// checkRoom is I7.
func (r *rules) checkRoom(node string) {
	h := r.host(node)
	if h == nil {
		return
	}
	if used := promised.Memory(r.store.Snapshot())[node]; used > units.Bytes(h.Memory) {
		r.Broken("I7", node, "%d bytes are promised of %d", used, h.Memory)
	}
}

// Ordered is asked before an agent's start or resume takes effect (I4).
func (r *rules) Ordered(on *machine.Machine, vm string, epoch uint64, kind string) {
	if void, known := r.void[[2]string{on.ID, vm}]; known && epoch <= void {
		r.Broken("I4", vm, "%s on %s of epoch %d, which is known not to run there since epoch %d was released", kind, on.ID, epoch, void)
	}
}

// Asked is asked when an agent has a guest restart: each operation does that once at most.
func (r *rules) Asked(d *machine.Domain) {
	if r.reboots[d.UUID]--; r.reboots[d.UUID] < 0 {
		r.Broken("reboot", d.UUID, "its guest is asked to restart once more than there were operations for it")
	}
}

// Restarted is told when a guest has restarted in place.
func (r *rules) Restarted(d *machine.Domain) { r.restarted[d.UUID] = true }

// Runs is asked when a guest has got to run: it runs nowhere else, and this is the copy that ran last (I8).
func (r *rules) Runs(d *machine.Domain) {
	for _, h := range r.hosts {
		other := h.Domains[d.UUID]
		if other != nil && other != d && other.State == hypervisor.Running {
			r.Broken("I8", d.UUID, "runs on %s (epoch %d) and on %s (epoch %d)", h.ID, other.Epoch, d.At.ID, d.Epoch)
		}
	}
	if !d.IsWhole() {
		r.Broken("I8", d.UUID, "an old copy runs on %s (epoch %d)", d.At.ID, d.Epoch)
	}
	r.sized.Runs(d, r.store.Snapshot())
	op, _ := r.store.Snapshot().LiveOperationOf(d.UUID)
	r.down.Ends(d.UUID, op.Restart, r.Now, r.result.Back)
	r.killers.Runs(d)
	r.checkDisks(d)
	r.drifted.Runs(d)
	delete(r.shelf.Off, d.UUID)
}

// IsStopping tells whether a VM is to be stopped on a host.
func (r *rules) IsStopping(vm string, on *machine.Machine) bool {
	op, live := r.store.Snapshot().LiveOperationOf(vm)
	return live && op.Kind == operation.Stop && op.Source == on.ID
}

// Ends is asked when an agent has a guest shut down or destroyed: somebody wants that, or another copy is the guest.
func (r *rules) Ends(d *machine.Domain, kind string) {
	if r.IsStopping(d.UUID, d.At) || r.excused[d.UUID] || r.shelf.Torn[d.UUID] {
		return
	}
	if r.doubted[d.UUID] == d.Epoch && d.Epoch > 0 {
		return // it is restarted from its disks; and the copy may stay until its node answers, long after the migration has ended
	}
	if !d.IsWhole() {
		return
	}
	for _, h := range r.hosts {
		if other := h.Domains[d.UUID]; other != nil && d.HasTwin(other) {
			return
		}
	}
	r.Broken("lost", d.UUID, "%s of the only copy, on %s, and no stop was asked for", kind, d.At.ID)
}

// Excuse tells that a fault has ended the guest.
func (r *rules) Excuse(vm string) {
	r.excused[vm] = true
	if r.cause != sitePower {
		delete(r.ran, vm)
	}
	record, _ := r.store.Snapshot().VM(vm)
	counts := record.HA || r.cause == sitePower
	if counts && record.Desired == model.Running && record.Operation == "" {
		r.down.Begins(vm, cmp.Or(r.cause, "reset or fenced"), r.Now)
	}
}

// sourceDied tells that the source's host has lost its power since a migration began.
func (r *rules) sourceDied(op *operation.Operation) bool {
	h := r.host(op.Source)
	return op.Kind == operation.Migrate && (!h.On || h.BootID() != op.SourceBoot)
}

// endedAtSource tells that the guest of a migration has ended on its source.
func (r *rules) endedAtSource(op *operation.Operation) bool {
	h := r.host(op.Source)
	return op.Kind == operation.Migrate && h.Domains[op.VM] == nil && !h.LastLeft(op.VM)
}

// judge compares the records with the hosts when everything has come to rest.
func (r *rules) judge() {
	snapshot := r.store.Snapshot()
	for _, op := range snapshot.LiveOperations() {
		switch {
		case op.Result == operation.Parked && r.sourceDied(&op):
			// Nobody can tell whether the copy on the target is the guest.
		case op.Result == operation.Parked && r.endedAtSource(&op):
			// Its end was seen by nobody. It was no hand-over, so the copy on the target may be older than the disks.
		case r.operationWaits(snapshot, &op):
			// It says what it waits for, and nothing has ended that.
		case op.Result == operation.Parked:
			r.Broken("parked", op.ID, "%s", op.Message)
		default:
			r.Broken("stuck", op.ID, "%s is in phase %s since %s", op.Kind, op.Phase, op.UpdatedAt.Sub(stage.Began))
		}
	}
	if r.quarantined() {
		if !r.quarantineWaits() {
			r.Broken("stuck", "quarantine", "every node could have told what it runs")
		}
		return
	}
	r.judgeNodes(snapshot)
	r.judgeDisks(snapshot)
	r.judgeRemoved()
	records := map[string]model.VM{}
	for _, vm := range snapshot.VMs() {
		records[vm.ID] = vm
		if h := r.host(vm.Holder); h != nil && vm.Operation == "" {
			r.drifted.Judge(&vm, h.Domains[vm.ID])
			r.resized.Judge(snapshot, &vm, h.Domains[vm.ID])
		}
		if vm.Operation != "" || r.shelf.Torn[vm.ID] {
			continue
		}
		if h := r.host(vm.Holder); h != nil && h.Domains[vm.ID] == nil && !r.excused[vm.ID] &&
			(r.byHand.At(vm.ID).IsZero() || !r.vmWaits(snapshot, &vm)) { // somebody has moved it away from a host that is never heard again
			r.Broken("lost", vm.ID, "the record says that %s runs it", vm.Holder)
		}
	}
	for _, h := range r.hosts {
		for _, d := range h.Sorted() {
			vm, known := records[d.UUID]
			if vm.Operation != "" || r.shelf.Torn[d.UUID] {
				continue
			}
			runs, held := d.State == hypervisor.Running || d.State == hypervisor.Starting, vm.Holder == h.ID && !d.ByOwner
			switch {
			case !runs && (!held || vm.Condition.Beside() && d.StandsBeside(r.truth(d.UUID))):
				// A leftover of which the evidence tells, nobody resumes its epoch; or somebody has started it elsewhere, which is told.
			case runs && (vm.Condition.Beside() && vm.Holder == "" || d.Is(machine.ByHand) && !vm.Condition.Is(model.NoCondition)):
				// Somebody has moved or started it: that is said, beside what was said before, and left to people.
			case runs && !r.byHand.At(d.UUID).IsZero() && r.vmWaits(snapshot, &vm):
				// The node that had it cannot be asked.
			case !known:
				r.Broken("record", d.UUID, "%s has it %s, and there is no such VM", h.ID, d.State)
			case vm.Holder != h.ID || vm.Epoch != d.Epoch:
				r.Broken("record", d.UUID, "%s has it %s under epoch %d, and the record says %q, epoch %d", h.ID, d.State, d.Epoch, vm.Holder, vm.Epoch)
			case d.State != hypervisor.Running:
				r.Broken("record", d.UUID, "its holder %s has it %s", h.ID, d.State)
			}
		}
	}
}

// ranAtCut takes note of what is to run again once the power of the whole site is back. What Berth had taken
// for ended, and somebody has started since, is left to people.
func (r *rules) ranAtCut() {
	for _, vm := range r.store.Snapshot().VMs() {
		if _, down := r.down[vm.ID]; down && vm.Desired == model.Running && vm.Holder != "" {
			r.ran[vm.ID] = true
		}
	}
}
