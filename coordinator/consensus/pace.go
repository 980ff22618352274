package consensus

import (
	"slices"
	"sync"
	"time"
)

const (
	// slowWrite is how long writes of a leader's log may take. Each change waits for one, and the agents' leases wait for changes.
	slowWrite = 500 * time.Millisecond
	// paceOf is the time whose writes count, and paceLast how many of them do, the last ones.
	paceOf   = time.Minute
	paceLast = 512
	// paceLeast is how many writes it takes to call a disk slow: one that was held up once is not.
	paceLeast = 5
)

// pace is how long the last writes of the log took. It is safe for concurrent use, and its zero value is ready.
type pace struct {
	mu     sync.Mutex
	writes []timed // the oldest is at next once there are paceLast
	next   int
}

type timed struct {
	at   time.Time // when it was done
	took time.Duration
}

func (p *pace) add(at time.Time, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.writes) < paceLast {
		p.writes = append(p.writes, timed{at, took})
		return
	}
	p.writes[p.next] = timed{at, took}
	p.next = (p.next + 1) % paceLast
}

// p99 is the time that 99 of 100 writes of the last minute took at most; 0 when there were too few to tell.
func (p *pace) p99(now time.Time) time.Duration {
	p.mu.Lock()
	var took []time.Duration
	for _, write := range p.writes {
		if now.Sub(write.at) < paceOf {
			took = append(took, write.took)
		}
	}
	p.mu.Unlock()
	if len(took) < paceLeast {
		return 0
	}
	slices.Sort(took)
	return took[(len(took)*99-1)/100]
}
