package answer

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/api/gate"
	"berth/coordinator/api/refusal"
	"berth/coordinator/consensus"
	"berth/coordinator/history"
	"berth/coordinator/inventory"
	"berth/coordinator/keyring"
	"berth/coordinator/model"
	"berth/coordinator/state"
	"berth/coordinator/view"
	berthv1 "berth/shared/gen/berth/v1"
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
	RestoreSnapshot(ctx context.Context, from io.Reader, unproved bool) error
}

// Inventory knows the soft facts. Package inventory implements it.
type Inventory interface {
	View(snapshot *state.Snapshot, now time.Time) *view.View
	// Facts are those of one node.
	Facts(node string, now time.Time) model.NodeFacts
	// Inventory, Telemetry and Domains are what a node's agent last reported; nil if it never did.
	Inventory(node string) *berthv1.NodeInventory
	Telemetry(node string) *berthv1.NodeTelemetry
	Domains(node string) []*berthv1.Domain
	// SameHosts are the host UUIDs that more than one node has told, with the IDs of those nodes.
	SameHosts() map[string][]string
	// MayShow are the IDs of the nodes that list a domain of a UUID, ascending; others may be among them.
	MayShow(uuid string) []string
	// Progress is the last report on a running operation; nil if there is none.
	Progress(operation string) *berthv1.MigrationStats
	// Subscribe tells of what is seen from now on.
	Subscribe() *inventory.Subscription
}

// Config is what a source stands on.
type Config struct {
	Self     string // ID of this member
	SelfName string
	Vault    *Vault // has the cluster's authorities
	// Hypervisors are the authorities of the nodes' libvirt and QEMU. Every coordinator has them, as it has the one above.
	Hypervisors *keyring.Ring
	Store       *state.Store
	Consensus   Consensus
	Inventory   Inventory
	History     *history.Keeper   // nil: it keeps none
	Transport   http.RoundTripper // to the APIs of other members, by mutual TLS as a peer
	Now         func() time.Time
	Log         hclog.Logger
}

// Authority is the one that signs now.
func (c *Config) Authority() *pki.Authority { return c.Vault.Issuing() }

// Source is where the handlers of all nouns read, and where they propose their changes.
type Source struct {
	Config

	Forward  *gate.Forwarder
	Stopping chan struct{} // closed when streams have to end
	ending   sync.Once
}

// NewSource makes a source. Its streams go on until EndStreams.
func NewSource(config Config) *Source {
	s := &Source{Config: config, Stopping: make(chan struct{})}
	s.Forward = gate.NewForwarder(s.leader, config.Consensus.Established, config.Transport, config.Log)
	return s
}

// EndStreams ends the streams that people watch. It may be called more than once.
func (s *Source) EndStreams() { s.ending.Do(func() { close(s.Stopping) }) }

// leader is who leads, and where. A leader without a record does not answer yet: nobody could be told where it is. That is
// the case for some milliseconds in the life of a cluster, after its first member has been elected for the first time.
func (s *Source) leader() (gate.Leader, bool) {
	snapshot := s.Store.Snapshot()
	id, known := s.Consensus.Leader()
	if !known {
		return gate.Leader{Name: s.SelfName, Removed: !gate.IsMember(snapshot, s.Self)}, false
	}
	member, known := snapshot.Member(id)
	if id == s.Self {
		return gate.Leader{Self: true}, known && s.Consensus.IsLeader()
	}
	return gate.Leader{Name: member.Name, Address: member.APIAddress}, known && member.APIAddress != ""
}

// Leads ends a stream on a member that leads no more: what it has may be out of date.
func (s *Source) Leads() error {
	if s.Consensus.IsLeader() {
		return nil
	}
	return refusal.New(rpc.Unavailable, "", "watch again: the new leader answers", "this coordinator does not lead any more")
}
