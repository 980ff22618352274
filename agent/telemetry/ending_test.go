package telemetry

import (
	"testing"
	"time"

	"berth/agent/hypervisor"
	berthv1 "berth/shared/gen/berth/v1"
)

// A report tells how guests ended that are not in it, or are off. What has a guest again tells nothing.
func TestAReportTellsHowGuestsEnded(t *testing.T) {
	report := &berthv1.InventoryReport{Domains: []*berthv1.Domain{
		{Uuid: "off", State: berthv1.DomainState_DOMAIN_STATE_SHUTOFF}, {Uuid: "runs", State: berthv1.DomainState_DOMAIN_STATE_RUNNING},
	}}
	endings := []Ending{
		{UUID: "gone", Ago: time.Second, Watched: time.Minute, Whole: true, Detail: hypervisor.DetailFailed},
		{UUID: "off", Watched: time.Hour},
		{UUID: "runs", Watched: time.Hour},
	}
	AddEndings(report, endings)
	found := map[string]*berthv1.Domain{}
	for _, domain := range report.GetDomains() {
		found[domain.GetUuid()] = domain
	}
	gone := found["gone"]
	if gone.GetState() != berthv1.DomainState_DOMAIN_STATE_ABSENT || !gone.GetEndedHere() || gone.GetEnding().GetWatchedSeconds() != 60 ||
		gone.GetEnding().GetEndedSeconds() != 1 || !gone.GetEnding().GetWhole() ||
		gone.GetEnding().GetCause() != berthv1.EndingCause_ENDING_CAUSE_PROCESS_DIED {
		t.Errorf("one that is gone: %v", gone)
	}
	off := found["off"].GetEnding()
	if off.GetWatchedSeconds() != 3600 || off.GetWhole() ||
		off.GetCause() != berthv1.EndingCause_ENDING_CAUSE_UNSPECIFIED || found["runs"].GetEnding() != nil || len(found) != 3 {
		t.Errorf("told %v", report.GetDomains())
	}
	unknown := &berthv1.InventoryReport{DomainsUnknown: true}
	if AddEndings(unknown, endings); len(unknown.GetDomains()) != 0 {
		t.Errorf("a listing that failed tells %v", unknown.GetDomains())
	}
}
