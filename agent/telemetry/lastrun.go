package telemetry

import berthv1 "berth/shared/gen/berth/v1"

// LastRun is what a guest ran with, or runs with.
type LastRun struct {
	UUID    string
	Epoch   uint64
	Devices *berthv1.Devices
}

// AddLastRuns tells of the domains in a report that are off, and of those that are not in it, what their guests ran with last.
func AddLastRuns(report *berthv1.InventoryReport, runs []LastRun) {
	if report.GetDomainsUnknown() || len(runs) == 0 {
		return
	}
	domains := index(report)
	for _, run := range runs {
		if domain := domains.of(run.UUID); off(domain) {
			run.tell(domain)
		}
	}
}

// AddLastRun tells of a domain what its guest ran with last, unless it has one again: then the runs are not asked for.
func AddLastRun(domain *berthv1.Domain, runs func() []LastRun) {
	if !off(domain) {
		return
	}
	for _, run := range runs() {
		if run.UUID == domain.GetUuid() {
			run.tell(domain)
		}
	}
}

func (r *LastRun) tell(domain *berthv1.Domain) {
	domain.LastRun = &berthv1.LastRun{Epoch: r.Epoch, Devices: r.Devices}
}

// off tells whether a domain has no guest.
func off(domain *berthv1.Domain) bool {
	return domain.GetState() == berthv1.DomainState_DOMAIN_STATE_ABSENT || domain.GetState() == berthv1.DomainState_DOMAIN_STATE_SHUTOFF
}
