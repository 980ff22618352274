package script

import (
	"math/rand/v2"
	"time"
)

// What befalls the target of a migration. Without one at that time it is waited for.
const (
	// AilingJournal is drawn as a full disk: the journal of an agent takes no entry.
	AilingJournal = "ailing-journal"
	// DeafTarget is drawn as a cut: the agent hears no coordinator while memory is copied to its host.
	DeafTarget = "deaf-target"
)

// What happens to a target.
const (
	JournalFull What = "journal of a target is full"
	TargetCut   What = "target is cut from the coordinators"
)

// befall draws what befalls targets, in a third of the scripts.
func befall(what What) func(*Script, *rand.Rand) {
	return func(s *Script, r *rand.Rand) {
		if r.IntN(3) != 0 {
			return
		}
		for range 1 + r.IntN(2) {
			s.Happenings = append(s.Happenings, Happening{
				At: s.sometime(r), What: what, Host: r.IntN(min(s.Hosts, 8)),
				For: time.Duration(20+r.IntN(160)) * time.Second,
			})
		}
	}
}
