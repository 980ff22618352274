package agents

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/inventory"
	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// A node that was removed keeps its certificate, and perhaps guests: its machine may have been frozen when somebody took it for dead.
// So its agent is not sent away. It is told that it was removed, gets no orders, and its word is no evidence of absence. What it shows is
// looked at, and the only thing it is ever told to do is to suspend a guest. Everything about it is bounded, because nobody vouches for
// it any more.
const (
	removedAtOnce  = 64              // removed nodes that are listened to
	removedDomains = 4096            // that are kept of each
	removedEvery   = 5 * time.Second // between two listings that are read
	removedSample  = time.Minute     // between two samples, which nobody reads
)

// removed is a node that was removed and speaks.
type removed struct {
	*session
	mu sync.Mutex
	evidence.Removed
	read time.Time // when a listing of it was read last
}

// admitRemoved opens the session of a node that is not on record, if there are not too many of them. The caller holds the lock.
func (s *Server) admitRemoved(x *session) bool {
	older := s.removed[x.node]
	if older == nil && len(s.removed) >= removedAtOnce {
		return false
	}
	if older != nil {
		older.end(replaced())
	}
	x.term, x.removed = s.term, &removed{session: x, Removed: evidence.Removed{Node: x.node, Name: x.name}}
	_, all := s.addresses()
	x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{
		ClusterId: s.ClusterID, Term: s.term, AgentAddresses: all, Now: timestamppb.Now(), Removed: true,
		TelemetryIntervalSeconds: removedSample.Seconds(), InventoryIntervalSeconds: model.InventoryInterval.Seconds(),
	}}})
	// Nobody gives it leases any more, and nothing is proven by its reset.
	x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Lease{Lease: &berthv1.Lease{}}})
	s.removed[x.node] = x.removed
	return true
}

// listen takes what a removed node says: its listings, and how a suspension ended. All else is let pass.
func (r *removed) listen(message *berthv1.SessionRequest, now time.Time) {
	switch m := message.GetMessage().(type) {
	case *berthv1.SessionRequest_TaskResult:
		r.finish(m.TaskResult)
	case *berthv1.SessionRequest_Inventory:
		r.mu.Lock()
		defer r.mu.Unlock()
		if m.Inventory.GetDomainsUnknown() || now.Sub(r.read) < removedEvery {
			return
		}
		r.read, r.At, r.Domains = now, now, Shows(m.Inventory.GetDomains())
	case *berthv1.SessionRequest_DomainChange:
		r.mu.Lock()
		defer r.mu.Unlock()
		changed := m.DomainChange.GetDomain()
		r.Domains = slices.DeleteFunc(slices.Clone(r.Domains), func(d model.Domain) bool { return d.UUID == changed.GetUuid() })
		if len(r.Domains) < removedDomains {
			r.Domains = append(r.Domains, Shows([]*berthv1.Domain{changed})...)
		}
	}
}

// Shows are the domains with memory that a removed node lists, at most so many as are kept.
func Shows(listed []*berthv1.Domain) []model.Domain {
	var all []model.Domain
	for _, wire := range listed[:min(len(listed), removedDomains)] {
		if is := inventory.StateOf(wire.GetState()); wire.GetUuid() != "" && is.Holds() {
			all = append(all, model.Domain{
				UUID: wire.GetUuid(), Name: wire.GetName(), State: is, Managed: wire.GetManaged(), Epoch: inventory.EpochOf(wire.GetEpoch()),
			})
		}
	}
	return all
}

// Removed are the nodes that were removed and speak, by name.
func (s *Server) Removed() []evidence.Removed {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.removed) == 0 {
		return nil
	}
	all := make([]evidence.Removed, 0, len(s.removed))
	for _, one := range s.removed {
		one.mu.Lock()
		all = append(all, one.Removed)
		one.mu.Unlock()
	}
	slices.SortFunc(all, func(a, b evidence.Removed) int { return strings.Compare(a.Name+" "+a.Node, b.Name+" "+b.Node) })
	return all
}

// SuspendRemoved has the agent of a removed node suspend a copy of a VM. That is all that such an agent is ever told to do.
func (s *Server) SuspendRemoved(ctx context.Context, node string, copied lead.CopyOf) error {
	s.mu.Lock()
	one := s.removed[node]
	s.mu.Unlock()
	if one == nil {
		return s.unknown(node, errNoSession)
	}
	_, err := s.perform(ctx, one.session, node, lead.Task{Suspend: &copied})
	return err
}

// isRemoved tells whether a node is not on record. Only what the leader knows is good for that.
func isRemoved(snapshot *state.Snapshot, node string) bool {
	_, known := snapshot.Node(node)
	return !known
}

// stillRemoved ends the session of a node that is on record again: it opens another one.
func (s *Server) stillRemoved(x *session) error {
	if isRemoved(s.Records.Snapshot(), x.node) {
		return nil
	}
	return replaced()
}
