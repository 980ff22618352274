package consensus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	"golang.org/x/time/rate"

	"berth/coordinator/consensus/claims"
	"berth/coordinator/model"
	"berth/coordinator/seal"
	"berth/coordinator/state"
	"berth/shared/pki"
	"berth/shared/rpc"
	"berth/shared/units"
)

// Raft's times. The loss of a leader is noticed after one to about two and a half heartbeat timeouts, by the first of
// the others; the election then takes some round trips and one write.
const (
	heartbeatTimeout = 800 * time.Millisecond
	electionTimeout  = 800 * time.Millisecond
	leaseTimeout     = 500 * time.Millisecond
)

// What is kept of the log. A member that was away for fewer entries than trailing catches up from the log, others get a
// snapshot.
const (
	snapshotEvery    = time.Minute // looked at, not taken
	snapshotAfter    = 4096        // entries
	trailing         = 4096        // entries
	cached           = 128         // entries in memory
	proposals        = 256         // in flight; more wait for their turn
	defaultStability = 10 * time.Second
	transferLimit    = 2 * time.Second
)

// Config is what one member needs.
type Config struct {
	DataDir   string // of the Raft store alone: log and snapshots
	MemberID  string
	Name      string // for people; empty: the ID
	ClusterID string
	Bind      string // address to listen on, for instance ":7422"
	Advertise string // HOST:PORT at which the others reach this member
	TLS       pki.Files
	// Invited are the hashes of the keys of coordinators that this member may follow before it has any state: the one that enrolled it
	// has told them. None: that one was of an earlier release, and every coordinator of the cluster may be followed.
	Invited []string
	Revoked []model.Identity // that this member remembers, for Rebuild
	Names   *rpc.Names       // of the others; nil: none is remembered
	// Seals are the keys of backups. The last one seals those that are made.
	Seals  func() (seal.Keys, error)
	Logger hclog.Logger

	// Fatal is told, once, why this member cannot go on: its disk is full, fails or hangs, or it cannot apply the log.
	// It has to end the process. It may be called from any goroutine and must not call back into this package.
	Fatal func(error)

	MinFree   units.Bytes   // least free space to propose anything; 0: 512 MiB, or a sixteenth of a small file system
	Stability time.Duration // how long a joined member has to keep up before it may vote; 0: 10 s

	seams seams
}

// seams are where tests put something else below this package. In the product all are nil.
type seams struct {
	logs  func() (backend, error)            // instead of the file of the log
	wrap  func(backend) backend              // around it
	files func() (raft.SnapshotStore, error) // instead of the files of snapshots
	link  func(admission) (link, error)      // instead of the port
	fsm   func(raft.FSM) raft.FSM            // around the state
	clock func() time.Time                   // instead of the wall clock, where it is compared with those of others
	tune  func(*raft.Config)                 // of Raft's times and bounds
}

// Consensus is this member's part in Raft. All methods may be called from any goroutine.
type Consensus struct {
	*self
	*membership
	*proposing
	*health

	stream     *listener // nil over a test's link
	notices    chan bool
	replaced   chan struct{} // the state was, by a backup
	leadership chan Leadership
	heirs      heirs
	tasks      sync.WaitGroup

	ending   sync.Once
	stop     chan struct{} // closed when the end begins
	ended    chan struct{} // closed when all has
	endError error
}

// self is this member's Raft, with what is below it.
type self struct {
	cfg       Config
	store     *state.Store
	logs      *guarded
	transport *transport
	raft      atomic.Pointer[raft.Raft] // nil until Raft is there; the listener is before it
	logger    hclog.Logger
	fatal     func(error)
	stopped   chan struct{} // closed when Raft has ended: nothing answers any more
	told      told          // what the leader has told of coordinators whose records are not here yet
	ahead     atomic.Int64  // by how many nanoseconds its clock is ahead of most others'; 0: it is not, as far as it knows
}

// now is the wall clock.
func (c *self) now() time.Time {
	if c.cfg.seams.clock != nil {
		return c.cfg.seams.clock()
	}
	return time.Now()
}

// Bootstrap makes a cluster of this one member in an empty store. It is for `init` alone: a member that joins never bootstraps.
// The error is ErrNotEmpty when there is a cluster already.
func Bootstrap(cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	logs, err := cfg.openLogs()
	if err != nil {
		return err
	}
	defer logs.Close()
	files, err := cfg.openSnapshots(cfg.Logger, cfg.Fatal)
	if err != nil {
		return err
	}
	err = raft.BootstrapCluster(cfg.raft(nil), logs, logs, files, nil, raft.Configuration{Servers: []raft.Server{{
		Suffrage: raft.Voter, ID: raft.ServerID(cfg.MemberID), Address: raft.ServerAddress(cfg.Advertise),
	}}})
	if errors.Is(err, raft.ErrCantBootstrap) {
		return fmt.Errorf("%w: %s", ErrNotEmpty, cfg.DataDir)
	}
	if err != nil {
		return fmt.Errorf("bootstrap the Raft store in %s: %w", cfg.DataDir, err)
	}
	return nil
}

