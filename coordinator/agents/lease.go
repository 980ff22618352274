package agents

import (
	"context"
	"time"

	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/shared/capability"
	berthv1 "berth/shared/gen/berth/v1"
)

// leaseMessage is any lease. A node whose watchdog is armed gets leases whatever its agent knows of: without them it would be reset.
var leaseMessage = &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Lease{Lease: &berthv1.Lease{}}}

// leaseEvery is between two leases of a node, far below what one lasts.
const leaseEvery = 2 * time.Second

// disarmAfter is how long nothing must have needed a node's watchdog before it is disarmed.
const disarmAfter = 30 * time.Second

// Leases is what giving leases stands on. All of it is needed.
type Leases struct {
	Lasts time.Duration
	// Verify makes sure that this member still leads.
	Verify func(context.Context) error
	// Given is told of each lease before it goes out, and of each node whose watchdog is told to be disarmed.
	Given func(node string, leased bool)
}

// GiveLeases keeps the nodes alive that reset themselves without, until the context ends. A lease lasts from when the agent sent
// a report, and goes out only when this member has made sure, after it took the report in, that it still leads: so no
// lease lasts longer than its span beyond the beginning of another leadership.
func (s *Server) GiveLeases(ctx context.Context, leases Leases) {
	ticker := time.NewTicker(leaseEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.giveLeases(ctx, leases)
		}
	}
}

func (s *Server) giveLeases(ctx context.Context, leases Leases) {
	due := s.due()
	if len(due) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, leaseEvery)
	defer cancel()
	if err := leases.Verify(ctx); err != nil {
		s.Log.Warn("no leases are given: it could not be made sure that this member leads", "error", err)
		return
	}
	for x, lease := range due {
		if lease.Sequence > 0 {
			lease.Seconds = leases.Lasts.Seconds()
		}
		leases.Given(x.node, lease.Sequence > 0)
		x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Lease{Lease: lease}})
	}
}

// lives tells whether a node with a watchdog is to be given leases. One that is armed lives by them until its record says that its silence
// proves nothing, and has said so for a while: a change of the record that was decided before may still come.
func (x *session) lives(node *model.Node, guarded bool) bool {
	if guarded || node.Watchdog > 0 || x.needed.Load() == 0 {
		x.needed.Store(time.Now().UnixNano())
	}
	return guarded || x.armed.Load() && time.Since(time.Unix(0, x.needed.Load())) < disarmAfter
}

// due are the sessions of nodes that live by leases, with the sequence of what they reported last, and those whose watchdogs
// are armed and are to be so no more, with none.
func (s *Server) due() map[*session]*berthv1.Lease {
	s.mu.Lock()
	open := make([]*session, 0, len(s.sessions))
	for _, x := range s.sessions {
		open = append(open, x)
	}
	s.mu.Unlock()
	snapshot, due := s.Records.Snapshot(), map[*session]*berthv1.Lease{}
	guards := evidence.Moment{Records: snapshot, At: time.Now()}.Guards()
	for _, x := range open {
		node := snapshot.SharedNode(x.node)
		watched := node != nil && node.Fence.Method == model.FenceWatchdog
		if node == nil || !watched && !x.armed.Load() {
			continue // as nearly all are where nodes have fence devices
		}
		leased := watched && x.lives(node, guards(x.node)) && !node.Fenced()
		switch taken := x.taken.Load(); {
		case leased && !x.armed.Load() && len(capability.Lacks(x.knows, leaseMessage)) > 0: // it would arm what proves nothing
		case leased && taken > 0:
			due[x] = &berthv1.Lease{Sequence: taken}
		case !leased && !node.Fenced() && x.armed.Load():
			due[x] = &berthv1.Lease{}
		}
	}
	return due
}
