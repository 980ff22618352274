package outofband

import (
	"maps"
	"sync"
	"time"
)

// A guest that was let run and stands still again is let run again less and less often: its disk may fail for another reason.
const (
	unpauseFirst = time.Minute
	unpauseMost  = time.Hour
)

// unpauses are when guests were let run again, by VM ID. The zero value is ready.
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
		last = unpaused{now, unpauseFirst}
	case since < last.rest:
		return false
	default:
		last = unpaused{now, min(2*last.rest, unpauseMost)}
	}
	if u.tries == nil {
		u.tries = map[string]unpaused{}
	}
	if now.Sub(u.pruned) >= unpauseMost {
		maps.DeleteFunc(u.tries, func(_ string, last unpaused) bool { return now.Sub(last.at) >= 2*unpauseMost })
		u.pruned = now
	}
	u.tries[vm] = last
	return true
}
