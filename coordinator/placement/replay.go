package placement

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"berth/coordinator/placement/planner"
)

// The reasons why a decision cannot be made again, or has another result.
var (
	ErrNotReplayable = errors.New("the decision keeps no inputs: it is of release 0.1, or its policy or request was not valid")
	ErrDiffers       = errors.New("the decision comes out differently")
)

// DiffersError names what is different. It wraps ErrDiffers.
type DiffersError struct{ Differences []string }

func (e *DiffersError) Error() string {
	return ErrDiffers.Error() + ": " + strings.Join(e.Differences, "; ")
}

func (e *DiffersError) Unwrap() error { return ErrDiffers }

// Replay makes the decision again from what it keeps, and compares. What needs more than the decision keeps is copied: the
// changes that would help a refusal, and the reason where nodes are left out, because it counts them. The error is
// ErrNotReplayable, a *DiffersError, or what is wrong with its policy.
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

// replayed is the result from the nodes that are kept. Where every cluster was left out, no node was looked at.
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

// replayOrder orders the clusters again from what is kept about them. Where the record leaves some out it cannot tell.
func (d *Decision) replayOrder() (differences []string) {
	if len(d.Tried) == 0 || d.Across == nil || d.Across.Omitted > 0 {
		return nil
	}
	places := make([]planner.Place, 0, len(d.Tried))
	for i := range d.Tried {
		one := &d.Tried[i]
		places = append(places, planner.Place{
			Cluster: one.Cluster, Pod: planner.PodOf(one.Cluster, one.Pod), Used: one.Used, PodUsed: one.PodUsed,
			VMs: one.AccountVMs, PodVMs: one.PodVMs, Total: one.Total, Special: one.Special,
		})
	}
	planner.ByCapacity(places)
	ordered := d.Across.Order(places)
	for i := range ordered { // clusters that were left out come last
		was := d.Tried[slices.IndexFunc(d.Tried, func(t Tried) bool { return t.Cluster == ordered[i].Cluster })]
		ordered[i].CPU, ordered[i].RAM, ordered[i].Threshold = was.CPU, was.RAM, was.Threshold
		ordered[i].LeftOut, ordered[i].Outcome, ordered[i].Reason = ordered[i].Crossing(), was.Outcome, was.Reason
	}
	planner.PutLast(ordered)
	for i := range ordered {
		if ordered[i] != d.Tried[i] {
			differences = append(differences, fmt.Sprintf("cluster %d in the order is %+v, was %+v", i+1, ordered[i], d.Tried[i]))
		}
	}
	return differences
}
