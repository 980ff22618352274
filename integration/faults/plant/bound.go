package plant

import (
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/integration/faults/bound"
)

// Binds tells whether a VM cannot move while it runs.
func (b Bug) Binds(snapshot *state.Snapshot, vm *model.VM, facts *model.NodeFacts) bool {
	return b != BoundMoves && bound.Binds(snapshot, vm, facts)
}

// Holds tells whether somebody's job is at work on a VM.
func (b Bug) Holds(_ *state.Snapshot, vm *model.VM, facts *model.NodeFacts) bool {
	return b != JobUnasked && bound.Held(vm, facts)
}
