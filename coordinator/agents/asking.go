package agents

import (
	"sync"
	"time"
)

// askingFor is how long an agent counts that has asked for the leader. One that finds the leader asks once in that time.
const askingFor = 90 * time.Second

// asking are the agents that come again and again to a member that does not lead: where it sends them, they reach nobody.
type asking struct {
	mu   sync.Mutex
	came map[string][2]time.Time // by node ID: the last time, and the time before
}

// sent takes note of an agent that is sent to the leader.
func (a *asking) sent(node string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.came == nil {
		a.came = map[string][2]time.Time{}
	}
	a.came[node] = [2]time.Time{at, a.came[node][0]}
}

// count is how many have come twice lately.
func (a *asking) count(now time.Time) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for node, came := range a.came {
		switch {
		case now.Sub(came[0]) > askingFor:
			delete(a.came, node)
		case now.Sub(came[1]) <= askingFor:
			n++
		}
	}
	return n
}

// Asking is how many agents have asked this member for the leader again and again.
func (s *Server) Asking() int { return s.asking.count(time.Now()) }

// Hearing is how many agents have a session with this member.
func (s *Server) Hearing() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}
