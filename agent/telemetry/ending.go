package telemetry

import (
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// Ending is how a guest ended on this node: while it ran here, and not because it was migrated away.
type Ending struct {
	UUID    string
	Ago     time.Duration // that it ended
	Watched time.Duration // ago that the watch of it began: from then on it ran without a pause
	Whole   bool          // the watch began when the guest came here
	Detail  string        // the hypervisor's word for why it ended
}

// AddEndings tells of the domains in a report that are off, and of those that are not in it, how their guests ended.
func AddEndings(report *berthv1.InventoryReport, endings []Ending) {
	if report.GetDomainsUnknown() {
		return
	}
	domains := index(report)
	for _, one := range endings {
		AddEnding(domains.of(one.UUID), one)
	}
}

// AddEnding tells of a domain how its guest ended, unless it has one again.
func AddEnding(domain *berthv1.Domain, one Ending) {
	if !off(domain) {
		return
	}
	domain.EndedHere = true
	domain.Ending = &berthv1.Ending{
		WatchedSeconds: one.Watched.Seconds(), EndedSeconds: one.Ago.Seconds(), Whole: one.Whole, Cause: causes[one.Detail],
	}
}

// causes are why guests end, by the hypervisor's word. A guest that ran and "failed" is one whose process has ended without a word.
var causes = map[string]berthv1.EndingCause{
	hypervisor.DetailShutDown:  berthv1.EndingCause_ENDING_CAUSE_SHUT_DOWN,
	hypervisor.DetailDestroyed: berthv1.EndingCause_ENDING_CAUSE_DESTROYED,
	hypervisor.DetailCrashed:   berthv1.EndingCause_ENDING_CAUSE_PANICKED,
	hypervisor.DetailFailed:    berthv1.EndingCause_ENDING_CAUSE_PROCESS_DIED,
}
