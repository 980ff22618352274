package inventory

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	berthv1 "berth/shared/gen/berth/v1"
)

// What a guest ran with comes by an inventory, an event or the answer to a stop, and is looked at once.
func TestWhatAGuestRanWithLastIsTold(t *testing.T) {
	gone := func(epoch uint64) *berthv1.Domain {
		return &berthv1.Domain{
			Uuid: "u1", State: berthv1.DomainState_DOMAIN_STATE_ABSENT, LastRun: &berthv1.LastRun{Epoch: epoch, Devices: &berthv1.Devices{
				Devices: []*berthv1.Device{{Kind: "disk", Key: "vda", Source: &berthv1.DiskSource{Path: "/b"}, Xml: "<disk/>"}},
			}},
		}
	}
	inventory := func(domains ...*berthv1.Domain) *berthv1.SessionRequest {
		return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Inventory{Inventory: &berthv1.InventoryReport{Domains: domains}}}
	}
	event := func(domain *berthv1.Domain) *berthv1.SessionRequest {
		return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_DomainChange{DomainChange: &berthv1.DomainChange{Domain: domain}}}
	}
	answer := func(domain *berthv1.Domain, repeated bool) *berthv1.SessionRequest {
		result := &berthv1.CommandResult{OperationId: "op", Domain: domain, Repeated: repeated}
		return &berthv1.SessionRequest{Message: &berthv1.SessionRequest_Result{Result: result}}
	}
	running := &berthv1.Domain{Uuid: "u1", State: berthv1.DomainState_DOMAIN_STATE_RUNNING, LastRun: gone(1).GetLastRun()}
	for name, tc := range map[string]struct {
		said   []*berthv1.SessionRequest
		told   bool
		looked int
	}{
		"by an inventory":                    {[]*berthv1.SessionRequest{inventory(gone(1)), inventory(gone(1))}, true, 1},
		"by an event":                        {[]*berthv1.SessionRequest{inventory(), event(gone(1))}, true, 1},
		"by an answer":                       {[]*berthv1.SessionRequest{inventory(), answer(gone(1), false)}, true, 1},
		"by an answer that is old":           {[]*berthv1.SessionRequest{inventory(), answer(gone(1), true)}, false, 0},
		"it runs again":                      {[]*berthv1.SessionRequest{inventory(gone(1)), event(running)}, false, 1},
		"nobody tells it any more":           {[]*berthv1.SessionRequest{inventory(gone(1)), inventory()}, false, 1},
		"an answer that says nothing of it":  {[]*berthv1.SessionRequest{inventory(gone(1)), answer(nil, false)}, true, 1},
		"one that runs is not what was last": {[]*berthv1.SessionRequest{inventory(running)}, false, 0},
	} {
		s := New(time.Now, hclog.NewNullLogger())
		session, err := s.OpenSession("n1", &berthv1.Hello{Incarnation: "boot/1"}, 1)
		if err != nil {
			t.Fatal(err)
		}
		looked := 0
		for i, message := range tc.said {
			message.Sequence = uint64(i + 2)
			if !session.Report(message) {
				t.Fatalf("%s: message %d is not taken", name, i)
			}
			looked += len(s.ChangedDevices())
		}
		run, told := s.Facts("n1", time.Now()).LastRuns["u1"]
		if on := s.RanOn("u1"); (len(on) == 1 && on[0] == "n1") != tc.told {
			t.Errorf("%s: %q tell of it", name, on)
		}
		if told != tc.told || looked != tc.looked || told && (run.Epoch != 1 || len(run.Devices) != 1 || run.Devices[0].XML == "") {
			t.Errorf("%s: %+v, looked at %d times", name, run, looked)
		}
	}
}
