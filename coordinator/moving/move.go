package moving

import (
	"cmp"
	"slices"

	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// maxAttempts is how often a plan tries to move a VM.
const maxAttempts = 3

// Move is one move of a plan, and how far it has come.
type Move struct {
	model.Move
	State     string              // Waiting, Moving or one of the model's results
	Operation operation.Operation // the last one; no ID: none has begun
	Message   string              // how the last attempt failed
}

// The states of a move that has no result yet.
const (
	Waiting = "waiting"
	Moving  = "moving"
)

// Moves are a plan's moves and how far each has come, from the records alone: so every leader and every reader sees the
// same. While a drain runs, VMs that have come to the node since it began are among them.
func Moves(records Records, plan model.Plan) []Move {
	last := make(map[string]operation.Operation)
	tried := make(map[string]int)
	for _, op := range records.OperationsOfPlan(plan.ID) { // newest first
		if tried[op.VM]++; tried[op.VM] == 1 {
			last[op.VM] = op
		}
	}
	planned := plan.Moves
	if plan.Kind == model.PlanDrain && Unfinished(&plan) {
		planned = append(slices.Clip(planned), lateMoves(records, &plan, last)...)
	}
	moves := make([]Move, 0, len(planned))
	for _, move := range planned {
		op, begun := last[move.VM]
		now := Move{Move: move, Operation: op}
		if begun && now.Result == "" {
			now.Target, now.TargetName, now.Attempts = op.Target, op.TargetName, tried[move.VM]
		}
		now.State = stateOf(records, &plan, &now)
		if op.Result == operation.Failed || op.Result == operation.Parked {
			now.Message = op.Message
		}
		moves = append(moves, now)
	}
	return moves
}

// lateMoves are those of VMs that a draining node got after its plan had been made: their start was under way.
func lateMoves(records Records, plan *model.Plan, begun map[string]operation.Operation) []model.Move {
	known := make(map[string]bool, len(plan.Moves))
	for i := range plan.Moves {
		known[plan.Moves[i].VM] = true
	}
	var late []model.Move
	add := func(id, name string) {
		if known[id] {
			return
		}
		known[id] = true
		vm, _ := records.VM(id)
		late = append(late, model.Move{
			VM: id, VMName: name, Source: plan.Node, SourceName: plan.NodeName, Memory: vm.SizeOn(nil).Memory,
			Reason: "it came to the node after the drain had begun",
		})
	}
	for _, vm := range records.VMsOn(plan.Node) {
		add(vm.ID, vm.Name)
	}
	for id, op := range begun {
		add(id, op.VMName)
	}
	slices.SortFunc(late, func(a, b model.Move) int { return cmp.Compare(a.VMName, b.VMName) })
	return late
}

func stateOf(records Records, plan *model.Plan, move *Move) string {
	op := &move.Operation
	if move.Result != "" {
		return move.Result
	}
	if op.ID != "" && op.Live() {
		if op.Result == operation.Parked {
			return model.MoveFailed
		}
		return Moving
	}
	vm, there := records.VM(move.VM)
	here := there && vm.Holder == move.Source
	switch {
	case op.Result == operation.Done && !here:
		return model.MoveMoved
	case op.ID == "" && move.Stays && (here || !there): // a foreign domain has no record
		return model.MoveStays
	case !here:
		return model.MoveGone
	case !plan.State.Live():
		return model.MoveLeft
	case op.Result == operation.Failed && (move.Attempts >= maxAttempts || op.Code == operation.Unsafe):
		return model.MoveFailed
	default:
		return Waiting
	}
}
