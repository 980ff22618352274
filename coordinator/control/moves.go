package control

import (
	"cmp"
	"slices"

	"berth/coordinator/cluster"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// maxMoveAttempts is how often a plan tries to move a VM.
const maxMoveAttempts = 3

// Moves are a plan's moves and how far each has come, from the records alone: so every leader and every reader sees the
// same. Of a drain that runs, VMs that have come to the node since it began are among them.
func Moves(snapshot *state.Snapshot, plan cluster.Plan) []MoveNow {
	last := make(map[string]operation.Operation)
	tried := make(map[string]int)
	for _, op := range snapshot.OperationsOfPlan(plan.ID) { // newest first
		if tried[op.VM]++; tried[op.VM] == 1 {
			last[op.VM] = op
		}
	}
	planned := plan.Moves
	if plan.Kind == cluster.PlanDrain && unfinished(&plan) {
		planned = append(slices.Clip(planned), lateMoves(snapshot, &plan, last)...)
	}
	moves := make([]MoveNow, 0, len(planned))
	for _, move := range planned {
		op, begun := last[move.VM]
		now := MoveNow{Move: move, Operation: op}
		if begun && now.Result == "" {
			now.Target, now.TargetName, now.Attempts = op.Target, op.TargetName, tried[move.VM]
		}
		now.State = stateOf(snapshot, &plan, &now)
		if op.Result == operation.Failed || op.Result == operation.Parked {
			now.Message = op.Message
		}
		moves = append(moves, now)
	}
	return moves
}

// unfinished tells whether anything may still move: the plan runs, or was cancelled and waits for what copies.
func unfinished(plan *cluster.Plan) bool {
	return plan.State == cluster.PlanRunning || plan.State == cluster.PlanCancelled && plan.EndedAt.IsZero()
}

// lateMoves are those of VMs that a draining node got when its plan had been made: their start was under way.
func lateMoves(snapshot *state.Snapshot, plan *cluster.Plan, begun map[string]operation.Operation) []cluster.Move {
	known := make(map[string]bool, len(plan.Moves))
	for i := range plan.Moves {
		known[plan.Moves[i].VM] = true
	}
	var late []cluster.Move
	add := func(id, name string) {
		if known[id] {
			return
		}
		known[id] = true
		vm, _ := snapshot.VM(id)
		late = append(late, cluster.Move{
			VM: id, VMName: name, Source: plan.Node, SourceName: plan.NodeName, Memory: vm.Spec.Memory,
			Reason: "it came to the node after the drain had begun",
		})
	}
	for _, vm := range snapshot.VMsOn(plan.Node) {
		add(vm.ID, vm.Name)
	}
	for id, op := range begun {
		add(id, op.VMName)
	}
	slices.SortFunc(late, func(a, b cluster.Move) int { return cmp.Compare(a.VMName, b.VMName) })
	return late
}

func stateOf(snapshot *state.Snapshot, plan *cluster.Plan, move *MoveNow) string {
	op := &move.Operation
	if move.Result != "" {
		return move.Result
	}
	if op.ID != "" && op.Live() {
		if op.Result == operation.Parked {
			return MoveFailed
		}
		return MoveMoving
	}
	vm, there := snapshot.VM(move.VM)
	here := there && vm.Holder == move.Source
	switch {
	case op.Result == operation.Done && !here:
		return MoveMoved
	case op.ID == "" && move.Stays && (here || !there): // a foreign domain has no record
		return MoveStays
	case !here:
		return MoveGone
	case !plan.State.Live():
		return MoveLeft
	case op.Result == operation.Failed && move.Attempts >= maxMoveAttempts:
		return MoveFailed
	default:
		return MoveWaiting
	}
}
