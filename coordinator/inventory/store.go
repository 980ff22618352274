package inventory

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/model"
	"berth/coordinator/state"
	berthv1 "berth/shared/gen/berth/v1"
)

// Store holds the soft facts of all nodes. It is safe for concurrent use. Messages that it returns are shared: nobody
// changes them.
type Store struct {
	now func() time.Time
	log hclog.Logger
	// Doubt says why a machine that says it is a node may be another one; empty: it is not doubted. Nil: none is. Set before use.
	Doubt func(node string, machine model.Machine) string
	// Concerns tells whether a node has a part in an operation: what others say of it is not taken in. Nil: all have. Set before use.
	Concerns func(node, operation string) bool

	mu       sync.RWMutex
	since    time.Time // when this member began to listen
	nodes    map[string]*node
	copies   copies
	showing  showing
	withDisk showing // by the file name of a disk of a domain
	hosts    hosts
	untold   map[string]bool // nodes that have a session and have told no inventory yet
	progress map[string]progress
	feed     feed
	devices  map[string]model.ToldDevices // by UUID, of domains that changed and nobody has looked at since
	apart    model.PoolsApart
	ran      map[string][]string // by VM: the nodes that tell what it ran with, the last to tell at the end
	changes  changes
	stirred  changes // the same of what nodes list and what their word is worth: not that they are heard still, and what they use
	turning  turning
	settled  atomic.Pointer[state.Snapshot] // one of which all nodes have reported since Reset; nil: none was seen

	views views
}

// node is what is known of one node.
type node struct {
	session   *Session // nil: none is open
	openedAt  time.Time
	metAt     time.Time // when its first session was opened
	listed    bool      // the domains were, since then
	closedAt  time.Time
	closedWhy string
	heardAt   time.Time
	published model.Liveness // what subscribers were told last
	pace      model.Pace     // that the agent was told

	from        string // the IP address that its agent calls from
	incarnation string
	release     string   // of the agent that had the session last
	lacks       []string // capabilities that it did not tell
	hardware    string   // of the machine whose agent has the session
	source      string
	sequence    uint64
	watchdog    time.Duration
	working     map[string]bool // operations that the agent was at work on when its session began, and may be still
	libvirtDown bool
	libvirtSays string
	ailments    []string  // what else of the host is not as it must be
	sickSince   time.Time // since when its agent says any of that; zero: it does not

	host          string // UUID of its libvirt
	inventory     *berthv1.NodeInventory
	inventoryAt   time.Time
	inventoryFrom string
	peers         string       // addresses at which other nodes reach it, by the inventory
	around        surroundings // of the inventory
	telemetry     *berthv1.NodeTelemetry
	telemetryAt   time.Time
	measuredAt    time.Time // when that came

	digest       string                   // that the agent made of the inventory and these domains; empty: they have changed since
	domains      map[string]domain        // by UUID
	tooMany      bool                     // domains were told for this node to be believed
	domainsKnown bool                     // listed since the session opened, and the last listing succeeded
	endings      map[string]model.Ending  // by UUID, of guests that are gone; lent to readers, so it is replaced and not changed
	lastRuns     map[string]model.LastRun // the same of what they ran with
	before       model.BootFacts
	shown        []model.Domain // the same for readers, sorted by UUID
	lent         atomic.Bool    // a reader has shown: it does not change any more
	told         atomic.Pointer[told]
	counted      map[string]string // those among the copies: names by UUID
}

// domain is a domain as last reported, and since when it is in that state here.
type domain struct {
	wire  *berthv1.Domain
	since time.Time
	from  time.Time // when it was first shown here under its epoch: an older sample is of another run
}

// runsOn tells whether what is told of a domain is of the same run as this, which was told before.
func (d domain) runsOn(wire *berthv1.Domain) bool {
	return d.wire != nil && EpochOf(d.wire.GetEpoch()) == EpochOf(wire.GetEpoch())
}

// New makes an empty store.
func New(now func() time.Time, log hclog.Logger) *Store {
	s := &Store{now: now, log: log}
	s.views.store = s
	s.changes.noted = func(id string) {
		if n := s.nodes[id]; n != nil {
			n.told.Store(nil)
		}
	}
	s.stirred.noted = func(string) {}
	s.Reset()
	return s
}

