package agents

import (
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/time/rate"

	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

const (
	// mostFirst is how large the first message of a stream may be, in bytes: a hello, or a ticket. Thousands of operations that an agent
	// is at work on have room.
	mostFirst = 256 << 10

	// An agent has one session. When it comes back over another connection the end of the one before may not have been seen yet.
	mostSessions = 4
	// What comes anew more often is refused: each session may be under another boot, which is written down.
	sessionsASecond = 1
	sessionsAtOnce  = 30
	// mostTunnels is how many consoles and images one node has at once.
	mostTunnels = 32
)

// streams counts what each agent has open, over all its connections. The zero value is ready.
type streams struct {
	mu    sync.Mutex
	open  map[stream]int
	paces map[string]*rate.Limiter // of nodes' sessions
}

// mostPaces bounds the nodes whose pace is known, all certificates of the cluster that still are valid included.
const mostPaces = 1 << 16

// paced tells whether a node may open another session now.
func (s *streams) paced(node string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paces == nil || len(s.paces) >= mostPaces {
		s.paces = make(map[string]*rate.Limiter)
	}
	pace := s.paces[node]
	if pace == nil {
		pace = rate.NewLimiter(sessionsASecond, sessionsAtOnce)
		s.paces[node] = pace
	}
	return pace.AllowN(now, 1)
}

// stream is a procedure of one node.
type stream struct{ node, procedure string }

func (s *streams) enter(of stream, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of] >= most {
		return false
	}
	if s.open == nil {
		s.open = make(map[stream]int)
	}
	s.open[of]++
	return true
}

func (s *streams) leave(of stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[of]--; s.open[of] == 0 {
		delete(s.open, of)
	}
}

// limit refuses a stream to an agent that has too many, before anything of it is read.
func (s *streams) limit(next http.Handler) http.Handler {
	refusals := connect.NewErrorWriter()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, _ := rpc.Caller(r.Context()) // nobody is refused by the method itself
		of, most := stream{caller.ID, r.URL.Path}, mostSessions
		if r.URL.Path == berthv1connect.AgentServiceTunnelProcedure {
			most = mostTunnels
		}
		if most == mostSessions && !s.paced(caller.ID, time.Now()) || !s.enter(of, most) {
			_ = refusals.Write(w, r, tooMany(caller.Name, most)) // its sender may be gone, and needs no answer then
			return
		}
		defer s.leave(of)
		next.ServeHTTP(w, r)
	})
}

func tooMany(name string, most int) error {
	return rpc.Errorf(connect.CodeResourceExhausted, &berthv1.ErrorDetail{
		Code: rpc.Unavailable, Subject: "node/" + name, NextStep: "see that only one agent runs with this node's certificate",
	}, "node %s has %d streams of this kind already, or opens them too often", name, most)
}
