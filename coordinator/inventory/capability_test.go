package inventory

import (
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
)

// The watchdog of an agent that does not count the time that its host sleeps proves nothing.
func TestTheWatchdogOfAnOldAgentDoesNotCount(t *testing.T) {
	for told, want := range map[bool]time.Duration{true: 30 * time.Second, false: 0} {
		var names []string
		if told {
			names = capability.Names()
		}
		now := time.Now()
		s := New(func() time.Time { return now }, hclog.NewNullLogger())
		session, err := s.OpenSession("n1", &berthv1.Hello{
			NodeId: "n1", Incarnation: "boot/1", Version: "0.6", WatchdogSeconds: 30, Capabilities: names,
		}, 1)
		if err != nil {
			t.Fatal(err)
		}
		facts := s.Facts("n1", now)
		if facts.Watchdog != want || facts.Release != "0.6" || (len(facts.Lacks) == 0) != told {
			t.Errorf("capabilities told: %t: watchdog %s, release %s, lacks %v", told, facts.Watchdog, facts.Release, facts.Lacks)
		}
		session.Report(&berthv1.SessionRequest{Sequence: 2, Message: &berthv1.SessionRequest_Telemetry{
			Telemetry: &berthv1.NodeTelemetry{WatchdogSeconds: 30},
		}})
		if facts := s.Facts("n1", now); facts.Watchdog != want {
			t.Errorf("capabilities told: %t: watchdog %s by a sample", told, facts.Watchdog)
		}
	}
}
