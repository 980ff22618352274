package agents

import (
	"context"
	"net/http"
	"sync"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/cluster"
	"berth/coordinator/inventory"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Records reads the replicated state: which nodes are enrolled, and where the coordinators' agents' ports are.
type Records interface {
	Snapshot() *state.Snapshot
}

// Inventory takes in what agents report.
type Inventory interface {
	// Reset forgets the facts of an earlier leadership.
	Reset()
	// OpenSession fails when the node has a newer session.
	OpenSession(node string, hello *berthv1.Hello, sequence uint64) (*inventory.Session, error)
}

// Config is what a Server stands on. All of it is needed.
type Config struct {
	ClusterID string
	Member    string // ID of this coordinator
	Records   Records
	Inventory Inventory
	// Leader is the ID of the member that leads as far as this one knows; empty when there is none.
	Leader func() string
	// Answered takes each answer to an order, and Connected each node whose session has opened: the orders to it are to
	// be sent again. Neither may block.
	Answered  func(operation.Answer)
	Connected func(node string)
	Log       hclog.Logger
}

// maxMessage bounds what an agent may send at once: an inventory of thousands of domains is a few MiB.
const maxMessage = 16 << 20

// compressFrom is the size from which compressing a message is worth its time.
const compressFrom = 4096

// Server serves berth.v1.AgentService. It is safe for concurrent use.
type Server struct {
	Config

	mu       sync.Mutex
	term     uint64 // 0: this member does not lead
	sessions map[string]*session
}

// New makes a Server that sends all agents elsewhere until Lead is called.
func New(config Config) *Server {
	return &Server{Config: config, sessions: make(map[string]*session)}
}

// Handler serves the agents' port. The listener has to demand and verify client certificates.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewAgentServiceHandler(
		s, connect.WithReadMaxBytes(maxMessage), connect.WithCompressMinBytes(compressFrom),
	))
	return rpc.WithIdentity(withDeadlines(mux))
}

// Lead opens the server for sessions. It is called when this member leads and has applied everything committed before;
// the facts of an earlier leadership are forgotten.
func (s *Server) Lead(term uint64) {
	s.Follow()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Inventory.Reset()
	s.term = term
}

// Follow closes all sessions: their agents look for the new leader. It does not wait for them to be gone.
func (s *Server) Follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term = 0
	for _, x := range s.sessions {
		x.end(notLeading())
	}
	clear(s.sessions)
}

// Order sends an order to its node's agent without waiting. It is false when there is no session to send on, or the term
// is not the one that this member leads in.
func (s *Server) Order(term uint64, order operation.Order) bool {
	x := s.session(order.Node)
	if x == nil || x.term != term {
		return false
	}
	return x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Command{Command: command(term, order)}})
}

// Cancel asks a node's agent to stop working on an order, if it has a session.
func (s *Server) Cancel(node, operation string, step uint32) {
	if x := s.session(node); x != nil {
		x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Cancel{
			Cancel: &berthv1.CancelCommand{OperationId: operation, Step: step},
		}})
	}
}

// Resync asks a node's agent for a full inventory, if it has a session.
func (s *Server) Resync(node, reason string) {
	if x := s.session(node); x != nil {
		x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Resync{
			Resync: &berthv1.ResyncRequest{Reason: reason},
		}})
	}
}

// Disconnect ends a node's session, for instance when the node is removed.
func (s *Server) Disconnect(node, reason string) {
	if x := s.session(node); x != nil {
		x.end(denied("node/"+node, "enrol the node again with a new token", "node %s: %s", node, reason))
	}
}

func (s *Server) session(node string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[node]
}

// Session serves one agent's stream until it ends. It implements berthv1connect.AgentServiceHandler.
func (s *Server) Session(
	ctx context.Context, stream *connect.BidiStream[berthv1.SessionRequest, berthv1.SessionResponse],
) error {
	caller, known := rpc.Caller(ctx)
	if !known || caller.Role != pki.RoleAgent || caller.ClusterID != s.ClusterID {
		return denied("", "use the certificate that the node got when it was enrolled in this cluster",
			"this port is for the agents of cluster %s", s.ClusterID)
	}
	return s.serve(caller, stream, interrupter(ctx))
}

// admit opens the session of an agent that has said hello. Without an error, admitted is false when this member does not
// lead: the agent has then to be sent elsewhere.
func (s *Server) admit(x *session, hello *berthv1.Hello, sequence uint64) (admitted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == 0 {
		return false, nil
	}
	if x.reports, err = s.Inventory.OpenSession(x.node, hello, sequence); err != nil {
		return false, err
	}
	if older := s.sessions[x.node]; older != nil {
		older.end(replaced())
	}
	x.term = s.term
	x.send(s.welcome(s.term)) // the first one in the queue
	s.sessions[x.node] = x
	return true, nil
}

func (s *Server) forget(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[x.node] == x {
		delete(s.sessions, x.node)
	}
}

func (s *Server) welcome(term uint64) *berthv1.SessionResponse {
	_, all := s.addresses()
	return &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{
		ClusterId:                s.ClusterID,
		Term:                     term,
		TelemetryIntervalSeconds: cluster.TelemetryInterval.Seconds(),
		InventoryIntervalSeconds: cluster.InventoryInterval.Seconds(),
		AgentAddresses:           all,
		Now:                      timestamppb.Now(),
	}}}
}

// redirect sends an agent to the leader. While this member is about to lead, there is none yet.
func (s *Server) redirect() *berthv1.SessionResponse {
	leader, all := s.addresses()
	return &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Redirect{Redirect: &berthv1.Redirect{
		LeaderAddress: leader, AgentAddresses: all,
	}}}
}

// addresses are where agents reach the leader, if there is another one, and all coordinators.
func (s *Server) addresses() (leader string, all []string) {
	leading := s.Leader()
	for _, member := range s.Records.Snapshot().Members() {
		if member.AgentAddress == "" {
			continue
		}
		all = append(all, member.AgentAddress)
		if member.ID == leading && member.ID != s.Member {
			leader = member.AgentAddress
		}
	}
	return leader, all
}