// Open starts this member on what its store holds. A store that holds nothing makes a member that waits: it takes part
// once the leader has added it (see AddNonvoter and Joined). The error may be ErrDamaged, ErrInUse or ErrForeign.
func Open(cfg Config, store *state.Store) (*Consensus, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	own := &self{cfg: cfg, store: store, logger: cfg.Logger, fatal: onceFatal(&cfg), stopped: make(chan struct{})}
	c := &Consensus{
		self: own, membership: &membership{own}, health: &health{self: own},
		proposing: &proposing{self: own, slots: make(chan struct{}, proposals), outgoing: outgoing{order: make(chan struct{}, 1)}},
		notices:   make(chan bool, 16), replaced: make(chan struct{}, 1), leadership: make(chan Leadership),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	if owner := store.Snapshot().Meta(state.MetaClusterID); owner != "" && owner != cfg.ClusterID {
		c.end()
		return nil, fmt.Errorf("%w: %s holds the state of cluster %s, this coordinator belongs to %s",
			ErrForeign, cfg.DataDir, owner, cfg.ClusterID)
	}
	c.tasks.Go(c.watchLeadership)
	c.tasks.Go(c.upkeep)
	c.tasks.Go(c.watchPeers)
	return c, nil
}

// open makes what is below Raft, and Raft. What was opened before an error is closed again.
func (c *Consensus) open() (err error) {
	logs, err := c.cfg.openLogs()
	if err != nil {
		return err
	}
	c.logs = &guarded{backend: logs, limit: storeLimit, fatal: c.storeFailed}
	defer func() {
		if err != nil {
			c.logs.Close()
		}
	}()
	files, err := c.cfg.openSnapshots(c.logger.Named("snapshot"), c.storeFailed)
	if err != nil {
		return err
	}
	newest, err := files.newest()
	if err != nil {
		return damaged(filepath.Join(c.cfg.DataDir, "snapshots"), err)
	}
	// Not through the guard: what is found here is told, not died of.
	if err := protect(func() error { return verifyLog(logs, newest) }); err != nil {
		return damaged(filepath.Join(c.cfg.DataDir, storeFile), err)
	}
	if err := c.openTransport(); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			c.transport.Close()
		}
	}()
	cache, err := raft.NewLogCache(cached, c.logs)
	if err != nil {
		return err
	}
	var r *raft.Raft
	if err := protect(func() (err error) {
		r, err = raft.NewRaft(c.cfg.raft(c.notices), fatalFSM{c.fsm(), c.fatal}, cache, c.logs, files, c.transport)
		return err
	}); err != nil {
		return fmt.Errorf("start Raft on %s: %w", c.cfg.DataDir, err)
	}
	c.raft.Store(r)
	return nil
}

func (cfg *Config) openLogs() (backend, error) {
	var logs backend
	var err error
	if cfg.seams.logs != nil {
		logs, err = cfg.seams.logs()
	} else {
		logs, err = openBolt(cfg.DataDir)
	}
	if err != nil {
		return nil, err
	}
	if cfg.seams.wrap != nil {
		logs = cfg.seams.wrap(logs)
	}
	return logs, nil
}

func (cfg *Config) openSnapshots(logger hclog.Logger, fatal func(error)) (*snapshots, error) {
	if cfg.seams.files == nil {
		return openSnapshots(cfg.DataDir, logger, fatal)
	}
	files, err := cfg.seams.files()
	if err != nil {
		return nil, err
	}
	return &snapshots{files, fatal}, nil
}

func (c *Consensus) openTransport() error {
	if c.cfg.seams.link != nil {
		below, err := c.cfg.seams.link(c)
		if err != nil {
			return err
		}
		c.transport = newTransport(c.judged(below), c.applied, c.follows)
		return nil
	}
	var err error
	if c.stream, err = listen(&c.cfg, c); err != nil {
		return err
	}
	c.transport = newTransport(c.judged(overNetwork(&c.cfg, c.stream)), c.applied, c.follows)
	return nil
}

