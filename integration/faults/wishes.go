package faults

import (
	"cmp"
	"slices"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/integration/faults/bound"
	"berth/integration/faults/drive"
	"berth/integration/faults/plant"
	"berth/integration/faults/promised"
	"berth/integration/faults/sized"
	"berth/shared/units"
)

// choose is a simple placement: any node that is heard and has room.
func (m *member) choose(snapshot *state.Snapshot, vm model.VM, pinned string, excluded []string) *model.Node {
	var fit []model.Node
	used, size := m.promises(snapshot), m.sizeOf(&vm)
	for _, p := range m.pending { // decisions see the ones before them, as control's do
		promised.Add(used, snapshot, &p.command)
	}
	for _, node := range snapshot.Nodes() {
		h := m.world.host(node.ID)
		heard := m.sessions[node.ID] != nil || m.world.Chance(20)
		if m.world.fencing {
			heard = m.keeper.placeable(&node)
		} else if s := m.sessions[node.ID]; s != nil && s.life.ailing() != "" {
			heard = false
		}
		if !heard || slices.Contains(excluded, node.ID) || pinned != "" && node.ID != pinned || node.ID == vm.Holder ||
			vm.Home != "" && vm.Holder == "" && node.ID != vm.Home ||
			used[node.ID]+size.Memory > h.Capacity() || m.barred(snapshot, &vm, node.ID) {
			continue
		}
		fit = append(fit, node)
	}
	if len(fit) == 0 {
		return nil
	}
	return &fit[m.world.Random.IntN(len(fit))]
}

// parallelStarts is how many starts a host works on at a time: few, so that many runs have a queue.
const parallelStarts = 2

// target is a node for a start, with how many starts come before it there.
func (m *member) target(snapshot *state.Snapshot, vm *model.VM, node *model.Node) operation.Target {
	working, queue := snapshot.StartsOn(node.ID)
	waiting := len(queue) + m.startsUnderWay(snapshot, node.ID, "")
	target := operation.Target{Node: node.ID, Name: node.Name, Boot: node.Boot, Behind: operation.Behind(working, waiting, parallelStarts)}
	if m.world.fencing {
		target.Boot = cmp.Or(m.keeper.moment(snapshot).Boot(node.ID), node.Boot)
	}
	if vm.Home == "" {
		target.Volumes = m.world.resized.Volumes(m.view(), vm)
		target.MakesHome = len(target.Volumes) > 0
	}
	return target
}

// startsUnderWay is how many starts on a node are decided and not in the log yet, of those that come to this phase; empty: any.
func (m *member) startsUnderWay(snapshot *state.Snapshot, node string, phase operation.Phase) (n int) {
	for _, p := range m.pending {
		for i := range p.command.Operations {
			op := &p.command.Operations[i]
			was, _ := snapshot.Operation(op.ID)
			if op.Kind == operation.Start && op.Live() && op.Target == node && was.Target != node && (phase == "" || op.Phase == phase) {
				n++
			}
		}
	}
	return n
}

// start, stop, migrate and cancel are what operators ask for, with the checks that control makes.
func start(m *member, name string, memory units.Bytes) {
	w, snapshot := m.world, m.view()
	vm, exists := snapshot.VMByName(name)
	if !exists && w.shelf.Base != nil {
		return // nobody makes a VM anew that the backup does not know, and that may run
	}
	if !exists {
		id := uuidOf(name)
		last := snapshot.LastEpoch(id)
		vm = model.VM{
			ID: id, Name: name, Spec: model.VMSpec{Memory: memory, VCPUs: 2}, Epoch: last, LastEpoch: last, CreatedAt: m.now(),
			HA: w.available[id],
		}
		sized.Limits(w.Site, &vm.Spec)
		vm.Spec.Disks = bound.DisksOf(w.Site, &vm, w.resized.Volumes(snapshot, &vm), w.shares)
	}
	if w.fencing && m.isToldOf(vm.ID) {
		return
	}
	if vm.Operation != "" || vm.Holder != "" && !w.fencing || w.fencing && !m.keeper.mayStart(snapshot, vm) {
		return
	}
	if vm.Holder != "" { // it has ended beside Berth, and is started once its holder refuses it
		m.keeper.refuse(vm, func() {
			if now, _ := m.view().VM(vm.ID); now.Revision == vm.Revision {
				m.place(bound.AtHome(now))
			}
		})
		return
	}
	m.place(vm)
}

// place begins the start of a VM on a node that has room, if one has.
func (m *member) place(vm model.VM) {
	if node := m.choose(m.view(), vm, "", nil); node != nil && (!m.world.fencing || m.keeper.disksFree(&vm, node.ID)) {
		vm.Restarts, vm.RestartedAt, vm.Losses = 0, time.Time{}, nil
		m.beginStart(vm, vm.Revision, node, false)
	}
}

