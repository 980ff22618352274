package inventory

import (
	"maps"
	"math"
	"time"

	"berth/coordinator/model"
	berthv1 "berth/shared/gen/berth/v1"
)

// endingsOf are how guests ended on a node, by an inventory that has just come. It is empty when the domains could not be listed.
func endingsOf(report *berthv1.InventoryReport, now time.Time) map[string]model.Ending {
	endings := make(map[string]model.Ending)
	if report.GetDomainsUnknown() {
		return endings
	}
	for _, wire := range report.GetDomains() {
		if ending, ended := endingOf(wire, now); ended {
			endings[wire.GetUuid()] = ending
		}
	}
	return endings
}

// ended takes note of how one guest ended, or that nothing says so any more.
func (n *node) ended(wire *berthv1.Domain, now time.Time) {
	ending, ended := endingOf(wire, now)
	if _, known := n.endings[wire.GetUuid()]; !ended && !known || isFull(n.endings, wire.GetUuid()) {
		return
	}
	next := maps.Clone(n.endings)
	if next == nil {
		next = make(map[string]model.Ending)
	}
	delete(next, wire.GetUuid())
	if ended {
		next[wire.GetUuid()] = ending
	}
	n.endings = next
}

// causes are why guests end. One that only a later agent knows is not known.
var causes = map[berthv1.EndingCause]model.EndingCause{
	berthv1.EndingCause_ENDING_CAUSE_SHUT_DOWN:    model.CauseShutDown,
	berthv1.EndingCause_ENDING_CAUSE_DESTROYED:    model.CauseDestroyed,
	berthv1.EndingCause_ENDING_CAUSE_PANICKED:     model.CausePanicked,
	berthv1.EndingCause_ENDING_CAUSE_PROCESS_DIED: model.CauseProcessDied,
}

// endingOf reads how a guest ended. A report is late by what it took to come, so that what is computed from its ages is later than
// it was: the watch of the guest seems shorter, never longer.
func endingOf(wire *berthv1.Domain, now time.Time) (model.Ending, bool) {
	told := wire.GetEnding()
	if told == nil || stateOf(wire).Holds() {
		return model.Ending{}, false
	}
	ran, isAge := ago(told.GetWatchedSeconds())
	at, also := ago(told.GetEndedSeconds())
	if !isAge || !also || at > ran {
		return model.Ending{}, false
	}
	return model.Ending{At: now.Add(-at), RanSince: now.Add(-ran), Whole: told.GetWhole(), Cause: causes[told.GetCause()]}, true
}

// ago reads an age. What cannot be one is refused.
func ago(seconds float64) (time.Duration, bool) {
	const most = float64(math.MaxInt64) / float64(time.Second) / 2
	if !(seconds >= 0 && seconds <= most) { // true for a NaN
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}
