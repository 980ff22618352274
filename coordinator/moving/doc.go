// Package moving decides how VMs are moved for plans: what a pass over a cluster comes to, and which move of a plan that runs
// begins next. The leader and the simulator are shells round it: they give it records and a time, ask placement for the moves
// that it wants to begin, tell it the answers, and store what it has decided.
package moving

import (
	"berth/coordinator/estate"
	"berth/coordinator/model"
	"berth/coordinator/operation"
)

// Records are the hard facts of one moment. A snapshot of the replicated state is one.
type Records interface {
	estate.Facts
	VM(id string) (model.VM, bool)
	VMsOn(node string) []model.VM
	Operation(id string) (operation.Operation, bool)
	LiveOperations() []operation.Operation
	OperationsOfPlan(plan string) []operation.Operation // newest first
}

// Unfinished tells whether anything of a plan may still move: it runs, or was cancelled and waits for VMs that are being copied.
func Unfinished(plan *model.Plan) bool {
	return plan.State == model.PlanRunning || plan.State == model.PlanCancelled && plan.EndedAt.IsZero()
}
