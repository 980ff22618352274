package balance

import (
	"fmt"
	"time"

	"berth/coordinator/cluster"
)

// Observe compares what a balance plan that has ended predicted with what the cluster is now, in the plan's unit; false
// while the figures of the nodes are older than the move, or if the balancer is another one, or not all moves were made.
func Observe(fleet *Fleet, plan *cluster.Plan) (observed float64, known bool) {
	balancer, _ := ByName(fleet.Balancer.Balancer)
	if plan.Kind != cluster.PlanBalance || plan.State != cluster.PlanDone || plan.Unit != balancer.Unit {
		return 0, false
	}
	settled := plan.EndedAt.Add(balancer.Settles)
	for i := range plan.Moves {
		move := &plan.Moves[i]
		if move.Result != cluster.MoveMoved {
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

// missed is the share of a predicted gain that has to be observed for the prediction to have come true.
const missed = 0.5

// longestPause is the longest time that balancing, or the next attempt to move a VM, waits.
const longestPause = time.Hour

// pause is how long to wait after so many failures one after the other: two passes, four, eight.
func pause(failures int) time.Duration {
	wait := Interval
	for range failures {
		if wait *= 2; wait >= longestPause {
			return longestPause
		}
	}
	return wait
}

// BackOff tells whether the balancer holds still because its last predictions did not come true, or because what came of the
// last move is not known yet, and in words until when. It is computed from the plans alone, so it outlives the leader.
func BackOff(fleet *Fleet) (why string, holds bool) {
	balancer, known := ByName(fleet.Balancer.Balancer)
	if !known {
		return "", false
	}
	misses := 0
	var last *cluster.Plan
	var since time.Time
	for i := range fleet.Recent {
		plan := &fleet.Recent[i]
		if plan.Kind != cluster.PlanBalance || plan.Unit != balancer.Unit || plan.EndedAt.IsZero() {
			continue
		}
		switch {
		case plan.State == cluster.PlanFailed:
		case plan.State != cluster.PlanDone:
			continue
		case plan.ObservedAt.IsZero():
			until := plan.EndedAt.Add(balancer.Settles + 2*Interval) // then nobody will know
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

func allMoved(plan *cluster.Plan) bool {
	for i := range plan.Moves {
		if plan.Moves[i].Result != cluster.MoveMoved {
			return false
		}
	}
	return len(plan.Moves) > 0
}

// disappointed says until when the balancer holds still.
func disappointed(fleet *Fleet, misses int, last *cluster.Plan, since time.Time) (why string, holds bool) {
	until := since.Add(pause(misses))
	if misses == 0 || !fleet.At.Before(until) {
		return "", false
	}
	came := fmt.Sprintf("the last plan was to take the cluster from %.3f to %.3f, and it came to %.3f", last.Before, last.Predicted, last.Observed)
	if last.State == cluster.PlanFailed {
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
