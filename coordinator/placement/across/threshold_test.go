package across

import (
	"testing"

	"berth/coordinator/placement"
)

// A threshold counts with one cluster too. One that nobody has set does not for a VM that is bound to the cluster, and none does for a
// VM that is restarted, runs, or can start nowhere else than where its disk is.
func TestAThresholdCountsWithOneCluster(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Search)
		refused bool
	}{
		"by default":                  {func(*Search) {}, true},
		"bound":                       {func(s *Search) { s.Bound = "vdc/x names cluster a" }, false},
		"bound, and set":              {func(s *Search) { s.Bound, s.Options[0].Explicit = "vdc/x names cluster a", true }, true},
		"none":                        {func(s *Search) { s.Options[0].Threshold = 0 }, false},
		"not reached":                 {func(s *Search) { s.Options[0].Threshold = 0.85 }, false},
		"set, and the VM restarted":   {func(s *Search) { s.Options[0].Explicit, s.Options[0].Request.Restart = true, true }, false},
		"set, and the VM on its disk": {func(s *Search) { s.Options[0].Explicit, s.Options[0].Request.Home = true, "a1" }, false},
	} {
		s := three()
		s.search.Options = s.search.Options[:1]
		s.search.Options[0].Threshold = 0.01
		c.change(&s.search)
		d := s.decide(t)
		if refused := d.FailedPhase == placement.PhaseThreshold; refused != c.refused {
			t.Errorf("%s: %s, phase %q: %s", name, d.Outcome, d.FailedPhase, d.Reason)
		}
	}
}
