package inventory

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	berthv1 "berth/shared/gen/berth/v1"
)

// A sample that was taken before a VM was started again says nothing of the run that its node shows now, whichever way that is told.
func TestASampleOfAnEarlierRun(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	s := New(func() time.Time { return now }, hclog.NewNullLogger())
	session, err := s.OpenSession("n1", &berthv1.Hello{NodeId: "n1", Incarnation: "boot/1"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	sequence := uint64(1)
	report := func(message *berthv1.SessionRequest) {
		sequence++
		message.Sequence = sequence
		session.Report(message)
		now = now.Add(time.Second)
	}
	run := func(epoch uint64, state berthv1.DomainState) *berthv1.Domain {
		return &berthv1.Domain{Uuid: "v1", Name: "web", State: state, MemoryBytes: 4 << 30, Vcpus: 2, Managed: true, Epoch: epoch}
	}
	lists := func(domains ...*berthv1.Domain) {
		report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{
			Node: &berthv1.NodeInventory{MemoryBytes: 8 << 30}, Domains: domains,
		}}})
	}
	changes := func(domain *berthv1.Domain) {
		report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{DomainChange: &berthv1.DomainChange{Domain: domain}}})
	}
	measures := func(gib int64) {
		report(&berthv1.SessionRequest{Message: &berthv1.SessionRequest_Telemetry{Telemetry: &berthv1.NodeTelemetry{
			Domains: []*berthv1.DomainTelemetry{{Uuid: "v1", BalloonBytes: new(gib << 30)}},
		}}})
	}
	want := func(what string, gib int64) {
		t.Helper()
		facts := s.Facts("n1", now)
		domain := facts.Domain("v1")
		if domain == nil || (domain.Balloon == nil) != (gib == 0) || gib > 0 && int64(*domain.Balloon) != gib<<30 {
			t.Errorf("%s: it is shown as %+v, wanted a balloon of %d GiB", what, domain, gib)
		}
	}
	const running, paused = berthv1.DomainState_DOMAIN_STATE_RUNNING, berthv1.DomainState_DOMAIN_STATE_PAUSED
	lists(run(1, running))
	want("nothing was measured", 0)
	measures(1)
	want("measured", 1)
	changes(run(1, paused))
	want("paused", 1)
	lists(run(1, running))
	want("listed again", 1)
	changes(run(1, berthv1.DomainState_DOMAIN_STATE_ABSENT))
	changes(run(2, running))
	want("started again", 0)
	measures(2)
	want("measured again", 2)
	lists(run(3, running))
	want("another run in a list", 0)
	measures(3)
	want("measured a third time", 3)
	changes(run(4, running))
	want("another run, and nobody saw the end", 0)
}
