package evidence

import (
	"testing"
	"time"

	"berth/coordinator/model"
)

// A VM is missing where nobody saw how it left its holder, and only there. What has to be waited for with its end known is no reason.
func TestOnlyWhatNobodySawEndIsMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		is      func(*estate)
		missing bool
		verdict Verdict
	}{
		"nobody saw its end":                     {func(s *estate) { s.gone() }, true, Undecided},
		"nobody saw its end, and one is silent":  {func(s *estate) { s.gone(); s.silent("n3", time.Hour) }, true, OutOfBand},
		"its end was seen, and one is silent":    {func(s *estate) { s.ended(time.Hour, true); s.silent("n3", time.Hour) }, false, StoppedHere},
		"its holder is off, and one is silent":   {func(s *estate) { s.fenced("n1"); s.silent("n3", time.Hour) }, false, Undecided},
		"its holder is silent":                   {func(s *estate) { s.silent("n1", time.Minute) }, false, Undecided},
		"its holder is silent, and lacked it":    {func(s *estate) { s.gone(); s.silent("n1", time.Minute) }, true, OutOfBand},
		"its holder is silent, and saw its end":  {func(s *estate) { s.ended(time.Hour, true); s.silent("n1", time.Minute) }, false, Undecided},
		"its holder is silent, another shows it": {func(s *estate) { s.silent("n1", time.Minute); s.shows("n2", "running", 3) }, true, OutOfBand},
		"its end was seen, and a copy is left": {func(s *estate) {
			s.ended(time.Hour, true)
			s.vm.Discards = []model.Discard{{Node: "n2", Epoch: 2}}
			s.shows("n2", model.DomainPaused, 2)
		}, false, Undecided},
		"its holder is off, and a copy is left": {func(s *estate) {
			s.fenced("n1")
			s.vm.Discards = []model.Discard{{Node: "n2", Epoch: 2}}
			s.shows("n2", model.DomainPaused, 2)
		}, false, Undecided},
	} {
		s := running()
		tc.is(s)
		var follower Follower
		if found := follower.Look(s.survey()); len(found) > 0 {
			t.Errorf("%s: %+v is believed at the first look", name, found)
		}
		found := follower.Look(s.survey())
		if len(found) != 1 || found[0].Verdict != tc.verdict || found[0].Missing != tc.missing {
			t.Errorf("%s: %+v, want %q, missing %t", name, found, tc.verdict, tc.missing)
		}
	}
}
