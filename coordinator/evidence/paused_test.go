package evidence

import (
	"strings"
	"testing"
	"time"

	"berth/coordinator/model"
)

// A guest that somebody has paused with Berth is as it is recorded. Whatever else has it stand still is told. One that runs all the same
// was let run beside Berth: its record says so no more, or the next one to pause it with virsh would be taken for that person.
func TestAPauseByOrderIsNoAlarm(t *testing.T) {
	by := func(s *estate, ago time.Duration) {
		s.vm.Paused = model.Stand{By: "operator/alice", At: s.at.Add(-ago)}
	}
	paused := func(s *estate, reason string) {
		s.shows("n1", model.DomainPaused, 3)
		s.change("n1", func(f *model.NodeFacts) { f.Domains[0].Reason = reason })
	}
	for name, c := range map[string]struct {
		is      func(s *estate)
		verdict Verdict
		says    string
	}{
		"by order":                   {func(s *estate) { by(s, time.Hour); paused(s, "user") }, AsRecorded, ""},
		"with virsh":                 {func(s *estate) { paused(s, "user") }, OutOfBand, "paused on node1 (user): 'berth vm resume db'"},
		"by order, and out of space": {func(s *estate) { by(s, time.Hour); paused(s, model.ReasonIOError) }, OutOfBand, "found no room"},
		"by order, and by a migration": {
			func(s *estate) { by(s, time.Hour); s.shows("n1", model.DomainPausedMigration, 3) }, OutOfBand, "paused by a migration on node1",
		},
		"by order, and it runs": {func(s *estate) { by(s, time.Hour) }, RunsOn, "although it was paused by operator/alice since"},
		// The news that it stands still trails.
		"by order, a moment ago": {func(s *estate) { by(s, time.Second) }, AsRecorded, ""},
	} {
		s := running()
		c.is(s)
		var follower Follower
		follower.looked(s.survey())
		found := follower.looked(s.survey())
		if c.verdict == AsRecorded { // nothing follows
			if len(found) != 0 {
				t.Errorf("%s: %+v, want nothing", name, found)
			}
			continue
		}
		if len(found) != 1 || found[0].Verdict != c.verdict || !strings.Contains(found[0].Why, c.says) {
			t.Errorf("%s: %+v, want %q, %q", name, found, c.verdict, c.says)
		}
	}
}
