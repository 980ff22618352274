package follow

import (
	"cmp"
	"fmt"
	"strconv"

	"berth/coordinator/cli/term"
	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/units"
)

// The states of a move that has not ended; the others are those of its record.
const (
	moveWaiting = "waiting"
	moveMoving  = "moving"
)

// PlanEnded tells whether nothing more will come of a plan. Of one that was cancelled, moves that copy are let end.
func PlanEnded(plan *berthv1.Plan) bool {
	state := model.PlanState(plan.GetState())
	return plan.GetEndedAt() != nil || !state.Live() && state != model.PlanCancelled
}

// Tally sums up how far the moves of a plan are.
type Tally struct {
	Wanted, Moved, Gone int // VMs that were to move, that have, and that others took away meanwhile
	Moving              []*berthv1.Move
	Staying             []*berthv1.Move // those that run on where they were when the plan is through
	Size, copied        int64           // bytes of the VMs that were to move, and how much of them is over
}

// TallyOf sums up the moves of a plan.
func TallyOf(plan *berthv1.Plan) Tally {
	var t Tally
	for _, move := range plan.GetMoves() {
		if move.GetState() == model.MoveStays {
			t.Staying = append(t.Staying, move)
			continue
		}
		t.Wanted++
		t.Size += move.GetMemoryBytes()
		switch move.GetState() {
		case model.MoveMoved:
			t.Moved++
			t.copied += move.GetMemoryBytes()
		case model.MoveGone:
			t.Gone++
			t.copied += move.GetMemoryBytes()
		case moveMoving:
			t.Moving = append(t.Moving, move)
			t.copied += int64(copiedShare(move) * float64(move.GetMemoryBytes()))
		case model.MoveFailed, model.MoveLeft:
			t.Staying = append(t.Staying, move)
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

// PlanSubject is what a plan is about.
func PlanSubject(plan *berthv1.Plan) string {
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
	subject := PlanSubject(plan)
	switch model.PlanKind(plan.GetKind()) {
	case model.PlanDrain:
		return subject + ": moving VMs away"
	case model.PlanReturn:
		return subject + ": bringing VMs back"
	case model.PlanRepair:
		return subject + ": repairing its rules"
	case model.PlanBalance:
		return subject + ": evening out"
	}
	return subject + ": " + plan.GetKind()
}

// planProgress is how far a plan is, in half a sentence.
func planProgress(t Tally) string {
	text := fmt.Sprintf("%d of %s, %v of %v", t.Moved+t.Gone, term.Count(t.Wanted, "VM"), units.Bytes(t.copied), units.Bytes(t.Size))
	if len(t.Moving) > 0 {
		text += fmt.Sprintf(", %d moving", len(t.Moving))
	}
	if len(t.Staying) > 0 {
		text += fmt.Sprintf(", %d staying", len(t.Staying))
	}
	return text
}

// PlanTable writes a line for each plan.
func PlanTable(a *term.App, p *term.Page, plans []*berthv1.Plan, wide bool) {
	headings := []string{"ID", "KIND", "STATE", "OF", "MOVES", "AGE", "TOOK"}
	if wide {
		headings = append(headings, "CLUSTER", "POLICY", "CALLER")
	}
	rows := make([][]string, 0, len(plans))
	for _, plan := range plans {
		row := []string{
			plan.GetId(), plan.GetKind(), plan.GetState(), PlanSubject(plan), movesCell(plan), a.Since(plan.GetCreatedAt()), PlanTook(plan),
		}
		if wide {
			row = append(row, cmp.Or(plan.GetCluster(), term.None), cmp.Or(plan.GetPolicy(), term.None), cmp.Or(plan.GetCaller(), term.None))
		}
		rows = append(rows, append(row, cmp.Or(plan.GetMessage(), plan.GetReason())))
	}
	p.Table(append(headings, "WHY"), rows)
}

// movesCell is how many moves a plan has, of one that runs how many are done. Plans that have ended are listed without.
func movesCell(plan *berthv1.Plan) string {
	t := TallyOf(plan)
	switch {
	case PlanEnded(plan):
		return term.None
	case plan.GetState() == string(model.PlanRunning):
		return fmt.Sprintf("%d/%d", t.Moved+t.Gone, t.Wanted)
	}
	return strconv.Itoa(t.Wanted)
}

// PlanTook is how long a plan took that has ended.
func PlanTook(plan *berthv1.Plan) string {
	if plan.GetCreatedAt() == nil || plan.GetEndedAt() == nil {
		return term.None
	}
	return term.Span(plan.GetEndedAt().AsTime().Sub(plan.GetCreatedAt().AsTime()))
}

// WritePlan writes all that is known of a plan.
func WritePlan(a *term.App, p *term.Page, plan *berthv1.Plan, wide bool) {
	title, state := "plan "+plan.GetId(), plan.GetState()
	if plan.GetId() == "" {
		title, state = "dry run: nothing was kept", "" // it will never have one
	}
	p.Line("%s", title)
	rows := [][2]string{
		{"what", plan.GetKind() + " of " + PlanSubject(plan)},
		{"state", state},
		{"why", plan.GetReason()},
		{"message", plan.GetMessage()},
		{"policy", plan.GetPolicy()},
		{"effect", planEffect(plan)},
		{"measured in", unitOf(plan)},
		{"limits", PlanLimits(plan)},
	}
	if t := TallyOf(plan); plan.GetState() == string(model.PlanRunning) {
		rows = append(rows, [2]string{"done", planProgress(t)})
	}
	if plan.GetCreatedAt() != nil {
		rows = append(
			rows,
			[2]string{"by", fmt.Sprintf(
				"%s at %s (%s ago)", cmp.Or(plan.GetCaller(), term.None), a.At(plan.GetCreatedAt()), a.Since(plan.GetCreatedAt()),
			)},
		)
	}
	p.Fields("  ", append(rows, [2]string{"took", term.Differs(PlanTook(plan), term.None)})...)
	if len(plan.GetMoves()) > 0 {
		p.Blank()
		moveTable(p, plan, wide)
	}
	if plan.GetId() != "" && plan.GetState() == string(model.PlanProposed) {
		p.Blank()
		p.Line("'berth plan apply %[1]s' carries it out, 'berth plan discard %[1]s' drops it", plan.GetId())
	}
}

// planEffect is what a plan does to the figure of its cluster: predicted, and once it was looked at, observed.
func planEffect(plan *berthv1.Plan) string {
	if plan.Before == nil || plan.Predicted == nil {
		return ""
	}
	text := fmt.Sprintf("from %s to %s predicted", units.Figure(plan.GetBefore()), units.Figure(plan.GetPredicted()))
	if plan.Observed != nil {
		text += fmt.Sprintf(", %s observed", units.Figure(plan.GetObserved()))
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

// PlanLimits are the limits that a plan was given, in words.
func PlanLimits(plan *berthv1.Plan) string {
	switch {
	case plan.GetParallel() == 0:
		return ""
	case plan.GetBandwidthBps() > 0:
		return fmt.Sprintf("%d at once, %v/s each", plan.GetParallel(), units.Bytes(plan.GetBandwidthBps()))
	}
	return fmt.Sprintf("%d at once", plan.GetParallel())
}

// moveTable writes a line for each VM of a plan.
func moveTable(p *term.Page, plan *berthv1.Plan, wide bool) {
	headings := []string{"VM", "FROM", "TO", "SIZE", "STATE"}
	if wide {
		headings = append(headings, "ATTEMPTS", "COPIED", "LEFT", "OPERATION")
	}
	rows := make([][]string, 0, len(plan.GetMoves()))
	for _, move := range plan.GetMoves() {
		row := []string{
			move.GetVm(), cmp.Or(move.GetSource(), term.None), cmp.Or(move.GetTarget(), term.None), term.Size(move.GetMemoryBytes()),
			cmp.Or(move.GetState(), term.None),
		}
		if wide {
			row = append(row, strconv.Itoa(int(move.GetAttempts())), term.Size(move.GetCopiedBytes()), term.Size(move.GetRemainingBytes()),
				cmp.Or(move.GetOperationId(), term.None))
		}
		rows = append(rows, append(row, MoveWhy(move)))
	}
	p.Indented("  ", append(headings, "WHY"), rows)
}

// MoveWhy is why a VM moves, or did not: how the last attempt ended tells more.
func MoveWhy(move *berthv1.Move) string { return cmp.Or(move.GetMessage(), move.GetReason()) }

// stayingTable names the VMs that did not move, and why.
func stayingTable(p *term.Page, staying []*berthv1.Move) {
	rows := make([][]string, 0, len(staying))
	for _, move := range staying {
		why := MoveWhy(move)
		if move.GetState() == model.MoveLeft && move.GetMessage() == "" {
			why = "its turn never came"
		}
		rows = append(rows, []string{move.GetVm(), term.Size(move.GetMemoryBytes()), why})
	}
	p.Indented("  ", []string{"STAYS", "SIZE", "WHY"}, rows)
}

// PlanSummary is the last word about a plan that was followed: what moved, and what did not.
func PlanSummary(p *term.Page, plan *berthv1.Plan) {
	t := TallyOf(plan)
	text := fmt.Sprintf("%s moved", term.Count(t.Moved, "VM"))
	if took := PlanTook(plan); took != term.None {
		text += " in " + took
	}
	if t.Gone > 0 {
		text += fmt.Sprintf(", %d stopped or moved by others", t.Gone)
	}
	if len(t.Moving) > 0 {
		text += fmt.Sprintf(", %d still copying", len(t.Moving))
	}
	if len(t.Staying) > 0 {
		text += fmt.Sprintf(", %d did not move", len(t.Staying))
	}
	if effect := planEffect(plan); effect != "" {
		text += "; " + effect
	}
	p.Line("%s: %s (plan %s: %s)", PlanSubject(plan), text, plan.GetId(), plan.GetState())
	stayingTable(p, t.Staying)
}
