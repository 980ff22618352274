// Package jobs carries out commands, each once. Operation ID and step identify a command. If it is sent again, it gets the
// same answer again, even after a crash, because intent and answer are in a journal on disk.
//
// A command that is older than what this node has obeyed is refused, by the leader's term and by the VM's epoch. If a command
// was begun and its end is not known, the hypervisor is asked what is there; memory decides nothing. "The VM is not here" is
// said only when it stays true: no start that the hypervisor has not answered may still take effect, and orders that would
// bring the VM back are refused from then on.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/lastrun"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// Config is what the jobs need.
type Config struct {
	Journal    string // path of the journal file
	Hypervisor hypervisor.Hypervisor
	NodeID     string
	VirtType   string // auto, kvm or qemu
	Logger     hclog.Logger

	// A simulator replaces these. Nil: the machine's own time, and the journal file.
	Scheduler Scheduler
	Storage   Storage
}

// Jobs are the commands of one agent. It is safe for concurrent use.
type Jobs struct {
	Config
	journal  *journal
	machine  machineCache
	absences absences
	endings  endings

	health    health
	unwritten unwritten

	results  chan *berthv1.CommandResult
	progress chan *berthv1.CommandProgress

	ctx    context.Context // of the agent's life: a job outlives the session that started it
	cancel context.CancelFunc
	work   sync.WaitGroup

	turns turns // of the commands of one VM

	runs lastrun.Runs

	mu      sync.Mutex
	running map[string]*job
	thawing map[string]bool // VM IDs of guests that somebody keeps trying to thaw
}

// job is one command that is being carried out.
type job struct {
	*Jobs
	command   *berthv1.Command
	takenUp   bool       // an earlier life of the agent has begun it
	migration *migration // of a migration, once it runs
	cancelled bool
	takenBack bool // it is not to begin any more
	defined   bool // of a start: libvirt had a definition of the VM, which it takes the place of
}

