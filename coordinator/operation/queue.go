package operation

import "slices"

// Behind is how many starts come before a new one on a node, from how many are in work, how many wait, and how many may be in
// work at a time; 0: it may begin. A waiting start counts like one in work. So nothing that is decided now can overtake it,
// and a queue that moves meanwhile never leads to too many starts at a time.
func Behind(working, waiting, most int) int {
	if all := working + waiting; all >= most {
		return all
	}
	return 0
}

// HasTurn tells whether a queued start may begin. The queue has the IDs of the starts that wait on its node, in their order.
func HasTurn(id string, working int, queue []string, most int) bool {
	at := slices.Index(queue, id)
	return at >= 0 && working+at < most
}
