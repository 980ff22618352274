package daemon

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/coordinator/agents"
	"berth/coordinator/api"
	"berth/coordinator/api/answer"
	"berth/coordinator/api/gate"
	"berth/coordinator/api/lastknown"
	"berth/coordinator/api/webhooks"
	"berth/coordinator/authorities"
	"berth/coordinator/consensus"
	"berth/coordinator/control"
	"berth/coordinator/control/lead"
	"berth/coordinator/control/plans"
	"berth/coordinator/fence"
	"berth/coordinator/history"
	"berth/coordinator/inventory"
	"berth/coordinator/keyring"
	"berth/coordinator/metrics"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
	"berth/coordinator/targets"
	"berth/coordinator/webhook"
	"berth/shared/buildinfo"
	berthv1 "berth/shared/gen/berth/v1"
	"berth/shared/pki"
	"berth/shared/rpc"
)

// daemon is a running coordinator.
type daemon struct {
	config    Config
	home      place
	who       identity
	log       hclog.Logger
	store     *state.Store
	consensus *consensus.Consensus
	inventory *inventory.Store
	agents    *agents.Server
	control   *control.Control
	api       *api.Server
	keeper    *gate.Keeper
	lastKnown lastknown.Keeper
	targets   targets.Book
	vault     *answer.Vault
	// hypervisors are the authorities of the nodes' libvirt and QEMU.
	hypervisors *keyring.Ring
	backups     *backups
	totals      *metrics.Totals
	history     *history.Keeper
	webhooks    *webhook.Sender
	peers       *http.Client // to other members' APIs, if their keys are on record
	asking      *http.Client // to other members' APIs, for who the members are
	fatal       chan error

	consoleAddress string // where browsers reach this member; empty: nowhere
}

// Run runs this machine's coordinator until the context ends, and then stops it in good order: the leadership is handed
// over, streams are ended, the store is closed. An error means that it could not start, or could not go on.
func Run(ctx context.Context, c Config, log hclog.Logger) error {
	d := &daemon{config: c, home: place{c.DataDir}, log: log, fatal: make(chan error, 1), totals: metrics.NewTotals(time.Now())}
	if err := d.identify(); err != nil {
		return err
	}
	listeners, err := d.listen(ctx)
	if err != nil {
		return err
	}
	defer listeners.close()
	if err := d.assemble(); err != nil {
		return err
	}
	log.Info("coordinator runs", "version", buildinfo.Version(), "name", d.who.Name, "cluster", d.who.ClusterID,
		"api", listeners.api.Addr(), "agents", listeners.agent.Addr())
	return d.serve(ctx, listeners)
}

// identify reads who this member is and checks that its certificate says the same.
func (d *daemon) identify() (err error) {
	if d.who, err = d.home.identity(); err != nil {
		return err
	}
	if d.config.named && d.config.Name != d.who.Name {
		return fmt.Errorf("%w: key name is %q, and this member was made as %q: a member keeps its name, take the key back",
			ErrConfig, d.config.Name, d.who.Name)
	}
	now := time.Now()
	if renewed, err := d.home.renew(d.config, now); err != nil {
		d.log.Warn("this coordinator's certificate could not be renewed", "error", err)
	} else if renewed {
		d.log.Info("this coordinator's certificate is renewed")
	}
	return d.home.checkCertificate(d.who, now)
}

// listeners are the ports that this package listens on; Raft's is consensus's own.
type listeners struct{ api, agent, console net.Listener } // console is nil where there is none

func (l *listeners) close() {
	for _, one := range []net.Listener{l.api, l.agent, l.console} {
		if one != nil {
			_ = one.Close() // closed by its server before, most often
		}
	}
}

func (d *daemon) listen(ctx context.Context) (l *listeners, err error) {
	l = &listeners{}
	var config net.ListenConfig
	for _, port := range []struct {
		key, address string
		listener     *net.Listener
	}{
		{"listen.api", d.config.Listen.API, &l.api},
		{"listen.agent", d.config.Listen.Agent, &l.agent},
	} {
		if *port.listener, err = config.Listen(ctx, "tcp", port.address); err != nil {
			l.close()
			return nil, fmt.Errorf("key %s: %w: see with 'ss -tlnp' whether another coordinator runs here", port.key, err)
		}
	}
	l.console = reception{d}.open(ctx)
	return l, nil
}

