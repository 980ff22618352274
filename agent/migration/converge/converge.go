// Package converge decides when a live migration is given up. It is pure: time passed comes in as an argument.
package converge

import (
	"fmt"
	"time"
)

const (
	// StallLimit is how long a migration may go on without getting nearer to its end: KubeVirt's progress timeout.
	StallLimit = 150 * time.Second

	// A migration that has no deadline of its own gets KubeVirt's completion timeout, by the guest's size.
	deadlinePerGiB   = 150 * time.Second
	shortestDeadline = time.Minute
)

// Deadline is how long a guest of this size may be copied when nobody said.
func Deadline(memoryBytes int64) time.Duration {
	gib := float64(memoryBytes) / (1 << 30)
	return max(shortestDeadline, time.Duration(gib*float64(deadlinePerGiB)))
}

// Progress is what is known of a running migration at one moment.
type Progress struct {
	Elapsed   time.Duration // since the migration began
	Remaining int64         // bytes still to send; 0 before the first round
}

// History is what the judgement remembers of one migration. The zero value is ready.
type History struct {
	least   int64         // smallest remainder so far
	leastAt time.Duration // when it was reached
}

// Judge takes the progress and says whether to give up, and why. Limit is the longest that the migration may take; 0
// means no limit. The smallest remainder so far is what counts as progress: within a round it only shrinks, and a round
// that starts with as much as the one before has not got anywhere. It is pure: the same history gives the same verdict.
func (h *History) Judge(now Progress, limit time.Duration) (giveUp bool, why string) {
	if limit > 0 && now.Elapsed >= limit {
		return true, fmt.Sprintf("not done after %s: the guest writes memory faster than the link takes it, or the link is slow", limit)
	}
	if now.Remaining > 0 && (h.least == 0 || now.Remaining < h.least) {
		h.least, h.leastAt = now.Remaining, now.Elapsed
	}
	if h.least > 0 && now.Elapsed-h.leastAt >= StallLimit {
		return true, fmt.Sprintf("no progress for %s", StallLimit)
	}
	return false, ""
}
