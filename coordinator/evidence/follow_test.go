package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/operation"
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
		if found := follower.looked(s.survey()); len(found) > 0 {
			t.Errorf("%s: %+v is believed at the first look", name, found)
		}
		found := follower.looked(s.survey())
		if len(found) != 1 || found[0].Verdict != tc.verdict || found[0].Missing != tc.missing {
			t.Errorf("%s: %+v, want %q, missing %t", name, found, tc.verdict, tc.missing)
		}
	}
}

// A take-over whose answer was lost may have marked the guest all the same. It is taken over again, and nothing else that has an epoch
// of after the record's is.
func TestAGuestThatWasMarkedWithoutAnAnswerIsFollowed(t *testing.T) {
	adopted := operation.Operation{VM: vmID, Kind: operation.Adopt, Target: "n2", Epoch: 4, Phase: operation.Ended, Result: operation.Failed}
	moved := adopted
	moved.Kind = operation.Migrate
	for name, tc := range map[string]struct {
		history []operation.Operation
		epoch   uint64
		verdict Verdict
	}{
		"its adoption has marked it":           {[]operation.Operation{adopted}, 4, MovedAway},
		"a migration has brought it":           {[]operation.Operation{moved}, 4, OutOfBand},
		"nobody gave that epoch":               {[]operation.Operation{adopted}, 5, OutOfBand},
		"it has the mark of before, as always": {nil, 3, MovedAway},
	} {
		s := running()
		s.vm.LastEpoch, s.history = 4, tc.history
		s.gone()
		s.shows("n2", model.DomainRunning, tc.epoch)
		var follower Follower
		follower.looked(s.survey())
		if found := follower.looked(s.survey()); len(found) != 1 || found[0].Verdict != tc.verdict {
			t.Errorf("%s: %+v, want %q", name, found, tc.verdict)
		}
	}
}

// A VM that was stopped, and that somebody has started on a node, may be moved on to one that is not heard. So it is kept where it was
// seen until it is known how it left.
func TestAVMThatSomebodyHasStartedIsKept(t *testing.T) {
	at := running().at
	seen, gone := model.Whereabouts{Boot: "n2-boot", Missing: at.Add(-time.Minute)}, model.Whereabouts{Missing: at}
	for name, tc := range map[string]struct {
		is   func(*estate)
		want model.Whereabouts
	}{
		"it is shown for the first time": {
			func(s *estate) { s.vm.Whereabouts = model.Whereabouts{} }, model.Whereabouts{Boot: "n2-boot", Missing: at},
		},
		"it is shown as before": {func(*estate) {}, seen},
		"it is shown elsewhere": {
			func(s *estate) { s.lists("n2"); s.shows("n3", model.DomainRunning, 3) }, model.Whereabouts{Boot: "n3-boot", Missing: at},
		},
		"a definition of it is left":                {func(s *estate) { s.shows("n2", model.DomainShutoff, 3) }, gone},
		"nobody has seen how it left":               {func(s *estate) { s.lists("n2") }, gone},
		"its end was seen":                          {func(s *estate) { s.endedOn("n2", time.Second, time.Minute, true) }, model.Whereabouts{}},
		"its end was seen, and not all of its stay": {func(s *estate) { s.endedOn("n2", time.Second, 30*time.Second, false) }, seen},
		"its node is silent":                        {func(s *estate) { s.silent("n2", time.Minute) }, seen},
		"its node is off":                           {func(s *estate) { s.fenced("n2") }, model.Whereabouts{}},
		"its node is off, and was seen without it":  {func(s *estate) { s.lists("n2"); s.fenced("n2") }, gone},
		"its node has booted anew": {
			func(s *estate) { s.lists("n2"); s.change("n2", func(f *model.NodeFacts) { f.Boot = "n2-next" }) }, gone,
		},
		"it is missing, and was not shown since": {func(s *estate) { s.lists("n2"); s.vm.Whereabouts = gone }, gone},
		"it was stopped, and nobody has started it": {
			func(s *estate) { s.lists("n2"); s.vm.Whereabouts = model.Whereabouts{} }, model.Whereabouts{},
		},
	} {
		s := running()
		s.beside("n2")
		tc.is(s)
		was, is := s.vm.Whereabouts, s.vm.Whereabouts
		for _, vm := range seenOf(s.survey()) {
			is = vm.Whereabouts
		}
		if is != tc.want {
			t.Errorf("%s: %+v is kept of %+v, want %+v", name, is, was, tc.want)
		}
	}
}

