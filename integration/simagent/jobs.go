package simagent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"berth/agent/errorcode"
	"berth/agent/hypervisor"
	"berth/agent/telemetry"
	berthv1 "berth/shared/gen/berth/v1"
)

// jobs does orders at once. Like the real agent's, it answers a repeated order with the answer given before, and refuses
// one that is older than what it has seen of the VM, so that a double start would show.
type jobs struct {
	node    *node
	fleet   *Fleet
	results chan *berthv1.CommandResult
	mute    atomic.Bool // it does nothing that it is told, and says nothing of it

	mu       sync.Mutex
	answered map[step]*berthv1.CommandResult
	newest   map[string]order          // by VM ID
	held     map[step]*berthv1.Command // migrations that wait for their end
	welcome  time.Time                 // the last one
	welcomes int
}

type step struct {
	operation string
	number    uint32
}

type order struct{ term, epoch uint64 }

// queue is how many answers may wait for a session. What does not fit is asked for again by the coordinator.
const queue = 1024

func newJobs(n *node, fleet *Fleet) *jobs {
	return &jobs{
		node: n, fleet: fleet, results: make(chan *berthv1.CommandResult, queue),
		answered: map[step]*berthv1.CommandResult{}, newest: map[string]order{}, held: map[step]*berthv1.Command{},
	}
}

// Do answers a command before it returns, unless it is a migration and the fleet holds these, or the agent is mute.
func (j *jobs) Do(_ context.Context, command *berthv1.Command) {
	if j.mute.Load() {
		return
	}
	j.mu.Lock()
	if command.GetMigrate() != nil && j.fleet.holding.Load() {
		j.held[step{command.GetOperationId(), command.GetStep()}] = command
		j.mu.Unlock()
		return
	}
	result := j.answer(command)
	j.mu.Unlock()
	j.tell(result)
}

func (j *jobs) tell(result *berthv1.CommandResult) {
	select {
	case j.results <- result:
	default:
	}
}

func (j *jobs) answer(command *berthv1.Command) *berthv1.CommandResult {
	if command.GetInspect() != nil {
		return j.finish(command, berthv1.CommandOutcome_COMMAND_OUTCOME_DONE, none, "")
	}
	key := step{command.GetOperationId(), command.GetStep()}
	if before, known := j.answered[key]; known {
		again := proto.CloneOf(before) // the first one may still be on its way
		again.Repeated = true
		return again
	}
	last := j.newest[command.GetVmId()]
	if command.GetClear() != nil {
		return j.finish(command, done, none, "") // it comes when its epoch is over, and there is nothing to remove
	}
	if command.GetStop() != nil && j.fleet.letting.Load() {
		if domain, there := j.node.find(command.GetVmId()); there {
			j.node.remove(domain, "stopped")
			last.epoch = command.GetEpoch() + 1
			j.newest[command.GetVmId()] = last
		}
	}
	switch {
	case command.GetTerm() < last.term:
		return j.finish(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, staleTerm, "the order is of an earlier leader")
	case command.GetEpoch() < last.epoch:
		return j.finish(command, berthv1.CommandOutcome_COMMAND_OUTCOME_REFUSED, staleEpoch, "the order is of an earlier epoch")
	}
	j.newest[command.GetVmId()] = order{command.GetTerm(), command.GetEpoch()}
	outcome, code, text := j.act(command)
	result := j.finish(command, outcome, code, text)
	j.answered[key] = result
	return result
}

const (
	done   = berthv1.CommandOutcome_COMMAND_OUTCOME_DONE
	failed = berthv1.CommandOutcome_COMMAND_OUTCOME_FAILED

	none        = berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNSPECIFIED
	staleTerm   = berthv1.AgentErrorCode_AGENT_ERROR_CODE_STALE_TERM
	staleEpoch  = berthv1.AgentErrorCode_AGENT_ERROR_CODE_STALE_EPOCH
	exists      = berthv1.AgentErrorCode_AGENT_ERROR_CODE_EXISTS
	notFound    = berthv1.AgentErrorCode_AGENT_ERROR_CODE_NOT_FOUND
	aborted     = berthv1.AgentErrorCode_AGENT_ERROR_CODE_ABORTED
	unavailable = berthv1.AgentErrorCode_AGENT_ERROR_CODE_UNAVAILABLE
)

