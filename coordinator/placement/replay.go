package placement

import (
	"errors"
	"fmt"
	"strings"
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
	e, choice, err := d.again()
	if err != nil {
		return Decision{}, err
	}
	again = d
	again.Outcome, again.Winner, again.WinnerName, again.Margin, again.Reason = Refused, "", "", 0, ""
	e.fill(&again, choice)
	if d.Omitted > 0 {
		again.Reason = d.Reason
	}
	var differences []string
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
	if len(differences) > 0 {
		return again, &DiffersError{Differences: differences}
	}
	return again, nil
}
