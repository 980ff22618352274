package gate

import (
	"context"
	"slices"
	"sync"
)

// rank says which calls go first when not all can.
type rank int

// The ranks, the first one first. Agents have a port and a session of their own, and do not come here.
const (
	rankMembers   rank = iota // coordinators among themselves
	rankRelief                // people who stop, cancel, drain or repair: it makes room
	rankPeople                // everything else that people ask for
	rankAnonymous             // callers without a certificate
	ranks
)

// gate lets a number of calls through at a time. Others wait: higher ranks go before lower ones, and calls of one rank in their order.
type gate struct {
	most  int // calls that are let through at a time
	queue int // calls that may wait

	mu      sync.Mutex
	inside  int
	waiting [ranks][]*waiter
}

// waiter is a call that waits.
type waiter struct {
	turn chan bool // gets one: true lets it through, false sends it away
}

// enter waits until the call may go on; leave has to be called then. It is false when too many calls wait already, or calls of a
// higher rank have taken its place. The error is the context's: its caller waits no more.
func (g *gate) enter(ctx context.Context, as rank) (admitted bool, err error) {
	w, admitted := g.join(as)
	if w == nil {
		return admitted, nil
	}
	select {
	case admitted = <-w.turn:
		return admitted, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	at := slices.Index(g.waiting[as], w)
	if at >= 0 {
		g.waiting[as] = slices.Delete(g.waiting[as], at, at+1)
	}
	g.mu.Unlock()
	if at < 0 && <-w.turn { // it was let through in this moment
		g.leave()
	}
	return false, ctx.Err()
}

// join gives a waiter for a call that has to wait.
func (g *gate) join(as rank) (w *waiter, admitted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside < g.most {
		g.inside++ // nobody waits while there is room
		return nil, true
	}
	if g.length() >= g.queue && !g.displace(as) {
		return nil, false
	}
	w = &waiter{turn: make(chan bool, 1)}
	g.waiting[as] = append(g.waiting[as], w)
	return w, false
}

// displace sends the last one of the lowest rank away, if that is lower.
func (g *gate) displace(by rank) bool {
	for lowest := ranks - 1; lowest > by; lowest-- {
		if n := len(g.waiting[lowest]); n > 0 {
			g.waiting[lowest][n-1].turn <- false
			g.waiting[lowest] = g.waiting[lowest][:n-1]
			return true
		}
	}
	return false
}

// leave lets the next one through.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for as := range g.waiting {
		if len(g.waiting[as]) > 0 {
			g.waiting[as][0].turn <- true
			g.waiting[as] = slices.Delete(g.waiting[as], 0, 1)
			return
		}
	}
	g.inside--
}

// length is how many wait. The caller holds the lock.
func (g *gate) length() (n int) {
	for as := range g.waiting {
		n += len(g.waiting[as])
	}
	return n
}

// fill is how full the queue is, 0 to 1.
func (g *gate) fill() float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return float64(g.length()) / float64(max(g.queue, 1))
}
