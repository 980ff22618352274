package faults

import (
	"berth/agent/hypervisor"
	"berth/coordinator/control/lead"
	"berth/coordinator/drift"
	"berth/coordinator/model"
	"berth/integration/faults/drifted"
	"berth/integration/faults/plant"
	"berth/integration/faults/script"
)

func init() {
	for _, what := range script.VirshChanges {
		beyond[what] = func(w *World, what script.Happening, _ *host) {
			w.drifted.Change(w.machines(), uuidOf(vmName(what.VM)), what.What)
		}
	}
}

// lookOf is what a leader knows now of what guests run with.
func lookOf(k *keeper) *drift.Look {
	return k.world.bug.Unheeded(&drift.Look{Records: k.view(), At: k.now(), Facts: k.factsOf, Shown: k.facts.Shown, RanOn: k.facts.RanOn})
}

// followDrifts writes down from now on what people change of guests, as control does.
func (k *keeper) followDrifts() {
	const what = "tells devices"
	follower := drifted.Follower{
		Look: func() *drift.Look { return lookOf(k) }, Store: k.tryBeside,
		Ask: func(node, vm string, task func(hypervisor.Hypervisor) error, then func()) {
			k.perform(what, node, vm, func(l *life) error { return task(l.host.Libvirt(l)) }, func() {
				delete(k.asking, what+" "+node+" "+vm)
				then()
			})
		},
	}
	k.every(drifted.Every, func() {
		w := k.world
		if lead.Quarantined(k.view()) != nil {
			return
		}
		for _, vm := range k.view().VMs() {
			facts, h := k.factsOf(vm.Holder), w.host(vm.Holder)
			able := w.leader == k.member && h != nil && h.Up && !h.Hung && !h.Frozen && !w.IsCut(h.ID, k.id) && k.sessions[h.ID] != nil
			w.drifted.Told(&vm, &facts, able && !k.doubts(k.sessions[h.ID]))
		}
		if changed := k.facts.ChangedDevices(); w.bug != plant.DriftUnfollowed {
			follower.Turn(changed)
		}
	})
}

// ranLast is the record of a VM that is to be started, with what it ran with last.
func (m *member) ranLast(vm model.VM) model.VM {
	if !m.world.Drifts {
		return vm
	}
	after := lookOf(m.keeper).Ran(vm)
	for _, h := range m.world.hosts {
		facts := m.keeper.factsOf(h.ID)
		m.world.drifted.Starts(&after, vm.Epoch, &facts)
	}
	return after
}
