package evidence

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

func TestATargetThatGetsNoGuestNow(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 30, 0, time.UTC)
	for name, c := range map[string]struct {
		facts model.NodeFacts
		says  string
	}{
		"up":                  {model.NodeFacts{Liveness: model.Up, HeardAt: now}, ""},
		"an agent restarting": {model.NodeFacts{Liveness: model.Suspect, HeardAt: now.Add(-SuspectPatience + time.Second)}, ""},
		"silent":              {model.NodeFacts{Liveness: model.Unreachable, HeardAt: now.Add(-SuspectPatience)}, "hv2 is silent since 12:00:15"},
		"libvirtd restarting": {model.NodeFacts{Liveness: model.Degraded, HeardAt: now}, ""},
		"a large fleet":       {model.NodeFacts{Liveness: model.Suspect, HeardAt: now.Add(-20 * time.Second), Pace: model.PaceOf(1000)}, ""},
		"never heard":         {model.NodeFacts{Liveness: model.Unreachable, LivenessReason: "no session"}, "hv2 has not been heard: no session"},
		"not heard yet":       {model.NodeFacts{Liveness: model.Suspect}, ""},
		"ailing": {
			model.NodeFacts{Liveness: model.Up, HeardAt: now, Ailing: "its agent's journal takes no entry"},
			"hv2 gets no VMs: its agent's journal takes no entry",
		},
	} {
		if got := Unfit("hv2", c.facts, now); got != c.says {
			t.Errorf("%s: %q, want %q", name, got, c.says)
		}
	}
}
