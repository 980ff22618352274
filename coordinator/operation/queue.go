package operation

import "slices"

// Behind is how many starts come before another one on a node that works on some, where others wait, and which takes on most
// at a time; 0: it may begin. A start that waits is counted like one that has begun, so that nothing that is decided now can
// overtake it, and a queue that moves on meanwhile never makes more of them than may start at a time.
func Behind(working, waiting, most int) int {
	if all := working + waiting; all >= most {
		return all
	}
	return 0
}

// HasTurn tells whether the turn of a queued start has come. The queue has the IDs of those that wait on its node, in their
// order.
func HasTurn(id string, working int, queue []string, most int) bool {
	at := slices.Index(queue, id)
	return at >= 0 && working+at < most
}
