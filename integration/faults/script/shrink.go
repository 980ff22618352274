package script

import (
	"slices"
	"time"
)

// Shrink makes a script that fails as small as it still fails: fewer happenings, fewer faults by themselves, fewer hosts.
// Fails runs a script and tells whether it fails in the way that is looked for. At most so many scripts are run.
func Shrink(script Script, runs int, fails func(Script) bool) Script {
	try := func(change func(*Script)) bool {
		if runs <= 0 {
			return false
		}
		runs--
		smaller := script
		smaller.Happenings = slices.Clone(script.Happenings)
		change(&smaller)
		if !fails(smaller) {
			return false
		}
		script = smaller
		return true
	}
	for before := -1; before != len(script.Happenings) && runs > 0; {
		before = len(script.Happenings)
		for size := max(len(script.Happenings)/2, 1); size > 0; size /= 2 {
			for at := 0; at < len(script.Happenings); {
				end := min(at+size, len(script.Happenings))
				if !try(func(s *Script) { s.Happenings = slices.Delete(s.Happenings, at, end) }) {
					at = end
				}
			}
		}
		rates := func(m *Mix) []*int {
			return []*int{
				&m.Lost, &m.Doubled, &m.CallFails, &m.AnswersLost, &m.LateCalls, &m.StartFails, &m.PrepareFails, &m.PersistFails,
				&m.ConfirmFails, &m.ReplyLost, &m.JournalFails, &m.FenceFails, &m.FenceHangs, &m.FenceAnswersLost,
				&m.FenceStrikesOther,
			}
		}
		for i, rate := range rates(&script.Mix) {
			if *rate > 0 {
				try(func(s *Script) { *rates(&s.Mix)[i] = 0 })
			}
		}
		if script.Mix.Wild {
			try(func(s *Script) { s.Mix.Wild = false })
		}
		for script.Hosts > 2 && try(func(s *Script) { s.Hosts-- }) {
		}
		for script.Members > 1 && try(func(s *Script) { s.Members -= 2 }) {
		}
	}
	if last := len(script.Happenings) - 1; last >= 0 {
		try(func(s *Script) { s.Chaos = s.Happenings[last].At + time.Second })
	}
	return script
}
