package cli

import (
	"fmt"
	"strconv"

	"berth/coordinator/cluster"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// The states of a move that has not ended; the others are those of its record.
const (
	moveWaiting = "waiting"
	moveMoving  = "moving"
)

// planEnded tells whether nothing more will come of a plan. Of one that was cancelled, moves that copy are let end.
func planEnded(plan *berthv1.Plan) bool {
	state := cluster.PlanState(plan.GetState())
	return plan.GetEndedAt() != nil || !state.Live() && state != cluster.PlanCancelled
}

// tally sums up how far the moves of a plan are.
type tally struct {
	wanted, moved, gone int // VMs that were to move, that have, and that others took away meanwhile
	moving              []*berthv1.Move
	staying             []*berthv1.Move // those that run on where they were when the plan is through
	size, copied        int64           // bytes of the VMs that were to move, and how much of them is over
}

func tallyOf(plan *berthv1.Plan) tally {
	var t tally
	for _, move := range plan.GetMoves() {
		if move.GetState() == cluster.MoveStays {
			t.staying = append(t.staying, move)
			continue
		}
		t.wanted++
		t.size += move.GetMemoryBytes()
		switch move.GetState() {
		case cluster.MoveMoved:
			t.moved++
			t.copied += move.GetMemoryBytes()
		case cluster.MoveGone:
			t.gone++
			t.copied += move.GetMemoryBytes()
		case moveMoving:
			t.moving = append(t.moving, move)
			t.copied += int64(copiedShare(move) * float64(move.GetMemoryBytes()))
		case cluster.MoveFailed, cluster.MoveLeft:
			t.staying = append(t.staying, move)
		}
	}
	return t
}

// copiedShare is how much of a running move is over, from 0 to 1. What is to be copied grows while the guest runs.
func copiedShare(move *berthv1.Move) float64 {
	all := move.GetCopiedBytes() + move.GetRemainingBytes()
	if all <= 0 {
		return 0
	}
	return 1 - float64(move.GetRemainingBytes())/float64(all)
}

// planSubject is what a plan is about.
func planSubject(plan *berthv1.Plan) string {
	switch {
	case plan.GetNode() != "":
		return "node/" + plan.GetNode()
	case plan.GetGroup() != "":
		return "group/" + plan.GetGroup()
	}
	return "cluster/" + plan.GetCluster()
}

// planBeginning says what a plan sets out to do.
func planBeginning(plan *berthv1.Plan) string {
	subject := planSubject(plan)
	switch cluster.PlanKind(plan.GetKind()) {
	case cluster.PlanDrain:
		return subject + ": moving VMs away"
	case cluster.PlanReturn:
		return subject + ": bringing VMs back"
	case cluster.PlanRepair:
		return subject + ": repairing its rules"
	case cluster.PlanBalance:
		return subject + ": evening out"
	}
	return subject + ": " + plan.GetKind()
}

// planProgress is how far a plan is, in half a sentence.
func planProgress(t tally) string {
	text := fmt.Sprintf("%d of %s, %v of %v", t.moved+t.gone, count(t.wanted, "VM"), units.Bytes(t.copied), units.Bytes(t.size))
	if len(t.moving) > 0 {
		text += fmt.Sprintf(", %d moving", len(t.moving))
	}
	if len(t.staying) > 0 {
		text += fmt.Sprintf(", %d staying", len(t.staying))
	}
	return text
}

func (a *app) planTable(p *page, plans []*berthv1.Plan, wide bool) {
	headings := []string{"ID", "KIND", "STATE", "OF", "MOVES", "AGE", "TOOK"}
	if wide {
		headings = append(headings, "CLUSTER", "POLICY", "CALLER")
	}
	rows := make([][]string, 0, len(plans))
	for _, plan := range plans {
		row := []string{
			plan.GetId(), plan.GetKind(), plan.GetState(), planSubject(plan), movesCell(plan), a.since(plan.GetCreatedAt()), planTook(plan),
		}
		if wide {
			row = append(row, or(plan.GetCluster(), none), or(plan.GetPolicy(), none), or(plan.GetCaller(), none))
		}
		rows = append(rows, append(row, or(plan.GetMessage(), plan.GetReason())))
	}
	p.table(append(headings, "WHY"), rows)
}

// movesCell is how many moves a plan has, of one that runs how many are done. Plans that have ended are listed without.
func movesCell(plan *berthv1.Plan) string {
	t := tallyOf(plan)
	switch {
	case planEnded(plan):
		return none
	case plan.GetState() == string(cluster.PlanRunning):
		return fmt.Sprintf("%d/%d", t.moved+t.gone, t.wanted)
	}
	return strconv.Itoa(t.wanted)
}

func planTook(plan *berthv1.Plan) string {
	if plan.GetCreatedAt() == nil || plan.GetEndedAt() == nil {
		return none
	}
	return span(plan.GetEndedAt().AsTime().Sub(plan.GetCreatedAt().AsTime()))
}

func (a *app) planText(p *page, plan *berthv1.Plan, wide bool) {
	title, state := "plan "+plan.GetId(), plan.GetState()
	if plan.GetId() == "" {
		title, state = "dry run: nothing was kept", "" // it will never have one
	}
	p.line("%s", title)
	rows := [][2]string{
		{"what", plan.GetKind() + " of " + planSubject(plan)},
		{"state", state},
		{"why", plan.GetReason()},
		{"message", plan.GetMessage()},
		{"policy", plan.GetPolicy()},
		{"effect", planEffect(plan)},
		{"measured in", unitOf(plan)},
		{"limits", planLimits(plan)},
	}
	if t := tallyOf(plan); plan.GetState() == string(cluster.PlanRunning) {
		rows = append(rows, [2]string{"done", planProgress(t)})
	}
	if plan.GetCreatedAt() != nil {
		rows = append(rows, [2]string{"by", fmt.Sprintf("%s at %s (%s ago)", or(plan.GetCaller(), none), a.at(plan.GetCreatedAt()), a.since(plan.GetCreatedAt()))})
	}
	p.fields("  ", append(rows, [2]string{"took", differs(planTook(plan), none)})...)
	if len(plan.GetMoves()) > 0 {
		p.blank()
		moveTable(p, plan, wide)
	}
	if plan.GetId() != "" && plan.GetState() == string(cluster.PlanProposed) {
		p.blank()
		p.line("'berth plan apply %[1]s' carries it out, 'berth plan discard %[1]s' drops it", plan.GetId())
	}
}

// planEffect is what a plan does to the figure of its cluster: predicted, and once it was looked at, observed.
func planEffect(plan *berthv1.Plan) string {
	if plan.Before == nil || plan.Predicted == nil {
		return ""
	}
	text := fmt.Sprintf("from %s to %s predicted", number(plan.GetBefore()), number(plan.GetPredicted()))
	if plan.Observed != nil {
		text += fmt.Sprintf(", %s observed", number(plan.GetObserved()))
	}
	return text
}

// unitOf says what the figures of a plan's effect are.
func unitOf(plan *berthv1.Plan) string {
	if plan.GetUnit() == "" {
		return ""
	}
	return plan.GetUnit() + "; lower is better"
}

func planLimits(plan *berthv1.Plan) string {
	switch {
	case plan.GetParallel() == 0:
		return ""
	case plan.GetBandwidthBps() > 0:
		return fmt.Sprintf("%d at once, %v/s each", plan.GetParallel(), units.Bytes(plan.GetBandwidthBps()))
	}
	return fmt.Sprintf("%d at once", plan.GetParallel())
}

// moveTable writes a line for each VM of a plan.
func moveTable(p *page, plan *berthv1.Plan, wide bool) {
	headings := []string{"VM", "FROM", "TO", "SIZE", "STATE"}
	if wide {
		headings = append(headings, "ATTEMPTS", "COPIED", "LEFT", "OPERATION")
	}
	rows := make([][]string, 0, len(plan.GetMoves()))
	for _, move := range plan.GetMoves() {
		row := []string{move.GetVm(), or(move.GetSource(), none), or(move.GetTarget(), none), size(move.GetMemoryBytes()), or(move.GetState(), none)}
		if wide {
			row = append(row, strconv.Itoa(int(move.GetAttempts())), size(move.GetCopiedBytes()), size(move.GetRemainingBytes()),
				or(move.GetOperationId(), none))
		}
		rows = append(rows, append(row, moveWhy(move)))
	}
	p.indented("  ", append(headings, "WHY"), rows)
}

// moveWhy is why a VM moves, or did not: how the last attempt ended tells more.
func moveWhy(move *berthv1.Move) string { return or(move.GetMessage(), move.GetReason()) }

// stayingTable names the VMs that did not move, and why.
func stayingTable(p *page, staying []*berthv1.Move) {
	rows := make([][]string, 0, len(staying))
	for _, move := range staying {
		why := moveWhy(move)
		if move.GetState() == cluster.MoveLeft && move.GetMessage() == "" {
			why = "its turn never came"
		}
		rows = append(rows, []string{move.GetVm(), size(move.GetMemoryBytes()), why})
	}
	p.indented("  ", []string{"STAYS", "SIZE", "WHY"}, rows)
}

// planSummary is the last word about a plan that was followed: what moved, and what did not.
func planSummary(p *page, plan *berthv1.Plan) {
	t := tallyOf(plan)
	text := fmt.Sprintf("%s moved", count(t.moved, "VM"))
	if took := planTook(plan); took != none {
		text += " in " + took
	}
	if t.gone > 0 {
		text += fmt.Sprintf(", %d stopped or moved by others", t.gone)
	}
	if len(t.moving) > 0 {
		text += fmt.Sprintf(", %d still copying", len(t.moving))
	}
	if len(t.staying) > 0 {
		text += fmt.Sprintf(", %d did not move", len(t.staying))
	}
	if effect := planEffect(plan); effect != "" {
		text += "; " + effect
	}
	p.line("%s: %s (plan %s: %s)", planSubject(plan), text, plan.GetId(), plan.GetState())
	stayingTable(p, t.staying)
}
