package faults

import (
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/plant"
	"berth/integration/faults/promised"
	"berth/integration/faults/script"
	"berth/integration/faults/sized"
	"berth/shared/units"
)

func init() {
	for _, what := range script.VirshSizes {
		beyond[what] = func(w *World, what script.Happening, _ *host) { w.sized.Change(uuidOf(vmName(what.VM)), what) }
	}
}

// acceptSize is somebody who keeps in its record how large a VM runs.
func acceptSize(w *World, what script.Happening, _ *host) {
	vm, known := w.store.Snapshot().VMByName(vmName(what.VM))
	if m := w.leader; m != nil && !m.frozen && known && w.fencing && !w.quarantined() {
		facts := m.keeper.factsOf(vm.Holder)
		if after, news := sized.Accepted(vm, &facts, m.now()); news {
			m.keeper.keepBeside(vm, after)
		}
	}
}

// lookAtSizes compares what this leader promises and shows of guests with what they are.
func lookAtSizes(k *keeper) {
	if k.world.leader == k.member && k.world.bug != plant.SizesUnheeded {
		k.world.sized.Look(k.view(), k.factsOf)
	}
}

// promises is the memory of each node that is given away, as a leader counts it.
func (m *member) promises(snapshot *state.Snapshot) map[string]units.Bytes {
	if !m.world.Sizes || m.world.bug == plant.SizesUnheeded {
		return promised.Memory(snapshot)
	}
	return sized.Promised(snapshot, m.keeper.factsOf, m.world.Now)
}

// sizeOf is how large a VM is where it runs, or is when it is started.
func (m *member) sizeOf(vm *model.VM) model.Size {
	if !m.world.Sizes || vm.Holder == "" || m.world.bug == plant.SizesUnheeded {
		return vm.NextSize()
	}
	facts := m.keeper.factsOf(vm.Holder)
	return vm.SizeOn(facts.Domain(vm.ID))
}
