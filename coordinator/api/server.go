package api

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"
	"github.com/hashicorp/go-hclog"

	"berth/coordinator/cluster"
	"berth/coordinator/consensus"
	"berth/coordinator/control"
	"berth/coordinator/estate"
	"berth/coordinator/inventory"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Consensus replicates the state. Package consensus implements it, and says what its errors mean.
type Consensus interface {
	Propose(ctx context.Context, command state.Command) (state.Result, error)
	VerifyRead(ctx context.Context) error
	Established(ctx context.Context) error

	IsLeader() bool
	Leader() (member string, known bool)
	Stats() consensus.Stats
	Configuration() []consensus.Server
	Heard(member string, report consensus.Report)
	AddNonvoter(ctx context.Context, member, address string) error
	Remove(ctx context.Context, member string) error
	Transfer(ctx context.Context) error

	SaveSnapshot(ctx context.Context, to io.Writer) error
	RestoreSnapshot(ctx context.Context, from io.Reader) error
}

// Inventory knows the soft facts. Package inventory implements it.
type Inventory interface {
	View(snapshot *state.Snapshot, now time.Time) *cluster.View
	// Facts are those of one node.
	Facts(node string, now time.Time) cluster.NodeFacts
	// Inventory, Telemetry and Domains are what a node's agent last reported; nil if it never did.
	Inventory(node string) *berthv1.NodeInventory
	Telemetry(node string) *berthv1.NodeTelemetry
	Domains(node string) []*berthv1.Domain
	// Progress is the last report on a running operation; nil if there is none.
	Progress(operation string) *berthv1.MigrationStats
	// Subscribe tells of what is seen from now on.
	Subscribe() *inventory.Subscription
}

// Control does to VMs what needs the leader. Package control implements it; its refusals are *control.Error.
type Control interface {
	AddVM(ctx context.Context, request control.AddVM) (control.Added, error)
	StartVM(ctx context.Context, request control.StartVM) (control.Started, error)
	StopVM(ctx context.Context, request control.StopVM) (operation.Operation, error)
	MigrateVM(ctx context.Context, request control.MigrateVM) (control.Migration, error)
	CancelOperation(ctx context.Context, id, caller string) (operation.Operation, error)
	ResolveOperation(ctx context.Context, request control.ResolveOperation) (operation.Operation, error)
	AdoptVMs(ctx context.Context, request control.AdoptVMs) ([]control.AdoptedVM, error)
	ReleaseVM(ctx context.Context, request control.ReleaseVM) (operation.Operation, error)

	StartVMs(ctx context.Context, request control.StartVMs) ([]control.StartedVM, error)
	DrainNode(ctx context.Context, request control.DrainNode) (control.Drained, error)
	UndrainNode(ctx context.Context, request control.UndrainNode) (cluster.Plan, error)
	ProposePlan(ctx context.Context, request control.ProposePlan) (cluster.Plan, error)
	ApplyPlan(ctx context.Context, request control.ApplyPlan) (cluster.Plan, error)
	DiscardPlan(ctx context.Context, request control.DiscardPlan) (cluster.Plan, error)
	CancelPlan(ctx context.Context, request control.CancelPlan) (cluster.Plan, error)
	FenceNode(ctx context.Context, request control.FenceNode) (cluster.Node, error)
	// NodePower asks a node's fence device whether the node is on, and FenceHeld says why a silent node that VMs wait for is not
	// proven to be off. Contradicted says why the proof that a node is off does not hold; empty: it does.
	NodePower(ctx context.Context, node string) (bool, error)
	FenceHeld(node string) (control.FenceVerdict, bool)
	Contradicted(node string) string
	// LastPass is what the last look of the leader's loop at a cluster, by its name, came to.
	LastPass(cluster string) (control.LastPass, bool)

	// DeleteVM gives no operation when the VM is deleted already.
	DeleteVM(ctx context.Context, request control.DeleteVM) (operation.Operation, error)
	DeleteDisk(ctx context.Context, request control.DeleteDisk) error
	GrowDisk(ctx context.Context, request control.GrowDisk) (cluster.Resource, error)
	ImportImage(ctx context.Context, request control.ImportImage) (cluster.Resource, error)
	DeleteImage(ctx context.Context, request control.DeleteImage) error
	// Spread is that of a customer, by its ID.
	Spread(customer string) (control.Spread, error)
	// Console joins the stream and the console of a VM, by its ID, until either ends.
	Console(ctx context.Context, vm string, force bool, stream io.ReadWriteCloser) error
}

