package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/placement"
)

// when says when something was, with how long ago that is.
func (p reasons) when(at time.Time) string {
	if at.IsZero() {
		return "at a time that is not known"
	}
	return fmt.Sprintf("%s, %s ago", at.UTC().Format("2006-01-02 15:04:05 UTC"), ago(p.At.Sub(at)))
}

// ago is a span in its two largest units: 18m, 5h7m, 3d4h.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	parts := func(large, small time.Duration, names ...string) string {
		text := strconv.Itoa(int(d/large)) + names[0]
		if rest := d % large / small; rest > 0 {
			text += strconv.Itoa(int(rest)) + names[1]
		}
		return text
	}
	switch d = max(d, 0); {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + "s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	case d < day:
		return parts(time.Hour, time.Minute, "h", "m")
	default:
		return parts(day, time.Hour, "d", "h")
	}
}

// arrival is the operation that has brought a VM to the node that holds it, and the one that had brought it anywhere before; false: none
// that is kept has brought it there. Each has an epoch of its own.
func (p reasons) arrival(vm *model.VM) (last, before operation.Operation, known bool) {
	for _, op := range p.Operations() {
		switch {
		case op.VM != vm.ID || !op.Kind.Brings() || op.Result != operation.Done:
		case op.Epoch > last.Epoch:
			last, before = op, last
		case op.Epoch > before.Epoch:
			before = op
		}
	}
	return last, before, last.ID != "" && last.Target == vm.Holder
}

// besideBerth says why a VM is where it is that no decision has put there: somebody has moved it, or it ran there before Berth had it. The
// lines are none if a decision has, or if nobody knows.
func (p reasons) besideBerth(vm *model.VM) []string {
	came, before, known := p.arrival(vm)
	if !known || came.Kind != operation.Adopt {
		return nil
	}
	if came.Source == "" && !came.Created {
		return []string{fmt.Sprintf("%s runs on %s because somebody has started it there beside Berth, which took note of it (seen %s)",
			vm.Name, came.TargetName, p.when(came.CreatedAt))}
	}
	if came.Source == "" {
		return []string{fmt.Sprintf("%s runs on %s because it ran there when Berth took it under management (%s, asked by %s)",
			vm.Name, came.TargetName, p.when(came.EndedAt), came.Caller)}
	}
	lines := []string{fmt.Sprintf("%s runs on %s because somebody has moved it there from %s beside Berth, which followed it (seen %s)",
		vm.Name, came.TargetName, came.SourceName, p.when(came.CreatedAt))}
	if decision, kept := p.Decision(before.Decision); kept {
		lines = append(lines, fmt.Sprintf("before that, decision %s (%s, asked by %s, %s) had placed it on %s: %s",
			decision.ID, decision.Request.Purpose, decision.Caller, p.when(decision.At), decision.WinnerName, decision.Reason))
	}
	return lines
}

// movedInVain says what has become of the last migration of a VM that did not leave the node which holds it, since it came there.
func (p reasons) movedInVain(vm *model.VM) []string {
	if vm.Holder == "" {
		return nil
	}
	came, _, _ := p.arrival(vm)
	var tried operation.Operation
	for _, op := range p.Operations() {
		if op.VM == vm.ID && op.Kind == operation.Migrate && op.Source == vm.Holder && op.Result == operation.Failed &&
			op.CreatedAt.After(came.EndedAt) && op.CreatedAt.After(tried.CreatedAt) {
			tried = op
		}
	}
	switch {
	case tried.ID == "":
		return nil
	case tried.Cancel:
		return []string{fmt.Sprintf("the migration to %s (%s, asked by %s) was cancelled",
			cmp.Or(tried.TargetName, tried.Target), p.when(tried.CreatedAt), tried.Caller)}
	default:
		return []string{fmt.Sprintf("the migration to %s (%s, asked by %s) failed: %s",
			cmp.Or(tried.TargetName, tried.Target), p.when(tried.CreatedAt), tried.Caller, tried.Message)}
	}
}

// since says what an earlier decision about a node was, if what is judged now is another answer; empty: it is the same.
func (p reasons) since(decision placement.Decision, node string, now placement.NodeAnswer) string {
	then, err := placement.WhyNot(decision, node)
	if err != nil || alike(then, now) {
		return ""
	}
	return fmt.Sprintf("decision %s (%s, %s) answered otherwise: %s", decision.ID, decision.Request.Purpose, p.when(decision.At), then.Why[0])
}

// alike tells whether two answers come to the same: the node is taken, is admitted, or is refused by the same constraints. Figures and
// ages change all the time.
func alike(a, b placement.NodeAnswer) bool {
	refused := func(one placement.NodeAnswer) (by []string) {
		for _, constraint := range one.Node.Constraints {
			if !constraint.Passed {
				by = append(by, constraint.Constraint)
			}
		}
		return by
	}
	return a.Won == b.Won && a.Node.Admitted == b.Node.Admitted && slices.Equal(refused(a), refused(b))
}
