// Package jobs carries out commands, each once. A command is known by its operation ID and step: the second time it is
// asked for, the first answer is given, also after a crash, because intent and answer are in a journal on the disk.
//
// A command that is older than what this node has obeyed is refused: by the leader's term, and by the VM's epoch. A
// command that was begun and whose end is not known is concluded from what the hypervisor shows, never from memory.
package jobs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"berth/agent/hypervisor"
	"berth/agent/migration"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// Config is what the jobs stand on.
type Config struct {
	Journal    string // path of the journal file
	Hypervisor hypervisor.Hypervisor
	NodeID     string
	VirtType   string // auto, kvm or qemu
	Logger     hclog.Logger
}

// Jobs are the commands of one agent. It is safe for concurrent use.
type Jobs struct {
	Config
	journal  *journal
	results  chan *berthv1.CommandResult
	progress chan *berthv1.CommandProgress

	ctx    context.Context // of the agent's life: a job outlives the session that brought it
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	running map[string]*job
}

type job struct {
	operation string
	runner    *migration.Runner // of a migration, once it runs
	cancelled bool
}

// Open opens the journal. Close ends it.
func Open(config Config) (*Jobs, error) {
	if err := os.MkdirAll(filepath.Dir(config.Journal), 0o700); err != nil {
		return nil, fmt.Errorf("make the journal's folder: %w", err)
	}
	journal, err := openJournal(config.Journal)
	if err != nil {
		return nil, err
	}
	if err := journal.prune(time.Now()); err != nil {
		_ = journal.close()
		return nil, fmt.Errorf("prune the journal: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Jobs{
		Config: config, journal: journal, ctx: ctx, cancel: cancel, running: map[string]*job{},
		// A result that finds no reader is dropped: the coordinator asks again after every reconnect.
		results:  make(chan *berthv1.CommandResult, 256),
		progress: make(chan *berthv1.CommandProgress, 64),
	}, nil
}

// Close leaves running jobs to libvirt and closes the journal. What they were is concluded when they are asked for again.
func (j *Jobs) Close() error {
	j.cancel()
	j.work.Wait()
	return j.journal.close()
}

// Results are the answers, in the order in which they were found.
func (j *Jobs) Results() <-chan *berthv1.CommandResult { return j.results }

// Progress tells of running migrations, about once a second each.
func (j *Jobs) Progress() <-chan *berthv1.CommandProgress { return j.progress }

// Running are the IDs of the operations that are worked on.
func (j *Jobs) Running() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	var ids []string
	for _, one := range j.running {
		ids = append(ids, one.operation)
	}
	return ids
}

// Cancel asks for a running migration to be given up. Anything else runs to its end.
func (j *Jobs) Cancel(operation string, step uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if one := j.running[string(keyOf(operation, step))]; one != nil {
		one.cancelled = true
		if one.runner != nil {
			one.runner.Cancel()
		}
	}
}