// act changes the set of domains.
func (j *jobs) act(command *berthv1.Command) (outcome berthv1.CommandOutcome, code berthv1.AgentErrorCode, text string) {
	domain, there := j.node.find(command.GetVmId())
	switch {
	case command.GetStart() != nil:
		if there {
			return failed, exists, fmt.Sprintf("the domain runs already under epoch %d", domain.Epoch)
		}
		spec := command.GetStart().GetSpec()
		j.node.put(hypervisor.Domain{
			UUID: command.GetVmId(), Name: command.GetVmName(), State: hypervisor.Running, Reason: "booted",
			MemoryBytes: spec.GetMemoryBytes(), VCPUs: int(spec.GetVcpus()), Managed: true,
			Epoch: command.GetEpoch(), OperationID: command.GetOperationId(),
		}, "started")
	case command.GetStop() != nil && there:
		j.node.remove(domain, "stopped")
	case command.GetMigrate() != nil:
		return j.migrate(domain, there, command)
	case command.GetResume() != nil:
		if !there {
			return failed, notFound, "there is no such domain"
		}
		domain.State, domain.Reason = hypervisor.Running, "unpaused"
		j.node.put(domain, "resumed")
	case command.GetDiscard() != nil && there && domain.State != hypervisor.Running:
		j.node.remove(domain, "stopped")
	}
	return done, none, ""
}

// migrate moves a domain to another node of the fleet and leaves it paused there.
func (j *jobs) migrate(
	domain hypervisor.Domain, there bool, command *berthv1.Command,
) (berthv1.CommandOutcome, berthv1.AgentErrorCode, string) {
	target := j.fleet.node(command.GetMigrate().GetTargetUri())
	switch {
	case !there:
		return failed, notFound, "there is no such domain"
	case target == nil:
		return failed, unavailable, "no simulated node is at " + command.GetMigrate().GetTargetUri()
	}
	if _, taken := target.find(domain.UUID); taken {
		return failed, exists, "the target has the domain already"
	}
	moved := domain
	moved.State, moved.Reason, moved.Epoch = hypervisor.Paused, "migrated", command.GetMigrate().GetTargetEpoch()
	moved.OperationID = command.GetOperationId()
	j.node.remove(domain, "migrated")
	target.put(moved, "suspended")
	return done, none, ""
}

// finish makes the answer, with what the node shows now.
func (j *jobs) finish(
	command *berthv1.Command, outcome berthv1.CommandOutcome, code berthv1.AgentErrorCode, text string,
) *berthv1.CommandResult {
	domain, there := j.node.find(command.GetVmId())
	if !there {
		domain = hypervisor.Domain{UUID: command.GetVmId(), Name: command.GetVmName(), State: hypervisor.Absent}
	}
	return &berthv1.CommandResult{
		OperationId: command.GetOperationId(), Step: command.GetStep(), Outcome: outcome, Code: code, ErrorCode: errorcode.Word(code),
		Error: text, Domain: telemetry.Domain(domain),
	}
}

// Cancel gives a migration up that is held. For any other order it comes too late: that is done before the next message is read.
func (j *jobs) Cancel(operation string, number uint32) {
	key := step{operation, number}
	j.mu.Lock()
	command := j.held[key]
	if command == nil {
		j.mu.Unlock()
		return
	}
	delete(j.held, key)
	result := j.finish(command, berthv1.CommandOutcome_COMMAND_OUTCOME_CANCELLED, aborted, "cancelled")
	j.answered[key] = result
	j.mu.Unlock()
	j.tell(result)
}

// release does what was held.
func (j *jobs) release() {
	j.mu.Lock()
	var results []*berthv1.CommandResult
	for _, command := range j.held {
		results = append(results, j.answer(command))
	}
	clear(j.held)
	j.mu.Unlock()
	for _, result := range results {
		j.tell(result)
	}
}

// Results are the answers in the order of the commands.
func (j *jobs) Results() <-chan *berthv1.CommandResult { return j.results }

// Progress never has anything: nothing takes time.
func (j *jobs) Progress() <-chan *berthv1.CommandProgress { return nil }

// Saw implements session.Jobs. Nothing depends on how a guest ended.
func (j *jobs) Saw(hypervisor.Event) {}

// Endings implements session.Jobs. Nothing ends here that was not ordered to.
func (j *jobs) Endings() []telemetry.Ending { return nil }

// LastRuns implements session.Jobs.
func (j *jobs) LastRuns() []telemetry.LastRun { return nil }

// Ailing is never: there is no journal.
func (j *jobs) Ailing() error { return nil }

// Running are the operations whose migrations are held: nothing else takes time.
func (j *jobs) Running() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	running := make([]string, 0, len(j.held))
	for key := range j.held {
		running = append(running, key.operation)
	}
	return running
}

// Follow implements session.Jobs. It is called with each welcome, and follows any leader.
func (j *jobs) Follow(uint64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.welcome = time.Now()
	j.welcomes++
	return nil
}

func (j *jobs) welcomed() (last time.Time, times int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.welcome, j.welcomes
}
