package agents

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/protobuf/types/known/timestamppb"

	"berth/coordinator/authorities"
	"berth/coordinator/inventory"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/capability"
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
	// Hypervisors sign what libvirt and QEMU of the nodes need for live migration.
	Hypervisors *keyring.Ring
	// Authorities are the IDs of those that the cluster trusts, the one that signs first. Agents are told when they change. nil: never.
	Authorities func() []string
	// RenewNode gives a node another certificate for its key.
	RenewNode func(context.Context, pki.Bearer, *berthv1.RenewRequest) (*berthv1.RenewResponse, error)
	// FollowHypervisor writes down what a node says of the authorities that its libvirt and QEMU use, by what these are called.
	FollowHypervisor func(context.Context, pki.Bearer, map[string]authorities.Use) error
	// Leader is the ID of the member that leads as far as this one knows; empty when there is none.
	Leader func() string
	// Answered takes each answer to an order, and Connected each node whose session has opened: the orders to it are to
	// be sent again. Neither may block.
	Answered  func(operation.Answer)
	Connected func(node string)
	Log       hclog.Logger
}

// compressFrom is the size from which compressing a message is worth its time.
const compressFrom = 4096

const (
	// leaderPatience is how long an agent is kept waiting for a leader. An election takes about a second, and an agent
	// gives a coordinator up that says nothing for five.
	leaderPatience = 3 * time.Second
	// leaderPoll is how long it takes on average until a waiting agent is told. Each has its own times, so that the
	// leader does not get all of them in one moment.
	leaderPoll = 200 * time.Millisecond
)

// Server serves berth.v1.AgentService. It is safe for concurrent use.
type Server struct {
	Config
	certifier
	stopping chan struct{}
	stop     sync.Once
	streams  streams
	names    names

	mu       sync.Mutex
	term     uint64 // 0: this member does not lead
	asking   asking
	sessions map[string]*session
	tunnels  map[string]*tunnel  // by ticket
	removed  map[string]*removed // by node: those that are not on record
}

// New makes a Server that sends all agents elsewhere until Lead is called.
func New(config Config) *Server {
	s := &Server{
		Config: config, stopping: make(chan struct{}), sessions: make(map[string]*session), tunnels: make(map[string]*tunnel),
		removed: make(map[string]*removed),
	}
	s.certifier = certifier{s}
	return s
}

// Stop closes all sessions, and keeps no agent waiting any more. It does not wait for them to be gone. It may be called
// more than once.
func (s *Server) Stop() {
	s.stop.Do(func() { close(s.stopping) })
	s.Follow()
}

// Handler serves the agents' port. The listener has to demand and verify client certificates.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewAgentServiceHandler(s, rpc.HandlerOptions(compressFrom), rpc.Bounded(mostText, clean)))
	return rpc.WithIdentity(rpc.WithInterrupts(s.streams.limit(rpc.SmallFirst(mostFirst, mux))))
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
	for _, x := range s.removed {
		x.end(notLeading())
	}
	clear(s.removed)
}

// Order sends an order to its node's agent without waiting. It is false when there is no session to send on, or the term
// is not the one that this member leads in.
func (s *Server) Order(term uint64, order operation.Order) bool {
	x := s.session(order.Node)
	if x == nil || x.term != term {
		return false
	}
	// What a node was told before it was proven to be off is void, and until it has booted anew it is told nothing.
	// Which machine an order would reach is not known of one that two machines say they are.
	if node, known := s.Records.Snapshot().Node(order.Node); known && (node.Fenced() || s.doubted(x, &node)) {
		return false
	}
	command := Command(term, For(x.knows, order))
	if lacks := capability.Lacks(x.knows, command); len(lacks) > 0 {
		s.Log.Warn("an order is not given", "operation", order.Operation, "action", order.Action,
			"why", capability.Refused(x.name, x.release, lacks), "update", capability.Update)
		return false
	}
	return x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Command{Command: command}})
}

// Lacks are the capabilities that the agent of an order's node would need for it and has not told. An agent without a session may
// have all.
func (s *Server) Lacks(order operation.Order) []string {
	x := s.session(order.Node)
	if x == nil {
		return nil
	}
	return capability.Lacks(x.knows, Command(0, order))
}

// doubted tells that the machine which has the session may not be the node.
func (s *Server) doubted(x *session, node *model.Node) bool { return node.Doubt(x.machine) != "" }

