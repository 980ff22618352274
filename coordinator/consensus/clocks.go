package consensus

import (
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/raft"
)

// maxAhead is how far the clock of a leader may be ahead of those of the other voters. Its times are stamped on all that it
// commits.
const maxAhead = 5 * time.Minute

// skew is how far a member's clock was ahead of this one's when it reported, the time that the report took left out.
func (c *self) skew(told news[Report]) (ahead time.Duration, known bool) {
	return told.what.At.Sub(c.now().Add(-time.Since(told.at))), !told.what.At.IsZero()
}

// lookAtClocks compares this member's clock with those of the other voters that have reported lately. What it finds stays until the
// next report.
func (c *health) lookAtClocks() {
	heard, behind := 1, []time.Duration(nil) // this one is heard
	for _, server := range c.servers() {
		if server.Suffrage != raft.Voter || string(server.ID) == c.cfg.MemberID {
			continue
		}
		told, known := c.reports.of(server.ID)
		if !known || time.Since(told.at) >= reportLife {
			continue
		}
		if ahead, timed := c.skew(told); timed {
			heard++
			if ahead < -maxAhead {
				behind = append(behind, -ahead)
			}
		}
	}
	c.ahead.Store(int64(leadOf(behind, heard)))
}

// leadOf is by how much a clock is ahead of most: of so many that are heard, itself included, those that are behind it are given. 0 when
// they are not most: with two that differ, nobody can tell which is wrong.
func leadOf(behind []time.Duration, heard int) time.Duration {
	if 2*len(behind) <= heard {
		return 0
	}
	return slices.Min(behind)
}

// checkClock refuses to stamp times that most others take for the future.
func (c *self) checkClock() error {
	ahead := time.Duration(c.ahead.Load())
	if ahead == 0 {
		return nil
	}
	return fmt.Errorf("%w by %s: set it right, 'timedatectl timesync-status' there tells why it is wrong", ErrClock, far(ahead))
}

// far says how far clocks are apart.
func far(apart time.Duration) string {
	if days := apart.Hours() / 24; days >= 2 {
		return fmt.Sprintf("%.0f days", days)
	}
	return apart.Round(time.Second).String()
}
