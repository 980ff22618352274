package evidence

import (
	"fmt"
	"time"

	"berth/coordinator/model"
)

// SuspectPatience is how long the target of a migration may be silent before the copy is given up. An agent that is upgraded is back
// sooner.
const SuspectPatience = 15 * time.Second

// Unfit says why a node that a migration goes to should get no guest now: it could not be told to let the guest run, or would not
// remember it. Empty: it may. A node that has never been heard is silent since the leadership began, which the caller has to have let
// pass.
func Unfit(name string, facts model.NodeFacts, now time.Time) string {
	silent := now.Sub(facts.HeardAt)
	switch {
	case facts.HeardAt.IsZero() && facts.Liveness == model.Unreachable:
		return name + " has not been heard: " + facts.LivenessReason
	case facts.HeardAt.IsZero():
		return ""
	case facts.Liveness != model.Up && silent >= max(SuspectPatience, facts.Pace.Suspect()):
		return name + " is silent since " + facts.HeardAt.UTC().Format(time.TimeOnly)
	case facts.Ailing != "":
		return fmt.Sprintf("%s gets no VMs: %s", name, facts.Ailing)
	default:
		return ""
	}
}