// Cancel asks a node's agent to stop working on an order, if it has a session.
func (s *Server) Cancel(node, operation string, step uint32) {
	if x := s.session(node); x != nil {
		x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Cancel{
			Cancel: &berthv1.CancelCommand{OperationId: operation, Step: step},
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
	caller, err := s.agentOf(ctx)
	if err != nil {
		return err
	}
	interrupt, served := rpc.Interrupter(ctx, farewell)
	defer served()
	return s.serve(ctx, caller, addressOf(stream.Peer()), stream, interrupt)
}

// addressOf is the address that a caller has, without its port.
func addressOf(peer connect.Peer) string {
	host, _, _ := net.SplitHostPort(peer.Addr)
	return host
}

// agentOf is whose agent calls. Nobody but agents of this cluster may.
func (s *Server) agentOf(ctx context.Context) (pki.Identity, error) {
	caller, known := rpc.Caller(ctx)
	if !known || caller.Role != pki.RoleAgent || caller.ClusterID != s.ClusterID {
		return pki.Identity{}, denied("", "use the certificate that the node got when it was enrolled in this cluster",
			"this port is for the agents of cluster %s", s.ClusterID)
	}
	return caller, nil
}

// settle opens the session of an agent that has said hello, or gives the redirect that the agent has to follow. As long
// as no leader is known it waits: an agent that had to ask again and again would have to ask seldom, and would be missing
// for as long when there is a leader.
func (s *Server) settle(
	ctx context.Context, x *session, hello *berthv1.Hello, sequence uint64,
) (redirect *berthv1.SessionResponse, err error) {
	patience := time.NewTimer(leaderPatience)
	defer patience.Stop()
	for {
		if admitted, err := s.admit(x, hello, sequence); admitted || err != nil {
			return nil, err
		}
		redirect := s.redirect()
		if redirect.GetRedirect().GetLeaderAddress() != "" {
			s.asking.sent(x.node, time.Now())
			return redirect, nil
		}
		select {
		case <-time.After(leaderPoll/2 + rand.N(leaderPoll)):
		case <-patience.C:
			return redirect, nil
		case <-s.stopping:
			return redirect, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// admit opens the session of an agent that has said hello. Without an error, admitted is false when this member does not
// lead. Only the leader can tell that a node is not enrolled: the others' state may lack it yet.
func (s *Server) admit(x *session, hello *berthv1.Hello, sequence uint64) (admitted bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == 0 {
		return false, nil
	}
	if isRemoved(s.Records.Snapshot(), x.node) && s.admitRemoved(x) {
		return true, nil
	}
	if err := s.enrolled(x.node, "node/"+x.name); err != nil {
		return false, err
	}
	if x.reports, err = s.Inventory.OpenSession(x.node, hello, sequence); err != nil {
		return false, err
	}
	if older := s.sessions[x.node]; older != nil {
		older.end(replaced())
	}
	x.term, x.pace = s.term, model.PaceOf(s.Records.Snapshot().CountNodes())
	x.reports.Keep(x.pace)
	x.reports.CalledFrom(x.from)
	_, x.told = s.addresses()
	x.trusted = s.authorities()
	x.send(s.welcome(s.term, x.pace, x.told)) // the first one in the queue
	s.sessions[x.node] = x
	return true, nil
}

func (s *Server) forget(x *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[x.node] == x {
		delete(s.sessions, x.node)
	}
	if x.removed != nil && s.removed[x.node] == x.removed {
		delete(s.removed, x.node)
	}
}

// tellMembers lets an agent know that the coordinators are others than it was told, because it would look for a new leader
// among those of before, or that others are trusted.
func (s *Server) tellMembers(x *session) {
	_, all := s.addresses()
	trusted := s.authorities()
	if slices.Equal(all, x.told) && slices.Equal(trusted, x.trusted) {
		return
	}
	x.told, x.trusted = all, trusted
	x.send(&berthv1.SessionResponse{Message: &berthv1.SessionResponse_Members{
		Members: &berthv1.Members{AgentAddresses: all, Authorities: trusted},
	}})
}

func (c *Config) authorities() []string {
	if c.Authorities == nil {
		return nil
	}
	return c.Authorities()
}

func (s *Server) welcome(term uint64, pace model.Pace, all []string) *berthv1.SessionResponse {
	return &berthv1.SessionResponse{Message: &berthv1.SessionResponse_Welcome{Welcome: &berthv1.Welcome{
		ClusterId:                s.ClusterID,
		Term:                     term,
		TelemetryIntervalSeconds: pace.Telemetry().Seconds(),
		InventoryIntervalSeconds: pace.Inventory().Seconds(),
		AgentAddresses:           all,
		Now:                      timestamppb.Now(),
		Digests:                  true,
		Authorities:              s.authorities(),
	}}}
}

// redirect sends an agent to the leader. While this member is about to lead, or knows no leader, it has no address.
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
