package outofband

import (
	"maps"
	"sync"
	"time"
)

// A guest that was let run and stands still again is let run again less and less often: its disk may fail for another reason.
const (
	unpauseFirst = 30 * time.Second // and not at once: what its node tells of its pools may be from before it was paused
	unpauseMost  = time.Hour
)

// unpauses are when guests were let run again, or could first have been, by VM ID. The zero value is ready.
type unpauses struct {
	mu     sync.Mutex
	tries  map[string]unpaused
	pruned time.Time
}

type unpaused struct {
	at   time.Time
	rest time.Duration // before it may be let run once more
}

// due tells whether a guest may be let run now, and counts that.
func (u *unpauses) due(vm string, now time.Time) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, tried := u.tries[vm]
	since := now.Sub(last.at)
	switch {
	case !tried || since >= 2*unpauseMost:
		u.keep(vm, unpaused{now, unpauseFirst})
		return false
	case since < last.rest:
		return false
	default:
		u.keep(vm, unpaused{now, min(2*last.rest, unpauseMost)})
		return true
	}
}

func (u *unpauses) keep(vm string, last unpaused) {
	if u.tries == nil {
		u.tries = map[string]unpaused{}
	}
	if last.at.Sub(u.pruned) >= unpauseMost {
		maps.DeleteFunc(u.tries, func(_ string, old unpaused) bool { return last.at.Sub(old.at) >= 2*unpauseMost })
		u.pruned = last.at
	}
	u.tries[vm] = last
}