// Do carries out a command, or attaches to it if it runs, or repeats its answer. It does not wait. The context is only
// that of the session that asks: the job does not end with it.
func (j *Jobs) Do(_ context.Context, command *berthv1.Command) {
	key := string(keyOf(command.GetOperationId(), command.GetStep()))
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.running[key] != nil || j.ctx.Err() != nil {
		return
	}
	one := &job{operation: command.GetOperationId()}
	j.running[key] = one
	j.work.Go(func() {
		result := j.carryOut(command, one)
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

// carryOut finds the answer in the journal, or does the work and journals it. Nil means that the agent stops and the
// answer has to be found by its next life.
func (j *Jobs) carryOut(command *berthv1.Command, one *job) *berthv1.CommandResult {
	log := j.Logger.With("operation", command.GetOperationId(), "step", command.GetStep(), "vm", command.GetVmName())
	if command.GetInspect() != nil {
		return j.inspect(command)
	}
	before, known, err := j.journal.lookup(command.GetOperationId(), command.GetStep())
	switch {
	case err != nil:
		return failure(command, "journal", fmt.Errorf("read the journal: %w", err), nil)
	case before != nil:
		before.Repeated = true
		return before
	}
	if !known {
		if err := j.journal.begin(command, time.Now()); err != nil {
			return refusal(command, err)
		}
	}
	log.Info("command begun", "action", fmt.Sprintf("%T", command.GetAction()), "taken_up", known)
	done := j.act(command, one, known)
	if j.ctx.Err() != nil {
		return nil
	}
	log.Info("command ended", "outcome", done.result.GetOutcome().String(), "error", done.result.GetError())
	if done.again {
		err = j.journal.forget(command)
	} else {
		err = j.journal.answer(command, done.result, done.obeyFrom, time.Now())
	}
	if err != nil {
		// What was done is done; without the journal the same question is answered by looking again.
		log.Error("the answer could not be journalled", "error", err)
	}
	return done.result
}

// done is how a command ended on this node.
type done struct {
	result   *berthv1.CommandResult
	obeyFrom uint64 // refuse orders for the VM below this epoch from now on; 0: as before
	again    bool   // do not keep: the same order asks anew
}

func (j *Jobs) act(command *berthv1.Command, one *job, takenUp bool) done {
	if takenUp {
		j.awaitHypervisor()
	}
	switch {
	case command.GetStart() != nil:
		return j.start(command)
	case command.GetStop() != nil:
		return j.stop(command)
	case command.GetMigrate() != nil:
		return j.migrate(command, one, takenUp)
	case command.GetResume() != nil:
		return j.resume(command)
	case command.GetDiscard() != nil:
		return j.discard(command)
	default:
		err := errors.New("this agent does not know the command: upgrade it")
		return done{result: result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, "unsupported", err, nil), again: true}
	}
}

// awaitHypervisor gives a connection that is being made a moment, for commands that an earlier life began.
func (j *Jobs) awaitHypervisor() {
	for range 100 {
		if connected, _ := j.Hypervisor.Connected(); connected {
			return
		}
		select {
		case <-j.ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// look is what the hypervisor shows of the VM. Unknown is true when it cannot tell.
func (j *Jobs) look(command *berthv1.Command) (domain hypervisor.Domain, unknown bool) {
	domain, err := j.Hypervisor.Lookup(j.ctx, command.GetVmId())
	switch {
	case errors.Is(err, hypervisor.ErrNotFound):
		return hypervisor.Domain{UUID: command.GetVmId(), Name: command.GetVmName(), State: hypervisor.Absent}, false
	case err != nil:
		return hypervisor.Domain{UUID: command.GetVmId(), Name: command.GetVmName()}, true
	}
	return domain, false
}

// seen is a look as an answer shows it.
func (j *Jobs) seen(command *berthv1.Command) *berthv1.Domain {
	domain, _ := j.look(command)
	return telemetry.Domain(domain)
}

func gone(d hypervisor.Domain) bool {
	return d.State == hypervisor.Absent || d.State == hypervisor.Shutoff
}

func result(command *berthv1.Command, outcome berthv1.CommandOutcome, code string, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	out := &berthv1.CommandResult{
		OperationId: command.GetOperationId(), Step: command.GetStep(), Outcome: outcome, ErrorCode: code, Domain: domain,
	}
	if err != nil {
		out.Error = err.Error()
	}
	return out
}

func success(command *berthv1.Command, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, "", nil, domain)
}

func failure(command *berthv1.Command, code string, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED, code, err, domain)
}

func doubt(command *berthv1.Command, err error, domain *berthv1.Domain) *berthv1.CommandResult {
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_AMBIGUOUS, codeOf(err), err, domain)
}

func refusal(command *berthv1.Command, err error) *berthv1.CommandResult {
	code := "journal" // a full or broken disk: nothing is done that could not be remembered
	switch {
	case errors.Is(err, ErrStaleTerm):
		code = "stale_term"
	case errors.Is(err, ErrStaleEpoch):
		code = "stale_epoch"
	default:
		err = fmt.Errorf("the node's journal takes no entry, so nothing was done: %w", err)
	}
	return result(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, code, err, nil)
}

// codeOf is the stable word of an error's cause.
func codeOf(err error) string {
	for _, known := range []struct {
		cause error
		code  string
	}{
		{hypervisor.ErrNoMemory, "no_memory"},
		{hypervisor.ErrExists, "exists"},
		{hypervisor.ErrInvalidXML, "invalid_xml"},
		{hypervisor.ErrUnavailable, "unavailable"},
		{hypervisor.ErrTooOld, "too_old"},
		{hypervisor.ErrBusy, "busy"},
		{hypervisor.ErrDenied, "denied"},
		{hypervisor.ErrUnsupported, "unsupported"},
		{hypervisor.ErrOtherEpoch, "other_epoch"},
		{hypervisor.ErrInvalidState, "invalid_state"},
		{hypervisor.ErrNotFound, "not_found"},
		{hypervisor.ErrAmbiguous, "ambiguous"},
		{hypervisor.ErrAborted, "aborted"},
	} {
		if errors.Is(err, known.cause) {
			return known.code
		}
	}
	return "internal"
}
