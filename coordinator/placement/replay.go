package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/placement/planner"
)

// The causes for which a decision cannot be made again, or comes out otherwise.
var (
	ErrNotReplayable = errors.New("the decision keeps no inputs: it is of release 0.1, or its policy or request was not valid")
	ErrDiffers       = errors.New("the decision comes out differently")
)

// DiffersError names what came out differently. It wraps ErrDiffers.
type DiffersError struct{ Differences []string }

func (e *DiffersError) Error() string {
	return ErrDiffers.Error() + ": " + strings.Join(e.Differences, "; ")
}

func (e *DiffersError) Unwrap() error { return ErrDiffers }

// Replay makes the decision again from what it keeps, and compares. What is not made again, because it needs what no
// decision keeps, is taken over: what would change a refusal and, where nodes are left out, the reason, which counts them.
// The error is ErrNotReplayable, a *DiffersError, or what is wrong with its policy.
func Replay(d Decision) (again Decision, err error) {
	again, err = d.replayed()
	if err != nil {
		return Decision{}, err
	}
	differences := d.replayOrder()
	compare := func(what string, is, was any) {
		if is != was {
			differences = append(differences, fmt.Sprintf("%s is %v, was %v", what, is, was))
		}
	}
	compare("outcome", again.Outcome, d.Outcome)
	compare("winner", again.Winner, d.Winner)
	compare("winner's name", again.WinnerName, d.WinnerName)
	compare("margin", again.Margin, d.Margin)
	compare("failed phase", again.FailedPhase, d.FailedPhase)
	compare("round", again.Round, d.Round)
	compare("reason", again.Reason, d.Reason)
	if !slices.Equal(again.Pools, d.Pools) {
		differences = append(differences, fmt.Sprintf("pools are %v, were %v", again.Pools, d.Pools))
	}
	if len(differences) > 0 {
		return again, &DiffersError{Differences: differences}
	}
	return again, nil
}

// replayed is what comes out of the nodes that are kept. Where every cluster was left out, none of them was looked at.
func (d *Decision) replayed() (Decision, error) {
	again := *d
	if d.Rules == nil && d.FailedPhase == PhaseThreshold {
		again.Reason = d.acrossReason("")
		return again, nil
	}
	e, choice, err := d.again()
	if err != nil {
		return Decision{}, err
	}
	again.Outcome, again.Winner, again.WinnerName, again.Margin, again.Reason, again.Pools = Refused, "", "", 0, "", nil
	e.fill(&again, choice)
	if d.Omitted > 0 {
		again.Reason = d.Reason
	} else {
		again.Reason = again.acrossReason(again.Reason)
	}
	return again, nil
}

// replayOrder puts the clusters in order again, on what is kept of them. Where some are left out of the record nothing can be
// said.
func (d *Decision) replayOrder() (differences []string) {
	if len(d.Tried) == 0 || d.Across == nil || d.Across.Omitted > 0 {
		return nil
	}
	places := make([]planner.Place, 0, len(d.Tried))
	for i := range d.Tried {
		one := &d.Tried[i]
		places = append(places, planner.Place{
			Cluster: one.Cluster, Pod: podOf(one.Cluster, one.Pod), Used: one.Used, PodUsed: one.PodUsed,
			VMs: one.AccountVMs, PodVMs: one.PodVMs, Total: one.Total, Special: one.Special,
		})
	}
	planner.ByCapacity(places)
	ordered := d.Across.order(places)
	for i := range ordered { // what is left out comes last
		was := d.Tried[slices.IndexFunc(d.Tried, func(t Tried) bool { return t.Cluster == ordered[i].Cluster })]
		ordered[i].CPU, ordered[i].RAM, ordered[i].Threshold = was.CPU, was.RAM, was.Threshold
		ordered[i].LeftOut, ordered[i].Outcome, ordered[i].Reason = ordered[i].crossing(), was.Outcome, was.Reason
	}
	putLast(ordered)
	for i := range ordered {
		if ordered[i] != d.Tried[i] {
			differences = append(differences, fmt.Sprintf("cluster %d in the order is %+v, was %+v", i+1, ordered[i], d.Tried[i]))
		}
	}
	return differences
}
