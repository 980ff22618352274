package balance

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// Observe compares what a balance plan predicted with how the cluster is now, in the plan's unit. It is false while the
// nodes' figures are older than the last move, if the policy has another balancer now, or if a move was not made.
func Observe(fleet *Fleet, plan *model.Plan) (observed float64, known bool) {
	balancer, _ := ByName(fleet.Balancer.Balancer)
	if plan.Kind != model.PlanBalance || plan.State != model.PlanDone || plan.Unit != balancer.Unit {
		return 0, false
	}
	settled := plan.EndedAt.Add(balancer.Settles)
	for i := range plan.Moves {
		move := &plan.Moves[i]
		if move.Result != model.MoveMoved {
			return 0, false
		}
		for _, id := range []string{move.Source, move.Target} {
			node := fleet.View.Node(id)
			if node == nil || !node.Facts.Telemetry || !node.Facts.TelemetryAt.After(settled) {
				return 0, false
			}
		}
	}
	_, s, err := fleet.Situation()
	if err != nil {
		return 0, false
	}
	return balancer.Figure(s), true
}

// missed is the share of the predicted gain below which a prediction counts as wrong.
const missed = 0.5

// longestPause is the longest time that balancing, or the next attempt to move a VM, waits.
const longestPause = time.Hour

// pause is how long to wait after a number of failures in a row: two passes, four, eight.
func pause(failures int) time.Duration {
	wait := Interval
	for range failures {
		if wait *= 2; wait >= longestPause {
			return longestPause
		}
	}
	return wait
}

// BackOff tells whether the balancer waits because its last predictions were wrong, or because the effect of the last move is
// not known yet; in words, with the time until when. It follows from the plans alone, so a new leader comes to the same
// answer.
func BackOff(fleet *Fleet) (why string, holds bool) {
	balancer, known := ByName(fleet.Balancer.Balancer)
	if !known {
		return "", false
	}
	misses := 0
	var last *model.Plan
	var since time.Time
	for i := range fleet.Recent {
		plan := &fleet.Recent[i]
		if plan.Kind != model.PlanBalance || plan.Unit != balancer.Unit || plan.EndedAt.IsZero() {
			continue
		}
		switch {
		case plan.State == model.PlanFailed:
		case plan.State != model.PlanDone:
			continue
		case plan.ObservedAt.IsZero():
			until := plan.EndedAt.Add(balancer.Settles + 2*Interval) // after that the effect will never be known
			if last == nil && misses == 0 && fleet.At.Before(until) && allMoved(plan) {
				return fmt.Sprintf("what came of the last move is not known yet; it is waited for until %s at most", clock(until)), true
			}
			continue
		case plan.Before-plan.Observed >= missed*(plan.Before-plan.Predicted):
			return disappointed(fleet, misses, last, since)
		}
		if misses++; last == nil {
			last, since = plan, plan.EndedAt
			if !plan.ObservedAt.IsZero() {
				since = plan.ObservedAt
			}
		}
	}
	return disappointed(fleet, misses, last, since)
}

func allMoved(plan *model.Plan) bool {
	for i := range plan.Moves {
		if plan.Moves[i].Result != model.MoveMoved {
			return false
		}
	}
	return len(plan.Moves) > 0
}

// disappointed says until when the balancer waits.
func disappointed(fleet *Fleet, misses int, last *model.Plan, since time.Time) (why string, holds bool) {
	until := since.Add(pause(misses))
	if misses == 0 || !fleet.At.Before(until) {
		return "", false
	}
	came := fmt.Sprintf(
		"the last plan was to take the cluster from %.3f to %.3f, and it came to %.3f", last.Before, last.Predicted, last.Observed,
	)
	if last.State == model.PlanFailed {
		came = "the last plan failed"
	}
	if misses > 1 {
		came += fmt.Sprintf(", the %s disappointment in a row", ordinal(misses))
	}
	return fmt.Sprintf("%s: nothing is balanced until %s", came, clock(until)), true
}

func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