// Config is what the API stands on.
type Config struct {
	Self      string // ID of this member
	SelfName  string
	Authority *pki.Authority
	Store     *state.Store
	Consensus Consensus
	Inventory Inventory
	Control   Control
	Transport http.RoundTripper // to the APIs of other members, by mutual TLS as a peer
	Imports   string            // directory for files of images on their way; it is made when it is needed
	// Disconnect ends the session of a node that was removed.
	Disconnect func(node, reason string)
	Limits     Limits
	Now        func() time.Time
	Log        hclog.Logger
}

// Server answers the calls. It is safe for concurrent use.
type Server struct {
	Config

	forward *forwarder
	admit   *admission
	tries   tries
	imports *spool

	ending   sync.Once
	stopping chan struct{} // closed when streams have to end
}

var (
	_ berthv1connect.BerthServiceHandler     = (*Server)(nil)
	_ berthv1connect.EnrolmentServiceHandler = (*Server)(nil)
	_ berthv1connect.MemberServiceHandler    = (*Server)(nil)
)

// New makes a Server.
func New(config Config) *Server {
	s := &Server{
		Config: config, stopping: make(chan struct{}), imports: newSpool(config.Imports), admit: newAdmission(config.Limits, config.Now),
	}
	s.forward = newForwarder(s.leader, config.Consensus.Established, config.Transport, config.Log)
	return s
}

// Stop ends the streams that people watch, so that the listener can be closed. It may be called more than once.
func (s *Server) Stop() { s.ending.Do(func() { close(s.stopping) }) }

// Crowded tells whether calls that change something wait for their turn on this member.
func (s *Server) Crowded() bool { return s.admit.crowded() }

// maxMessage bounds one message of a caller, in bytes. Backups come in many.
const maxMessage = 1 << 20

// maxEstate bounds the message that carries a whole estate.
const maxEstate = estate.MaxDocument + maxMessage

// messageLimit bounds a message to a procedure, in bytes.
func messageLimit(procedure string) int {
	if procedure == berthv1connect.BerthServiceApplyEstateProcedure {
		return maxEstate
	}
	return maxMessage
}

// compressFrom is the size, in bytes, from which compressing an answer is worth its time. A decision on a few nodes is
// below it: its caller waits for it.
const compressFrom = 16 << 10

// Handler serves the API's port. The listener has to verify client certificates where they are given.
func (s *Server) Handler() http.Handler {
	options := []connect.HandlerOption{
		connect.WithConditionalHandlerOptions(func(spec connect.Spec) []connect.HandlerOption {
			return []connect.HandlerOption{connect.WithReadMaxBytes(messageLimit(spec.Procedure))}
		}),
		connect.WithCompressMinBytes(compressFrom),
		connect.WithInterceptors(answering{s.Log}),
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewBerthServiceHandler(s, options...))
	mux.Handle(berthv1connect.NewEnrolmentServiceHandler(s, options...))
	mux.Handle(berthv1connect.NewMemberServiceHandler(s, options...))
	return Authorise(s.Store, s.forward.wrap(s.admit.wrap(rpc.WithInterrupts(mux))))
}

// leader is who leads, and where. A leader without a record does not answer yet: nobody could be told where it is. That is
// the case for some milliseconds in the life of a cluster, after its first member has been elected for the first time.
func (s *Server) leader() (leader, bool) {
	snapshot := s.Store.Snapshot()
	id, known := s.Consensus.Leader()
	if !known {
		return leader{name: s.SelfName, removed: !isMember(snapshot, s.Self)}, false
	}
	member, known := snapshot.Member(id)
	if id == s.Self {
		return leader{self: true}, known && s.Consensus.IsLeader()
	}
	return leader{name: member.Name, address: member.APIAddress}, known && member.APIAddress != ""
}
