package plans

import (
	"fmt"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/moving"
	"berth/coordinator/state"
)

// The kinds of the commands that write plans; with a request's key they make it idempotent.
const (
	drainKind   = "drain node"
	undrainKind = "undrain node"
	proposeKind = "propose plan"
	applyKind   = "apply plan"
	discardKind = "discard plan"
	cancelKind  = "cancel plan"
	endKind     = "end plan"
)

// planCommand writes one plan. A new one gets its ID.
func (p *Plans) planCommand(plan *model.Plan, kind string) state.Command {
	if plan.ID == "" {
		plan.ID = p.NewID()
	}
	return state.Command{
		Key: p.NewID(), Kind: kind, Caller: plan.Caller, At: plan.UpdatedAt,
		Expect: []state.Expectation{{Table: state.Plans, ID: plan.ID, Revision: plan.Revision}},
		Plans:  []model.Plan{*plan},
		Events: []model.Event{{
			At: plan.UpdatedAt, Kind: eventOf(plan), Subject: subjectOf(plan), Caller: plan.Caller,
			Message: planText(plan, plan.Reason),
		}},
	}
}

// include writes a plan in a command that changes more.
func (p *Plans) include(command *state.Command, plan *model.Plan, said string) {
	made := p.planCommand(plan, command.Kind)
	made.Events[0].Caller, made.Events[0].Message = command.Caller, planText(plan, said)
	command.Plans, command.Expect = append(command.Plans, *plan), append(command.Expect, made.Expect...)
	command.Events = append(command.Events, made.Events...)
}

// changeNode puts a node into a command that expects its record as it was read.
func changeNode(command *state.Command, node model.Node) {
	command.Nodes = append(command.Nodes, node)
	command.Expect = append(command.Expect, state.Expectation{Table: state.Nodes, ID: node.ID, Revision: node.Revision})
}

// makeRun makes a new plan one that runs as soon as it is committed.
func (p *Plans) makeRun(plan *model.Plan, caller, request string) {
	plan.State, plan.Caller, plan.Request, plan.CreatedAt = model.PlanRunning, caller, request, p.Now()
	plan.UpdatedAt = plan.CreatedAt
}

// replace discards an earlier proposal in the command that keeps the next one.
func replace(command *state.Command, old model.Plan, next *model.Plan) {
	moving.Discard(&old, fmt.Sprintf("plan %s took its place", next.ID), next.CreatedAt)
	command.Expect = append(command.Expect, state.Expectation{Table: state.Plans, ID: old.ID, Revision: old.Revision})
	command.Plans = append(command.Plans, old)
}

func eventOf(plan *model.Plan) string {
	switch {
	case plan.State == model.PlanRunning:
		return "plan.begun"
	case plan.State == model.PlanCancelled && !plan.EndedAt.IsZero():
		return "plan.ended"
	default:
		return "plan." + string(plan.State)
	}
}

// subjectOf is what a plan's events are about.
func subjectOf(plan *model.Plan) string {
	if plan.NodeName != "" {
		return "node/" + plan.NodeName
	}
	return "cluster/" + plan.Cluster
}

func planText(plan *model.Plan, said string) string {
	return fmt.Sprintf("%s plan %s: %s", plan.Kind, plan.ID, said)
}

// proposed is the plan of a kind that waits in a cluster for somebody to apply it.
func proposed(snapshot *state.Snapshot, clusterName string, kind model.PlanKind) (model.Plan, bool) {
	return livePlan(snapshot, func(plan *model.Plan) bool {
		return plan.State == model.PlanProposed && plan.Cluster == clusterName && plan.Kind == kind
	})
}

// running is a plan that is carried out in a cluster.
func running(snapshot *state.Snapshot, clusterName string) (model.Plan, bool) {
	return livePlan(snapshot, func(plan *model.Plan) bool { return plan.State == model.PlanRunning && plan.Cluster == clusterName })
}

func livePlan(snapshot *state.Snapshot, wanted func(*model.Plan) bool) (model.Plan, bool) {
	live := snapshot.LivePlans()
	for i := range live {
		if wanted(&live[i]) {
			return live[i], true
		}
	}
	return model.Plan{}, false
}

// drainOf is the drain of a node that has not ended.
func drainOf(snapshot *state.Snapshot, node string) (model.Plan, bool) {
	return unfinishedOf(snapshot, node, model.PlanDrain)
}

// returnTo is the plan that has not ended and brings VMs back to a node.
func returnTo(snapshot *state.Snapshot, node string) (model.Plan, bool) {
	return unfinishedOf(snapshot, node, model.PlanReturn)
}

func unfinishedOf(snapshot *state.Snapshot, node string, kind model.PlanKind) (model.Plan, bool) {
	plans := snapshot.Plans()
	for i := range plans {
		if plan := &plans[i]; plan.Kind == kind && plan.Node == node && moving.Unfinished(plan) {
			return *plan, true
		}
	}
	return model.Plan{}, false
}

func noPlan(id string) error {
	return &lead.Error{
		Code: lead.NotFound, Subject: "plan/" + id, Message: fmt.Sprintf("there is no plan %q", id), NextStep: "see 'berth plan list'",
	}
}

func noNode(id string) error {
	return &lead.Error{
		Code: lead.NotFound, Subject: "node/" + id, Message: fmt.Sprintf("there is no node %q", id), NextStep: "see 'berth node list'",
	}
}