// beginStart begins a start that was decided, of a VM whose record has the revision.
func (m *member) beginStart(vm model.VM, revision uint64, node *model.Node, restart bool) {
	at := m.now()
	vm = m.ranLast(vm)
	vm.Whereabouts = model.Whereabouts{}
	op := operation.Operation{
		ID: m.world.newID("start"), Kind: operation.Start, Caller: "sim", VM: vm.ID, VMName: vm.Name, Created: revision == 0,
		Memory: vm.Spec.Memory, VCPUs: vm.Spec.VCPUs, Restart: restart, CreatedAt: at,
	}
	next := operation.Place(op, vm, m.target(m.view(), &vm, node), at)
	next.VM.Desired, next.VM.Operation, next.VM.Holder, next.VM.Condition = model.Running, op.ID, "", model.Condition{}
	m.begin(next, revision, drive.Unmoved(node))
}

func stop(m *member, name string, force bool) {
	w, snapshot := m.world, m.view()
	vm, exists := snapshot.VMByName(name)
	if !exists || vm.Operation != "" || vm.Holder == "" || !force && m.tied(snapshot, &vm, w.bug.Holds) {
		return
	}
	op := drive.Stop(w.newID("stop"), &vm, force, m.now())
	if _, unlisted := m.hears(&op); unlisted && w.bug != plant.JobUnasked {
		operation.Await(&op, "has not listed its guests")
	}
	before := vm.Revision
	if w.Drifts { // its node does not answer in time
		vm = lookOf(m.keeper).Last(vm, nil, false)
	}
	vm.Operation = op.ID
	m.begin(operation.Next{Operation: op, VM: vm}, before)
}

// hears tells whether the order of an operation may go out, or waits until its node has listed its guests.
func (m *member) hears(op *operation.Operation) (turn, unlisted bool) {
	if !m.world.fencing {
		return true, false
	}
	facts := m.keeper.facts.Facts(op.Source, m.world.Now)
	return op.Hears(&facts)
}

func reboot(m *member, name string, force bool) {
	w, snapshot := m.world, m.view()
	vm, exists := snapshot.VMByName(name)
	if !exists || vm.Operation != "" || vm.Holder == "" {
		return
	}
	op := drive.Reboot(w.newID("reboot"), &vm, force, m.now())
	if !m.tellable(op, vm) {
		return
	}
	before := vm.Revision
	vm.Operation = op.ID
	m.begin(operation.Next{Operation: op, VM: vm}, before)
}

func migrate(m *member, name string) {
	w, snapshot := m.world, m.view()
	vm, exists := snapshot.VMByName(name)
	if !exists || vm.Operation != "" || vm.Holder == "" || m.sessions[vm.Holder] == nil || w.fencing && m.keeper.stands(&vm) ||
		m.tied(snapshot, &vm, w.bug.Binds) {
		return
	}
	node := m.choose(snapshot, vm, "", nil)
	if node == nil {
		return
	}
	vm.LastEpoch++
	op := drive.Migrate(w.newID("migrate"), &vm, m.sessions[vm.Holder].life.boot, node, w.host(node.ID).URI(), m.now())
	drive.Sized(&op, m.sizeOf(&vm))
	if !m.takeAlong(&op, &vm) {
		return
	}
	w.bug.Begin(&op)
	if !m.tellable(op, vm) {
		return
	}
	before := vm.Revision
	vm.Operation = op.ID
	m.begin(operation.Next{Operation: op, VM: vm}, before, drive.Unmoved(node))
}

// stands tells whether a VM's holder has listed its domains, and does not run it.
func (k *keeper) stands(vm *model.VM) bool {
	facts := k.facts.Facts(vm.Holder, k.world.Now)
	domain := facts.Domain(vm.ID)
	return facts.DomainsKnown && (domain == nil || domain.State != model.DomainRunning)
}

func cancel(m *member, name string) {
	snapshot := m.view()
	vm, _ := snapshot.VMByName(name)
	op, known := snapshot.Operation(vm.Operation)
	if !known || !op.Live() || op.Kind.Bound().Why != "" || op.Result == operation.Parked {
		return
	}
	before := op.Revision
	op.Cancel, op.UpdatedAt = true, m.now()
	m.propose(state.Command{
		Key: m.world.newKey(), Kind: "cancel operation", Caller: "sim", At: op.UpdatedAt,
		Expect:     []state.Expectation{{Table: state.Operations, ID: op.ID, Revision: before}},
		Operations: []operation.Operation{op},
	}, func(result state.Result, err error) {
		if r := m.runners[op.ID]; r != nil && err == nil && result.Refusal == nil {
			r.Wake()
		}
	})
}

func (m *member) begin(next operation.Next, vmRevision uint64, read ...state.Expectation) {
	op := next.Operation
	m.propose(state.Command{
		Key: op.ID, Kind: string(op.Kind) + " vm", Caller: op.Caller, At: op.UpdatedAt,
		Expect: append([]state.Expectation{
			{Table: state.VMs, ID: op.VM, Revision: vmRevision}, {Table: state.Operations, ID: op.ID},
		}, read...),
		VMs: []model.VM{next.VM}, Operations: []operation.Operation{op},
	}, func(result state.Result, err error) {
		switch {
		case err != nil || result.Refusal != nil && result.Refusal.Code == state.Stale:
		case result.Refusal != nil:
			m.world.Broken("refused", op.ID, "an operation was refused: %s", result.Refusal.Message)
		default:
			m.drive(op.ID)
		}
	})
}