// Open opens the journal. Close ends it.
func Open(config Config) (*Jobs, error) {
	if config.Scheduler == nil {
		config.Scheduler = realTime{}
	}
	if config.Storage == nil {
		if err := os.MkdirAll(filepath.Dir(config.Journal), 0o700); err != nil {
			return nil, fmt.Errorf("make the journal's folder: %w", err)
		}
		file, err := openFile(config.Journal)
		if err != nil {
			return nil, err
		}
		config.Storage = file
	}
	storage := &watched{Storage: config.Storage}
	journal := &journal{storage: storage}
	open, err := journal.openStarts()
	if err == nil {
		err = journal.prune(config.Scheduler.Now())
	}
	var frozen []string
	if err == nil {
		frozen, err = journal.allFrozen()
	}
	var runs map[string]lastrun.Run
	if err == nil {
		runs, err = journal.runs()
	}
	if err != nil {
		_ = journal.close()
		return nil, fmt.Errorf("read the journal %s: %w", config.Journal, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	j := &Jobs{
		Config: config, journal: journal, ctx: ctx, cancel: cancel,
		runs: lastrun.New(runs), running: map[string]*job{}, thawing: map[string]bool{},
		turns: turns{scheduler: config.Scheduler, of: map[string]*turn{}},
		// A result that finds no reader is dropped: the coordinator asks again after every reconnect.
		results:  make(chan *berthv1.CommandResult, 256),
		progress: make(chan *berthv1.CommandProgress, 64),
	}
	storage.health = &j.health
	for _, vm := range open {
		j.absences.doubt(vm) // an earlier life asked for it, and it may still start
	}
	j.thawLeft(frozen)
	j.background(j.prune)
	j.background(func() { j.probe(storage) })
	j.background(j.list)
	return j, nil
}

// Close leaves running jobs to libvirt and closes the journal. Their ends are found out when somebody asks for them again.
func (j *Jobs) Close() error {
	j.cancel()
	j.work.Wait()
	return j.journal.close()
}

func (j *Jobs) prune() {
	for j.sleep(pruneEvery) == nil {
		j.endings.forget(j.now())
		j.runs.Forget(j.now(), keepAnswers)
		if err := j.journal.prune(j.now()); err != nil {
			j.Logger.Error("old lines could not be taken out of the journal", "error", err)
		}
	}
}

// background runs work that Close waits for.
func (j *Jobs) background(work func()) {
	j.work.Add(1)
	j.Scheduler.Go(func() {
		defer j.work.Done()
		work()
	})
}

func (j *Jobs) now() time.Time { return j.Scheduler.Now() }

// Results is the answers, in the order in which they were found.
func (j *Jobs) Results() <-chan *berthv1.CommandResult { return j.results }

// Progress reports running migrations, about once a second each.
func (j *Jobs) Progress() <-chan *berthv1.CommandProgress { return j.progress }

// Running is the IDs of the operations in work.
func (j *Jobs) Running() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for _, one := range j.running {
		ids = append(ids, one.command.GetOperationId())
	}
	return ids
}

// Known is the UUIDs of the VMs that this node has had orders for: one of them may run here. None if the journal cannot be read.
func (j *Jobs) Known() []string { return j.journal.known() }

// Follow makes a leader's term the present one: orders of leaders with an older term are refused from now on. The error is
// errorcode.ErrStaleTerm if this leader itself is older.
func (j *Jobs) Follow(term uint64) error {
	err := j.journal.follow(term)
	if errors.Is(err, errorcode.ErrStaleTerm) {
		return err
	}
	if err != nil { // its orders will be refused for the same reason, but the node's reports need no journal
		j.Logger.Error("the leader's term could not be journalled", "term", term, "error", err)
	}
	return nil
}

// Cancel asks for a running migration to be given up. Any other command runs to its end.
func (j *Jobs) Cancel(operation string, step uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if one := j.running[string(keyOf(operation, step))]; one != nil {
		one.cancel()
	}
}

// cancel gives the job's migration up, also one that has not begun yet. The caller holds the lock.
func (j *job) cancel() {
	j.cancelled = true
	if j.migration != nil {
		j.migration.cancel()
	}
}

// Do carries out a command, or attaches to it if it runs, or repeats its answer. It does not wait. The context is only that
// of the asking session: the job does not end with it.
func (j *Jobs) Do(_ context.Context, command *berthv1.Command) {
	key := string(keyOf(command.GetOperationId(), command.GetStep()))
	j.mu.Lock()
	defer j.mu.Unlock()
	one, givenUp := j.running[key], command.GetMigrate().GetGivenUp()
	switch {
	case one != nil && givenUp:
		one.cancel()
		return
	case one != nil && command.GetTakenBack():
		one.takenBack = true // it may still wait for its turn
		return
	case one != nil || j.ctx.Err() != nil:
		return
	}
	one = &job{Jobs: j, command: command, cancelled: givenUp, takenBack: command.GetTakenBack()}
	j.running[key] = one
	j.background(func() {
		result := one.carryOut()
		j.mu.Lock()
		delete(j.running, key)
		j.mu.Unlock()
		if result == nil {
			return // the agent is stopping
		}
		select {
		case j.results <- result:
		default:
			j.Logger.Warn("a result found no session; the coordinator will ask again", "operation", command.GetOperationId())
		}
	})
}

// starting tells whether a start of the VM is in work.
func (j *Jobs) starting(vm string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, one := range j.running {
		if one.command.GetVmId() == vm && actionOf(one.command).starts {
			return true
		}
	}
	return false
}

// carryOut finds the answer in the journal, or does the work and journals it. Nil means that the agent stops and its next
// life has to find the answer.
func (j *job) carryOut() *berthv1.CommandResult {
	log := j.Logger.With("operation", j.command.GetOperationId(), "step", j.command.GetStep(), "vm", j.command.GetVmName())
	if j.command.GetInspect() != nil {
		return j.inspect()
	}
	if j.command.GetOperationId() == "" || j.command.GetVmId() == "" || j.command.GetEpoch() == 0 {
		// Epoch 0 is what domains have that are not Berth's.
		return refused(j.command, errorcode.ErrMalformed, nil)
	}
	giveBack, err := j.turns.take(context.Background(), j.command.GetVmId())
	if err != nil {
		return nil
	}
	defer giveBack()
	before, err := j.journal.answered(j.command.GetOperationId(), j.command.GetStep())
	if before == nil && err == nil {
		before = j.unwritten.of(j.command)
	}
	switch {
	case err != nil:
		return refusal(j.command, fmt.Errorf("read it: %w", err))
	case before != nil:
		before.Repeated = true
		return before
	case j.isTakenBack():
		late := refused(j.command, errorcode.ErrTooLate, nil)
		switch never, err := j.journal.takeBack(j.command, late, j.now()); {
		case err != nil:
			return refusal(j.command, err)
		case never:
			log.Info("command taken back before it had begun")
			return late
		}
	}
	j.takenUp, err = j.journal.begin(j.command, false, j.now())
	if errors.Is(err, errorcode.ErrStaleEpoch) && j.isBack() {
		j.takenUp, err = j.journal.begin(j.command, true, j.now())
	}
	promised := err != nil && j.isPromised()
	if err != nil && !promised {
		log.Warn("command refused", "error", err)
		refused := refusal(j.command, err)
		if errors.Is(err, errorcode.ErrStaleEpoch) && actionOf(j.command).discards {
			// Orders of this epoch are refused already, so what is not here now stays away.
			refused.Domain = j.await(patience, func(s sight) bool { return !s.gone() || s.cleared() }).message()
		}
		return refused
	}
	log.Info("command begun", "action", nameOf(j.command), "taken_up", j.takenUp)
	done := j.act()
	if j.ctx.Err() != nil {
		return nil
	}
	log.Info("command ended", "outcome", done.result.GetOutcome().String(), "error", done.result.GetError())
	switch {
	case done.again && done.begun:
	case done.again:
		err = j.journal.forget(j.command)
	default:
		if domain := done.result.GetDomain(); domain != nil {
			telemetry.AddLastRun(domain, j.LastRuns)
		}
		err = j.journal.answer(j.command, done, j.now())
	}
	if err != nil {
		log.Error("the answer could not be journalled", "error", err)
		if done.result.GetOutcome() == berthv1.CommandOutcome_COMMAND_OUTCOME_DONE && (promised || j.isPromised()) {
			j.unwritten.keep(j.command, done.result)
			return done.result
		}
		left := actionOf(j.command).standsStill && done.result.GetOutcome() == berthv1.CommandOutcome_COMMAND_OUTCOME_DONE
		if !done.again && !left {
			// Without the journal the answer would be a promise that is forgotten: the intent stands, and the same order would be
			// carried out if it came again, however late. Only one thing is answered all the same: that a guest has left, because
			// it stands still until then.
			return refusal(j.command, err)
		}
	}
	return done.result
}

// isTakenBack tells whether the command is not to begin any more.
func (j *job) isTakenBack() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.takenBack
}

