package across

import (
	"testing"

	"berth/coordinator/placement"
)

// A threshold counts with one cluster too, and for a VM that is bound to it. None does for a VM that is restarted, runs, or can start
// nowhere else than where its disk is.
func TestAThresholdCountsWithOneCluster(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*Search)
		refused bool
	}{
		"by default":            {func(*Search) {}, true},
		"bound":                 {func(s *Search) { s.Bound = "vdc/x names cluster a" }, true},
		"none":                  {func(s *Search) { s.Options[0].Threshold = 0 }, false},
		"not reached":           {func(s *Search) { s.Options[0].Threshold = 0.85 }, false},
		"the VM is restarted":   {func(s *Search) { s.Options[0].Request.Restart = true }, false},
		"the VM is on its disk": {func(s *Search) { s.Options[0].Request.Home = "a1" }, false},
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
