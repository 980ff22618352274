package faults

import (
	"context"
	"slices"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// askLimit bounds one question to an agent.
const askLimit = 10 * time.Second

// restart starts VMs that are to be highly available and run nowhere.
func (m *member) restart() {
	snapshot := m.view()
	if !m.facts.Settled(snapshot, m.world.now) {
		return
	}
	ready, _ := evidence.Restartable(m.unheld(snapshot), m.now())
	for _, vm := range m.restarter.Due(ready, m.world.now) {
		if !m.restartOne(vm) {
			m.restarter.Waits(vm.ID, m.world.now)
		}
	}
}

func (m *member) restartOne(vm model.VM) bool {
	snapshot := m.view()
	if m.showing(snapshot, vm) && m.world.bug != SilenceIsDeath {
		return false
	}
	node := m.choose(snapshot, vm, "", nil)
	if node == nil {
		return false
	}
	before := vm.Revision
	evidence.Restarted(&vm, m.now())
	m.beginStart(vm, before, node, true)
	return true
}

// showing tells whether a node shows a VM that is held by nobody, or by one that does not have it.
func (m *member) showing(snapshot *state.Snapshot, vm model.VM) bool {
	moment := m.moment(snapshot)
	if due, _ := evidence.Discardable(moment, &vm); len(due) > 0 {
		return true
	}
	return m.fencer.Showing(moment, vm.ID, false) != "" || len(m.fencer.Strangers(moment, vm, m.facts.Shown(vm.ID))) > 0
}

// follow takes note of what has become of VMs that nothing is done to.
func (m *member) follow() {
	m.takeUp()
	m.discard()
	for _, found := range m.follower.Look(m.moment(m.view())) {
		vm := found.VM
		switch found.Verdict {
		case evidence.StoppedHere:
			m.refuse(vm, func() {
				after := vm
				after.Holder, after.Condition = "", found.Condition
				m.keepBeside(vm, after)
			})
		case evidence.MovedAway:
			m.refuse(vm, func() { m.takeOver(vm, found.Node) })
		case evidence.CameBack:
			m.takeOver(vm, found.Node)
		case evidence.OutOfBand:
			if !vm.Condition.Same(found.Condition) {
				after := vm
				after.Condition = found.Condition
				m.keepBeside(vm, after)
			}
		}
	}
}

func (m *member) keepBeside(before, after model.VM) {
	m.try(state.Command{
		Key: m.world.newKey(), Kind: "follow vm", Caller: "berth", At: m.now(),
		Expect: []state.Expectation{{Table: state.VMs, ID: before.ID, Revision: before.Revision}}, VMs: []model.VM{after},
	}, func(bool) {})
}

// refuse has a VM's holder refuse it for good, if it is not there.
func (m *member) refuse(vm model.VM, then func()) {
	m.perform("refuses", vm.Holder, vm.ID, func(l *life) error { return l.jobs.Refuse(context.Background(), vm.ID, vm.Epoch) }, then)
}

// perform has an agent do a task about a VM, unless it is at that already.
func (m *member) perform(what, node, vm string, task func(l *life) error, then func()) {
	w, s, term, name := m.world, m.sessions[node], m.term, what+" "+node+" "+vm
	if s == nil || m.asking[name] {
		return
	}
	m.asking[name] = true
	w.after(askLimit, func() { delete(m.asking, name) })
	w.down(s, func() {
		l := s.life
		scheduler{world: w, life: l}.Go(func() {
			if err := task(l); err != nil || l.dead {
				return
			}
			w.note(what, l.host.id, vm, "")
			w.up(s, func() {
				if m.term == term {
					then()
				}
			})
		})
	})
}

// discard has the copies discarded that operations had to leave on silent nodes.
func (m *member) discard() {
	moment := m.moment(m.view())
	for _, vm := range moment.VMs() {
		if len(vm.Discards) == 0 || vm.Operation != "" {
			continue
		}
		due, over := evidence.Discardable(moment, &vm)
		if len(over) > 0 {
			m.keepBeside(vm, evidence.WithoutDiscards(vm, over))
			continue
		}
		for _, left := range due {
			m.perform("discards", left.Node, vm.ID, func(l *life) error {
				return l.jobs.Discard(context.Background(), vm.ID, left.Epoch)
			}, func() {
				if now, known := m.view().VM(vm.ID); known {
					m.keepBeside(now, evidence.WithoutDiscards(now, []model.Discard{left}))
				}
			})
		}
	}
}

// takeOver gives a VM that runs on another node than recorded a new epoch there.
func (m *member) takeOver(vm model.VM, node string) {
	record, known := m.view().Node(node)
	if !known {
		return
	}
	at, before := m.now(), vm.Revision
	vm.LastEpoch = vm.EpochsGiven() + 1
	op := operation.Operation{
		ID: m.world.newID("adopt"), Kind: operation.Adopt, Caller: "berth", VM: vm.ID, VMName: vm.Name, Target: node, TargetName: node,
		Epoch: vm.LastEpoch, Phase: operation.Dispatched, Step: 1, Attempt: 1, CreatedAt: at, UpdatedAt: at,
	}
	if vm.Holder != "" && vm.Holder != node {
		op.Source, op.SourceName = vm.Holder, vm.Holder
	}
	vm.Operation, vm.Desired = op.ID, model.Running
	m.begin(operation.Next{Operation: op, VM: vm}, before, state.Expectation{Table: state.Nodes, ID: node, Revision: record.Revision})
}

// waiting are the VMs that are to be highly available and run nowhere, though a node has room for them.
func (w *World) waiting() []model.VM {
	if w.jumped {
		return nil // what the records say of times may not be so for an hour, and what is waited for comes late
	}
	snapshot := w.store.Snapshot()
	used := usage(snapshot)
	return slices.DeleteFunc(snapshot.VMs(), func(vm model.VM) bool {
		roomy := slices.ContainsFunc(w.hosts, func(h *host) bool {
			return h.on && used[h.id]+vm.Spec.Memory <= h.capacity()
		})
		down := vm.HA && vm.Desired == model.Running && vm.Operation == "" && w.truth(vm.ID) == nil
		return !down || !roomy || vm.Restarts >= evidence.MaxRestarts
	})
}