// Reset forgets everything. It is called when a leadership begins, before the first session: the facts of an earlier one
// are not to be trusted, and nodes get SessionGrace from now on to come.
func (s *Store) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = s.now()
	s.nodes = make(map[string]*node)
	s.copies, s.showing, s.withDisk, s.untold = newCopies(), make(showing), make(showing), make(map[string]bool)
	s.ran, s.hosts = make(map[string][]string), newHosts()
	s.progress = make(map[string]progress)
	s.apart = nil
	s.settled.Store(nil)
	s.turning = turning{}
	s.changes.note("")
	s.stirred.note("")
}

// Apart are the pools that are another one on some nodes, as SetApart has told last.
func (s *Store) Apart() model.PoolsApart {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.apart
}

// SetApart tells which pools are another one on some nodes, as trials have shown. Nobody changes them afterwards.
func (s *Store) SetApart(apart model.PoolsApart) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.apart = apart
	s.changes.note("")
}

// node makes the entry of a node if there is none. The caller holds the lock.
func (s *Store) node(id string) *node {
	n := s.nodes[id]
	if n == nil {
		n = &node{domains: make(map[string]domain), counted: make(map[string]string)}
		s.nodes[id] = n
	}
	return n
}

// Facts are those of one node, as of now. A node that was never heard has nothing but a liveness.
func (s *Store) Facts(node string, now time.Time) model.NodeFacts {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.facts(node, now)
}

// Settled tells whether a decision made now would see every node that is there to be seen: each has reported inventory
// and telemetry since this member began to lead, or SessionGrace has passed since. A new leader that decides earlier takes
// nodes for silent that are only on their way.
func (s *Store) Settled(snapshot *state.Snapshot, now time.Time) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if now.Sub(s.since) >= model.SessionGrace {
		return true
	}
	told := func(id string) bool {
		n := s.nodes[id]
		return n != nil && n.inventory != nil && n.telemetry != nil // which stay until Reset
	}
	if last := s.settled.Load(); last != nil {
		if changed, known := snapshot.Since(last); known {
			return !slices.ContainsFunc(changed, func(one state.Change) bool {
				return one.Table == state.Nodes && snapshot.HasNode(one.ID) && !told(one.ID)
			})
		}
	}
	for node := range snapshot.SharedNodes() {
		if !told(node.ID) {
			return false
		}
	}
	s.settled.Store(snapshot)
	return true
}

// Inventory is what the node's agent last reported of it; nil if it never did.
func (s *Store) Inventory(node string) *berthv1.NodeInventory {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := s.nodes[node]; n != nil {
		return n.inventory
	}
	return nil
}

// Telemetry is the node's last sample; nil if there was none. Its age is told by Facts.
func (s *Store) Telemetry(node string) *berthv1.NodeTelemetry {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if n := s.nodes[node]; n != nil {
		return n.telemetry
	}
	return nil
}

// Domains are all domains of the node, by UUID, as last reported.
func (s *Store) Domains(node string) []*berthv1.Domain {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := s.nodes[node]
	if n == nil {
		return nil
	}
	domains := make([]*berthv1.Domain, 0, len(n.domains))
	for _, uuid := range slices.Sorted(maps.Keys(n.domains)) {
		domains = append(domains, n.domains[uuid].wire)
	}
	return domains
}

// progress is the last report on a running migration.
type progress struct {
	step  uint32
	stats *berthv1.MigrationStats
	at    time.Time
}

// maxProgress bounds how many operations progress is kept of. Far more than ever migrate at once.
const maxProgress = 4096

// Progress is the last report on a running operation; nil when there is none.
func (s *Store) Progress(operation string) *berthv1.MigrationStats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.progress[operation].stats
}

func concerns(s *Store, node, operation string) bool {
	return s.Concerns == nil || s.Concerns(node, operation)
}

func reportProgress(s *Store, report *berthv1.CommandProgress, now time.Time) bool {
	last, known := s.progress[report.GetOperationId()]
	if known && last.step > report.GetStep() {
		return false
	}
	if !known && len(s.progress) >= maxProgress {
		oldest := ""
		for id, one := range s.progress {
			if oldest == "" || one.at.Before(s.progress[oldest].at) {
				oldest = id
			}
		}
		delete(s.progress, oldest)
	}
	s.progress[report.GetOperationId()] = progress{step: report.GetStep(), stats: report.GetStats(), at: now}
	return true
}
