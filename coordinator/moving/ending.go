package moving

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"berth/coordinator/model"
	"berth/shared/units"
)

// Change is a plan's record as it is to be from now on.
type Change struct {
	Plan model.Plan
	Said string // for the history
}

// cancelled ends a plan whose reason has gone. VMs that are being copied arrive nevertheless.
func cancelled(plan *model.Plan, why string, at time.Time) *Change {
	after := *plan
	after.State, after.Message, after.UpdatedAt = model.PlanCancelled, why, at
	return &Change{Plan: after, Said: "no further move begins: " + why}
}

// ended writes down how each move came out.
func (d *Driver) ended() *Change {
	after := d.Plan
	after.Moves = make([]model.Move, 0, len(d.moves))
	for i := range d.moves {
		after.Moves = append(after.Moves, d.result(&d.moves[i]))
	}
	if after.State == model.PlanRunning {
		after.State = model.PlanDone
		if slices.ContainsFunc(after.Moves, func(m model.Move) bool { return m.Result == model.MoveFailed }) {
			after.State = model.PlanFailed
		}
	}
	summary := outcome(after.Moves)
	if after.Message != "" { // why it was cancelled
		summary = after.Message + ": " + summary
	}
	after.Message, after.UpdatedAt, after.EndedAt = summary, d.At, d.At
	return &Change{Plan: after, Said: summary}
}

func (d *Driver) result(now *Move) model.Move {
	move := now.Move
	move.Result, move.Stays = now.State, now.State == model.MoveStays
	last := d.refused[move.VM]
	switch {
	case now.State == Waiting:
		move.Result, move.Stays = model.MoveStays, true
		if last != nil {
			move.Reason = last.Why
		}
	case now.State == model.MoveStays && last != nil:
		move.Reason = last.Why
	case now.State == model.MoveFailed:
		move.Reason = now.Message
	}
	if move.Result != model.MoveMoved {
		move.Target, move.TargetName = "", ""
	}
	return move
}

// outcome is how a plan's moves came out, in words.
func outcome(moves []model.Move) string {
	by := map[string][]model.Move{}
	for _, move := range moves {
		by[move.Result] = append(by[move.Result], move)
	}
	parts := []string{fmt.Sprintf("%d moved", len(by[model.MoveMoved]))}
	say := func(result, one, several string) {
		switch found := by[result]; len(found) {
		case 0:
		case 1:
			parts = append(parts, fmt.Sprintf("1 %s: %s", one, found[0].VMName)+because(found[0].Reason))
		default:
			var names []string
			for _, move := range found {
				names = append(names, move.VMName+because(move.Reason))
			}
			parts = append(parts, fmt.Sprintf("%d %s: %s", len(found), several, units.Some(names, maxTold, ", ")))
		}
	}
	say(model.MoveFailed, "failed", "failed")
	say(model.MoveStays, "stays", "stay")
	if n := len(by[model.MoveLeft]); n > 0 {
		parts = append(parts, fmt.Sprintf("%d left where they are", n))
	}
	if n := len(by[model.MoveGone]); n > 0 {
		parts = append(parts, fmt.Sprintf("%d gone meanwhile", n))
	}
	return strings.Join(parts, "; ")
}

// maxTold is how many VMs a plan's end names for each outcome. The plan has all of them.
const maxTold = 3

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return " (" + reason + ")"
}
