package jobs

// When a live migration is given up. Time that has passed comes in as an argument.

import (
	"fmt"
	"time"
)

const (
	// stallLimit is how long a migration may go on without getting nearer to its end: KubeVirt's progress timeout.
	stallLimit = 150 * time.Second

	// A migration that has no deadline of its own gets KubeVirt's completion timeout, by the guest's size.
	deadlinePerGiB   = 150 * time.Second
	shortestDeadline = time.Minute
)

// deadlineOf is how long a guest of this size may be copied when nobody said.
func deadlineOf(memoryBytes int64) time.Duration {
	gib := float64(memoryBytes) / (1 << 30)
	return max(shortestDeadline, time.Duration(gib*float64(deadlinePerGiB)))
}

// progress is what is known of a running migration at one moment.
type progress struct {
	elapsed   time.Duration // since the migration began
	remaining int64         // bytes still to send; 0 before the first round
}

// history is what the judgement remembers of one migration. The zero value is ready.
type history struct {
	least   int64         // smallest remainder so far
	leastAt time.Duration // when it was reached
}

// judge takes the progress and says whether to give up, and why. Limit is the longest that the migration may take; 0
// means no limit. The smallest remainder so far is what counts as progress: within a round it only shrinks, and a round
// that starts with as much as the one before has not got anywhere. It is pure: the same history gives the same verdict.
func (h *history) judge(now progress, limit time.Duration) (giveUp bool, why string) {
	if limit > 0 && now.elapsed >= limit {
		return true, fmt.Sprintf("not done after %s: the guest writes memory faster than the link takes it, or the link is slow", limit)
	}
	if now.remaining > 0 && (h.least == 0 || now.remaining < h.least) {
		h.least, h.leastAt = now.remaining, now.elapsed
	}
	if h.least > 0 && now.elapsed-h.leastAt >= stallLimit {
		return true, fmt.Sprintf("no progress for %s", stallLimit)
	}
	return false, ""
}
