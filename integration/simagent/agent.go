package simagent

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/session"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// Fleet is a set of simulated nodes that can migrate domains to each other. The zero value is empty and ready.
type Fleet struct {
	holding atomic.Bool
	letting atomic.Bool

	mu    sync.Mutex
	nodes map[string]*node // by migration URI
	jobs  []*jobs
}

// Hold lets migrations that begin from now on go on until they are cancelled, or until it is called again with false.
func (f *Fleet) Hold(on bool) {
	f.holding.Store(on)
	if on {
		return
	}
	f.mu.Lock()
	all := slices.Clone(f.jobs)
	f.mu.Unlock()
	for _, one := range all {
		one.release()
	}
}

// LetGo has domains that are stopped from now on gone already when the order comes: the node answers, as a real one does, that it obeys
// later epochs only. It is called again with false.
func (f *Fleet) LetGo(on bool) { f.letting.Store(on) }

func (f *Fleet) node(uri string) *node {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.nodes[uri]
}

func (f *Fleet) add(n *node, orders *jobs) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.jobs = append(f.jobs, orders)
	if f.nodes == nil {
		f.nodes = map[string]*node{}
	}
	f.nodes[migrationURI(n.identity.Name)] = n
}

// Agent is one simulated node.
type Agent struct {
	Identity
	node    *node
	orders  *jobs
	client  *http.Client
	session *session.Session
}

// Add makes a node of the fleet from an identity. It speaks to nobody until Run.
func (f *Fleet) Add(identity Identity, size Size, logger hclog.Logger) (*Agent, error) {
	secure, err := pki.ClientConfig(identity.Files, pki.RolePeer)
	if err != nil {
		return nil, fmt.Errorf("simulated node %s: %w", identity.Name, err)
	}
	n := newNode(identity, size)
	orders := newJobs(n, f)
	a := &Agent{Identity: identity, node: n, orders: orders, client: rpc.NewHTTPClient(secure)}
	a.session = session.New(session.Config{
		NodeID: identity.NodeID, ClusterID: identity.ClusterID, Incarnation: rand.Text(), Version: version,
		Addresses: identity.Addresses, Client: a.client, Hypervisor: n, Sampler: n, Collector: n, Jobs: orders, Tasks: work{n},
		Logger: logger.With("node", identity.Name),
	})
	f.add(n, orders)
	return a, nil
}

// CallBy makes the agent dial by a function from now on. It is called before Run.
func (a *Agent) CallBy(dial func(ctx context.Context, network, address string) (net.Conn, error)) {
	a.client.Transport.(*http.Transport).DialContext = dial
}

// Welcomed is when a leader has welcomed the agent last, and how often one has; the zero time: none has.
func (a *Agent) Welcomed() (last time.Time, times int) { return a.orders.welcomed() }

// Mute has the agent report as it should and answer no order.
func (a *Agent) Mute() { a.orders.mute.Store(true) }

// Samples is how many samples the node has made.
func (a *Agent) Samples() int { return a.node.samples() }

// Run keeps a session to the leader open until the context ends. It returns the context's error.
func (a *Agent) Run(ctx context.Context) error {
	defer a.client.CloseIdleConnections()
	return a.session.Run(ctx)
}

// Domains are those that the node has now, by UUID.
func (a *Agent) Domains() []hypervisor.Domain { return a.node.list() }
