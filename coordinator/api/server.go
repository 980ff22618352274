package api

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"berth/coordinator/api/answer"
	"berth/coordinator/api/capacities"
	"berth/coordinator/api/estates"
	"berth/coordinator/api/explain"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/guests"
	"berth/coordinator/api/lastknown"
	"berth/coordinator/api/members"
	"berth/coordinator/api/profiles"
	"berth/coordinator/api/refusal"
	"berth/coordinator/api/sessions"
	"berth/coordinator/api/webhooks"
	"berth/coordinator/control/adoption"
	"berth/coordinator/control/fencing"
	"berth/coordinator/control/lifecycle"
	"berth/coordinator/control/plans"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/shared/gen/berth/v1/berthv1connect"
	"berth/shared/rpc"
)

// Control does to VMs what needs the leader. Package control implements it; its refusals are *lead.Error.
type Control interface {
	estates.Control
	explain.Control

	AddVM(ctx context.Context, request lifecycle.AddVM) (lifecycle.Added, error)
	StartVM(ctx context.Context, request lifecycle.StartVM) (lifecycle.Started, error)
	ActOnVM(ctx context.Context, request lifecycle.ActOnVM) (operation.Operation, error)
	MigrateVM(ctx context.Context, request lifecycle.MigrateVM) (lifecycle.Migration, error)
	CancelOperation(ctx context.Context, id, caller string) (operation.Operation, error)
	ResolveOperation(ctx context.Context, request lifecycle.ResolveOperation) (operation.Operation, error)
	Document(ctx context.Context, vm model.VM) (text, node string, err error)
	DocumentUnused(before, after *model.VM) error
	AdoptVMs(ctx context.Context, request adoption.AdoptVMs) ([]adoption.AdoptedVM, error)

	StartVMs(ctx context.Context, request lifecycle.StartVMs) ([]lifecycle.StartedVM, error)
	DrainNode(ctx context.Context, request plans.DrainNode) (plans.Drained, error)
	UndrainNode(ctx context.Context, request plans.UndrainNode) (model.Plan, error)
	ProposePlan(ctx context.Context, request plans.ProposePlan) (model.Plan, error)
	ApplyPlan(ctx context.Context, request plans.ApplyPlan) (model.Plan, error)
	DiscardPlan(ctx context.Context, request plans.DiscardPlan) (model.Plan, error)
	CancelPlan(ctx context.Context, request plans.CancelPlan) (model.Plan, error)
	FenceNode(ctx context.Context, request fencing.FenceNode) (model.Node, error)
	// NodePower asks each of a node's fence devices whether the node is on, and FenceHeld says why a silent node that VMs wait for is not
	// proven to be off. Contradicted says why the proof that a node is off does not hold; empty: it does.
	NodePower(ctx context.Context, node string) ([]bool, error)
	FenceHeld(node string) (evidence.FenceVerdict, bool)
	Contradicted(node string) string
	guests.Readiness
	guests.Shrinking
	profiles.Asking
	// PoolLocks is what is known of the locks of files in a shared pool.
	PoolLocks(snapshot *state.Snapshot, pool *model.Resource) evidence.Locks
	// Survey is what every node's word is worth now.
	Survey(snapshot *state.Snapshot) *evidence.Survey

	// DeleteVM gives no operation when the VM is deleted already.
	DeleteVM(ctx context.Context, request lifecycle.DeleteVM) (operation.Operation, error)
	// Console joins the stream and the console of a VM, by its ID, until either ends.
	Console(ctx context.Context, vm string, force bool, stream io.ReadWriteCloser) error
}

// Config is what the API stands on.
type Config struct {
	answer.Config

	Control Control
	Imports string // directory for files of images on their way; it is made when it is needed
	// Disconnect ends the session of a node that was removed.
	Disconnect func(node, reason string)
	Removed    func() []evidence.Removed // the nodes that were removed and speak all the same
	Limits     gate.Limits
	Keeper     *gate.Keeper // asks who counts
	Console    func() sessions.Place
	Webhooks   webhooks.Config
	LastKnown  *lastknown.Keeper // what the leader told last; nil: nothing ever is
	OwnFences  bool              // fence agents run as this member's own account
	Targets    lastknown.Targets // nil: nobody has ever told
}

// The handlers of each noun are a type of their own. Together they are the services.
type (
	nodeCalls struct {
		knowing
		Control    Control
		Disconnect func(node, reason string)
	}

	vmCalls struct {
		knowing
		Control Control
	}

	// planCalls are about the operations that plans are made of, too.
	planCalls struct {
		*answer.Source
		Control Control
	}

	// queryCalls tell why things are as they are, and what happened.
	queryCalls struct {
		knowing
		Control   Control
		Removed   func() []evidence.Removed
		OwnFences bool
	}
)