// judged is a link on which is looked at what the other members claim.
func (c *Consensus) judged(below link) claims.Judged {
	refusals := rate.Sometimes{First: 3, Interval: repeatEvery}
	return claims.Judged{Link: below, Book: claims.New(claims.Present{
		Term: func() (term uint64, ok bool) {
			r := c.raft.Load()
			if r == nil {
				return 0, false
			}
			return r.CurrentTerm(), true
		},
		Led: c.termLed, MemberAt: c.memberAt,
		Refused: func(err error) {
			refusals.Do(func() {
				c.logger.Warn("another coordinator makes a false claim; somebody has to look at it", "claim", err)
			})
		},
	})}
}

// applied is the index of the last entry that was given to the state, in this term.
func (c *self) applied() (index, term uint64) {
	r := c.raft.Load()
	if r == nil {
		return 0, 0
	}
	return r.AppliedIndex(), r.CurrentTerm()
}

// follows tells whether this member follows the leader of this term, and where its log ends.
func (c *self) follows(term uint64) (lastIndex uint64, yes bool) {
	r := c.raft.Load()
	if r == nil || r.State() != raft.Follower || r.CurrentTerm() != term {
		return 0, false
	}
	return r.LastIndex(), true
}

// fsm is what Raft applies to.
func (c *self) fsm() raft.FSM {
	if c.cfg.seams.fsm != nil {
		return c.cfg.seams.fsm(c.store.FSM())
	}
	return c.store.FSM()
}

func (cfg *Config) complete() error {
	for _, needed := range [][2]string{
		{"DataDir", cfg.DataDir}, {"MemberID", cfg.MemberID}, {"ClusterID", cfg.ClusterID}, {"Advertise", cfg.Advertise},
	} {
		if needed[1] == "" {
			return fmt.Errorf("consensus: %s is empty", needed[0])
		}
	}
	if cfg.Logger == nil || cfg.Fatal == nil {
		return errors.New("consensus: a Logger and Fatal are needed")
	}
	cfg.Name = cmp.Or(cfg.Name, cfg.MemberID)
	cfg.MinFree = cmp.Or(cfg.MinFree, defaultMinFree)
	cfg.Stability = cmp.Or(cfg.Stability, defaultStability)
	return nil
}

func (cfg *Config) raft(notices chan<- bool) *raft.Config {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(cfg.MemberID)
	config.HeartbeatTimeout, config.ElectionTimeout, config.LeaderLeaseTimeout = heartbeatTimeout, electionTimeout, leaseTimeout
	config.SnapshotInterval, config.SnapshotThreshold, config.TrailingLogs = snapshotEvery, snapshotAfter, trailing
	config.ShutdownOnRemove = false // the process decides what to do without its cluster
	config.NoLegacyTelemetry = true
	config.NotifyCh = notices
	config.Logger = newQuiet(cfg.Logger.Named("raft"))
	if cfg.seams.tune != nil {
		cfg.seams.tune(config)
	}
	return config
}

// caller is how this member signs what it proposes by itself.
func (c *self) caller() string { return "coordinator/" + c.cfg.Name }

func onceFatal(cfg *Config) func(error) {
	var once sync.Once
	return func(err error) {
		once.Do(func() {
			cfg.Logger.Error("this coordinator cannot go on", "error", err)
			cfg.Fatal(err)
		})
	}
}

func (c *self) storeFailed(err error) {
	c.fatal(fmt.Errorf("the Raft store in %s failed: %w; see to the disk and start the coordinator again", c.cfg.DataDir, err))
}

// fatalFSM tells why before the process goes down with a panic of the state.
type fatalFSM struct {
	raft.FSM
	fatal func(error)
}

func (f fatalFSM) Apply(entry *raft.Log) any {
	defer func() {
		if reason := recover(); reason != nil {
			f.fatal(fmt.Errorf("%v", reason))
			panic(reason) //nolint:forbidigo // the state's own, told and passed on
		}
	}()
	return f.FSM.Apply(entry)
}

// Shutdown stops this member. A leader hands the leadership on first, waiting at most two seconds for it. When ctx ends
// before everything has stopped, its error is returned and the rest stops on its own.
func (c *Consensus) Shutdown(ctx context.Context) error {
	c.ending.Do(func() {
		if c.IsLeader() && len(c.otherVoters()) > 0 {
			if err := c.Transfer(ctx); err != nil {
				c.logger.Warn("the leadership could not be handed on", "error", err)
			}
		}
		go c.end()
	})
	select {
	case <-c.ended:
		return c.endError
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end stops Raft, then what is above and below it.
func (c *Consensus) end() {
	defer close(c.ended)
	close(c.stop)
	err := c.raft.Load().Shutdown().Error()
	c.transport.CloseStreams()
	close(c.stopped)
	c.tasks.Wait()
	c.endError = errors.Join(err, c.logs.Close())
}
