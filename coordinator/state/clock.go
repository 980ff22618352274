package state

import (
	"strconv"
	"time"
)

// MaxClockStep is how far one command moves the time by which records grow old. A leader whose clock is years ahead would let all of
// them be too old at once, and for ever: time that ran once does not run again. A site that was off for long catches up by some
// thousand commands, and its records are kept for that much longer.
const MaxClockStep = 5 * time.Minute

// stamped is the latest time stamped on any command, after another one was. Clocks of leaders differ, and time that ran once must not
// run again. Members of earlier releases know no bound.
func stamped(before, at time.Time, bounded bool) time.Time {
	if most := before.Add(MaxClockStep); bounded && !before.IsZero() && at.After(most) {
		return most
	}
	return later(before, at)
}

// level is Snapshot.FeatureLevel of the tables.
func (t tables) level() uint64 {
	row, known := get[metaRow](t, string(Meta), MetaFeatureLevel)
	if !known {
		return 1
	}
	level, _ := strconv.ParseUint(row.Value, 10, 32)
	return level
}