// A guest that stands still for want of space where somebody has moved it has run there. It is followed, so that it runs on when there is
// room: also when a migration asked both nodes and found it on neither. What anybody has paused is not, nor is it followed while a node
// that does not tell may run a newer one.
func TestAGuestThatStarvesWhereItWasMovedIsFollowed(t *testing.T) {
	lost := func(s *estate) {
		s.vm.Holder, s.vm.Whereabouts = "", model.Whereabouts{Missing: s.at.Add(-time.Minute)}
	}
	for name, tc := range map[string]struct {
		is      func(*estate)
		reason  string
		epoch   uint64
		verdict Verdict
	}{
		"its holder lacks it":                       {func(*estate) {}, model.ReasonIOError, 3, MovedAway},
		"its holder lacks it, and somebody's pause": {func(*estate) {}, "user", 3, OutOfBand},
		"its holder lacks it, and another is silent": {
			func(s *estate) { s.silent("n3", time.Minute) }, model.ReasonIOError, 3, OutOfBand,
		},
		"a migration has lost it":                      {lost, model.ReasonIOError, 3, CameBack},
		"a migration has lost it, and another's epoch": {lost, model.ReasonIOError, 2, OutOfBand},
		"a migration has lost it, and another is silent": {
			func(s *estate) { lost(s); s.silent("n3", time.Minute) }, model.ReasonIOError, 3, OutOfBand,
		},
		"nobody has asked where it may be": {
			func(s *estate) { lost(s); s.vm.Whereabouts = model.Whereabouts{} }, model.ReasonIOError, 3, OutOfBand,
		},
		"it is to be off": {func(s *estate) { lost(s); s.vm.Desired = model.Stopped }, model.ReasonIOError, 3, OutOfBand},
	} {
		s := running()
		s.gone()
		s.shows("n2", model.DomainPaused, tc.epoch)
		s.change("n2", func(f *model.NodeFacts) { f.Domains[0].Reason = tc.reason })
		tc.is(s)
		var follower Follower
		follower.looked(s.survey())
		found := follower.looked(s.survey())
		if len(found) != 1 || found[0].Verdict != tc.verdict {
			t.Errorf("%s: %+v, want %q", name, found, tc.verdict)
		}
	}
}

// A second copy of a VM whose holder's stands still is told, though it does not run twice: nobody resumes either of them.
func TestASecondCopyOfAGuestThatStandsStillIsTold(t *testing.T) {
	still := model.Domain{UUID: vmID, Name: "db", State: model.DomainPaused, Reason: model.ReasonIOError, Managed: true, Epoch: 3}
	moves, leaves := still, still
	moves.State, leaves.JobActive = model.DomainPausedMigration, true
	for name, tc := range map[string]struct {
		here  model.Domain
		other model.DomainState
		told  bool
	}{
		"the other runs":                     {still, model.DomainRunning, true},
		"the other is paused as well":        {still, model.DomainPaused, false},
		"it is being migrated by hand":       {moves, model.DomainRunning, false},
		"it is being migrated, with its job": {leaves, model.DomainRunning, false},
	} {
		s := running()
		s.shows("n2", tc.other, 3)
		s.change("n1", func(f *model.NodeFacts) { f.Domains = []model.Domain{tc.here} })
		var follower Follower
		follower.looked(s.survey())
		found := follower.looked(s.survey())
		const says = "it is paused on node1 (epoch 3) and running on node2 (epoch 3): both are kept"
		if len(found) != 1 || (found[0].Verdict == OutOfBand) != tc.told || tc.told && !strings.Contains(found[0].Why, says) {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