// isBack tells whether the order stops or migrates a VM that runs here under the order's own epoch, although this node has
// refused that epoch: somebody has brought the VM back without Berth. Such an order can only make the node let go of it once
// more. A start or a resume, which could run the VM twice, stays refused.
func (j *job) isBack() bool {
	return actionOf(j.command).letsGo && j.look().holds(j.command.GetEpoch())
}

// done is how a command ended on this node.
type done struct {
	result   *berthv1.CommandResult
	obeyFrom uint64 // refuse orders for the VM below this epoch from now on; 0: no change
	again    bool   // do not keep the answer: the same order tries again
	begun    bool   // with again: it may have taken effect, so it counts as begun
	promises bool   // this node has promised to resume the guest of a migration
}

// act carries a command out. A panic must not end the agent: the order would come again and end its next life, and the agents
// of other nodes as well. The coordinator has to find out what the command had done before.
func (j *job) act() (d done) {
	defer func() {
		if defect := recover(); defect != nil {
			j.Logger.Error(
				"a command met a defect of berth", "operation", j.command.GetOperationId(), "defect", defect, "stack", string(debug.Stack()),
			)
			j.absences.doubt(j.command.GetVmId())
			d = done{result: doubt(j.command, fmt.Errorf("a defect of berth: %v: the agent's log has more about it", defect), nil)}
		}
	}()
	if do := actionOf(j.command).do; do != nil {
		return do(j)
	}
	return done{result: refused(j.command, errorcode.ErrUnknown, nil), again: true}
}