// sessionCalls has a name of its own because that of the package's type is taken.
type sessionCalls struct{ sessions.Calls }

// Server answers the calls. It is safe for concurrent use.
type Server struct {
	nodeCalls
	vmCalls
	estates.VolumeCalls
	estates.ResourceCalls
	estates.GroupCalls
	planCalls
	queryCalls
	members.Calls
	guests.DeviceCalls
	guests.ActCalls
	guests.DocumentCalls
	profiles.ProfileCalls
	capacities.CapacityCalls
	explain.DecisionCalls
	sessionCalls
	webhooks.WebhookCalls

	source *answer.Source
	admit  *gate.Admission
	keeper *gate.Keeper
}

var (
	_ berthv1connect.BerthServiceHandler     = (*Server)(nil)
	_ berthv1connect.EnrolmentServiceHandler = (*Server)(nil)
	_ berthv1connect.MemberServiceHandler    = (*Server)(nil)
)

// New makes a Server.
func New(config Config) *Server {
	source, control := answer.NewSource(config.Config), config.Control
	knowing := knowing{Source: source, keeper: cmp.Or(config.LastKnown, &lastknown.Keeper{}), targets: config.Targets}
	return &Server{
		nodeCalls:     nodeCalls{knowing: knowing, Control: control, Disconnect: config.Disconnect},
		vmCalls:       vmCalls{knowing: knowing, Control: control},
		planCalls:     planCalls{Source: source, Control: control},
		queryCalls:    queryCalls{knowing: knowing, Control: control, Removed: config.Removed, OwnFences: config.OwnFences},
		Calls:         members.Calls{Source: source},
		DeviceCalls:   guests.DeviceCalls{Source: source},
		DocumentCalls: guests.DocumentCalls{Source: source, Control: control},
		ProfileCalls:  profiles.ProfileCalls{Source: source, Control: control},
		CapacityCalls: capacities.CapacityCalls{Source: source},
		ActCalls:      guests.ActCalls{Source: source, Control: control},
		DecisionCalls: explain.DecisionCalls{Source: source, Control: control},
		WebhookCalls:  webhooks.Of(source, config.Webhooks),
		VolumeCalls:   estates.NewVolumeCalls(source, control, config.Imports),
		ResourceCalls: estates.ResourceCalls{Source: source, Control: control},
		GroupCalls:    estates.GroupCalls{Source: source, Control: control},
		sessionCalls:  sessionCalls{sessions.Calls{Source: source, Console: config.Console}},
		source:        source,
		admit:         gate.NewAdmission(config.Limits, config.Now),
		keeper:        config.Keeper,
	}
}

// Stop ends the streams that people watch, so that the listener can be closed. It may be called more than once.
func (s *Server) Stop() { s.source.EndStreams() }

// WritesWait tells whether calls that change something wait for their turn on this member.
func (s *Server) WritesWait() bool { return s.admit.WritesWait() }

// compressFrom is the size, in bytes, from which compressing an answer is worth its time. A decision on a few nodes is
// below it: its caller waits for it.
const compressFrom = 16 << 10

// Handler serves the API's port. The listener has to verify client certificates where they are given.
func (s *Server) Handler() http.Handler {
	options := []connect.HandlerOption{
		rpc.HandlerOptions(compressFrom),
		connect.WithInterceptors(refusal.Interceptor{Log: s.source.Log, Refused: func(ctx context.Context, procedure string, no *connect.Error) {
			s.keeper.NoteRefused(gate.CallerOf(ctx), procedure, no)
		}}),
	}
	mux := http.NewServeMux()
	mux.Handle(berthv1connect.NewBerthServiceHandler(s, options...))
	mux.Handle(berthv1connect.NewEnrolmentServiceHandler(s, options...))
	mux.Handle(berthv1connect.NewMemberServiceHandler(s, options...))
	return s.tellAuthorities(s.keeper.Authorise(s.source.Forward.Wrap(s.admit.Wrap(rpc.WithInterrupts(mux)))))
}

// tellAuthorities has each answer name the authorities that are trusted, so that a command line knows when to ask for them.
func (s *Server) tellAuthorities(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(rpc.AuthoritiesHeader, strings.Join(s.source.Vault.IDs(), ","))
		next.ServeHTTP(w, r)
	})
}
