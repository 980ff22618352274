package telemetry

import (
	berthv1 "berth/shared/gen/berth/v1"
)

// domains finds those of a report by their UUID.
type domains struct {
	report *berthv1.InventoryReport
	listed map[string]*berthv1.Domain
}

func index(report *berthv1.InventoryReport) domains {
	d := domains{report: report, listed: make(map[string]*berthv1.Domain, len(report.GetDomains()))}
	for _, domain := range report.GetDomains() {
		d.listed[domain.GetUuid()] = domain
	}
	return d
}

// of finds a domain. One that is not listed is added as absent: something is to be told of it.
func (d domains) of(uuid string) *berthv1.Domain {
	domain, there := d.listed[uuid]
	if !there {
		domain = &berthv1.Domain{Uuid: uuid, State: berthv1.DomainState_DOMAIN_STATE_ABSENT}
		d.listed[uuid], d.report.Domains = domain, append(d.report.Domains, domain)
	}
	return domain
}
