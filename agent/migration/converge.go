// Package migration runs one live migration on its source and decides when to give it up.
package migration

import (
	"fmt"
	"time"
)

// StallLimit is how long a migration may go on without getting nearer to its end: KubeVirt's progress timeout.
const StallLimit = 150 * time.Second

// Progress is what is known of a running migration at one moment.
type Progress struct {
	Elapsed   time.Duration // since the migration began
	Remaining int64         // bytes still to send; 0 before the first round
}

// Converge watches one migration. The zero value is ready.
type Converge struct {
	least   int64         // smallest remainder so far
	leastAt time.Duration // when it was reached
}

// Judge takes the progress and says whether to give up, and why. Deadline is the longest that the migration may take; 0
// means no limit. It is pure: the same history gives the same verdict.
func (c *Converge) Judge(now Progress, deadline time.Duration) (giveUp bool, why string) {
	if deadline > 0 && now.Elapsed >= deadline {
		return true, fmt.Sprintf("not done after %s: the guest writes memory faster than the link takes it, or the link is slow", deadline)
	}
	if now.Remaining > 0 && (c.least == 0 || now.Remaining < c.least) {
		c.least, c.leastAt = now.Remaining, now.Elapsed
	}
	if c.least > 0 && now.Elapsed-c.leastAt >= StallLimit {
		return true, fmt.Sprintf("no progress for %s", StallLimit)
	}
	return false, ""
}