// assemble makes every part and connects them.
func (d *daemon) assemble() (err error) {
	if d.vault, err = d.home.vault(d.who.ClusterID); err != nil {
		return err
	}
	if d.hypervisors, err = keyring.Open(d.home.file("tls"), d.vault.Issuing()); err != nil {
		return err
	}
	asPeer, err := pki.Client(d.home.tls(), pki.RolePeer)
	if err != nil {
		return err
	}
	names := rpc.NewNames(d.home.addresses())
	d.asking = names.Following(asPeer)
	d.peers = names.Following(func() *tls.Config { return d.recognising(asPeer()) })
	d.store = state.NewStore()
	d.keeper = gate.NewKeeper(d.store, time.Now)
	if err := d.backupBeforeUpgrade(); err != nil {
		return err
	}
	if d.consensus, err = consensus.Open(d.consensusConfig(names), d.store); err != nil {
		return mending(err, d.home, d.who)
	}
	// With its reading of the monotonic clock, which UTC would take away: a clock that is set makes no node silent.
	now := time.Now
	d.backups = newBackups(d.config.Backup, d.home.keepSealKeys, d.store, now, d.log.Named("backup"))
	d.history = history.NewKeeper(d.historyConfig())
	d.webhooks = webhook.NewSender(webhookConfig(d))
	d.inventory = inventory.New(now, d.log.Named("inventory"))
	d.inventory.Doubt = func(id string, machine model.Machine) string {
		if node, known := d.store.Snapshot().Node(id); known {
			return node.Doubt(machine)
		}
		return ""
	}
	d.inventory.Concerns = func(node, id string) bool {
		op, known := d.store.Snapshot().Operation(id)
		return known && op.Concerns(node)
	}
	d.agents = agents.New(agents.Config{
		ClusterID: d.who.ClusterID, Member: d.who.ID, Records: d.store, Inventory: d.inventory,
		Hypervisors: d.hypervisors, Authorities: d.vault.IDs,
		RenewNode: func(ctx context.Context, who pki.Bearer, request *berthv1.RenewRequest) (*berthv1.RenewResponse, error) {
			return d.api.Renew(ctx, who, request)
		},
		FollowHypervisor: func(ctx context.Context, who pki.Bearer, says map[string]authorities.Use) error {
			return d.api.FollowHypervisor(ctx, who, says)
		},
		Leader: func() string {
			leader, _ := d.consensus.Leader()
			return leader
		},
		Answered:  func(answer operation.Answer) { d.control.Answered(answer) },
		Connected: func(node string) { d.control.AgentConnected(node) },
		Log:       d.log.Named("agents"),
	})
	d.control = control.New(control.Config{
		Config: lead.Config{
			Store: d.store, Proposer: d.consensus, Agents: d.agents, Inventory: d.inventory,
			Logger: d.log.Named("control"), Now: now, Random: rand.Uint64,
		},
		Fences: fence.New(d.config.FenceAgents, d.config.fences, d.log.Named("fence")),
		Plans: plans.Config{
			Every:     d.config.PassInterval,
			CallsWait: func() bool { return d.api.WritesWait() }, // asked by a leader only, which has its API by then
		},
	})
	d.api = api.New(api.Config{
		Config: answer.Config{
			Self: d.who.ID, SelfName: d.who.Name, Vault: d.vault, Hypervisors: d.hypervisors, Store: d.store,
			Consensus: d.consensus, Inventory: d.inventory, History: d.history,
			Transport: d.peers.Transport, Now: now, Log: d.log.Named("api"),
		},
		Control: d.control, Disconnect: d.agents.Disconnect, Removed: d.agents.Removed, Imports: d.home.imports(),
		Limits: d.config.Limits, Keeper: d.keeper, Console: reception{d}.place,
		Webhooks: webhooks.Config{Sender: d.webhooks, Keys: d.home.keepSealKeys}, LastKnown: &d.lastKnown, OwnFences: d.config.fences == "",
		Targets: d.targets.Known,
	})
	return nil
}

func (d *daemon) consensusConfig(names *rpc.Names) consensus.Config {
	c := raftConfig(d.home, d.who, d.config, d.log)
	c.Names = names
	c.Fatal = func(err error) {
		select {
		case d.fatal <- err:
		default: // one reason to stop is enough
		}
	}
	return c
}

// raftConfig is what init and run give to the same Raft store.
func raftConfig(home place, who identity, c Config, log hclog.Logger) consensus.Config {
	_, _, raft := c.addresses()
	return consensus.Config{
		DataDir: home.raft(), MemberID: who.ID, ClusterID: who.ClusterID, Bind: c.Listen.Raft, Advertise: raft,
		TLS: home.tls(), Logger: log.Named("consensus"), Stability: c.Stability, Invited: who.Invited,
		Seals: home.sealKeys,
	}
}

// webhookConfig is what the sending of what happens stands on: this member's own history, and the log for how far it is.
func webhookConfig(d *daemon) webhook.Config {
	return webhook.Config{
		Cluster: d.who.ClusterID, Self: d.who.Name, State: d.store.Snapshot, Past: d.history, Keys: d.home.keepSealKeys,
		Propose: d.consensus.Propose, NewID: newID, Log: d.log.Named("webhook"),
	}
}
