package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"berth/coordinator/consensus"
	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/operation"
	"berth/coordinator/state"
)

// mostTogether is how many starts are decided before they are committed. All of them wait for the last one's decision.
const mostTogether = 64

// startTogether puts a start to those that wait, and sees to them when it is its turn: as long as one who waits decides and
// commits for all, the others need not.
func (l *Lifecycle) startTogether(ctx context.Context, request startRequest) (Started, lead.Retry, error) {
	one := &waitingStart{ctx: ctx, request: request, outcome: make(chan decidedStart, 1)}
	l.waiting.add(one)
	for {
		select {
		case made := <-one.outcome:
			if made.refused {
				return made.Started, lead.Decided, l.RecordRefusal(ctx, made.Decision)
			}
			return made.Started, made.again, made.err
		case l.Placing <- struct{}{}:
			func() {
				defer l.Placing.Unlock() // even if it panics
				l.waiting.giveBack(l.placeTogether(l.waiting.take(mostTogether)))
			}()
		case <-ctx.Done():
			if l.waiting.withdraw(one) {
				return Started{}, lead.Decided, ctx.Err()
			}
			return Started{}, lead.Decided, fmt.Errorf("%w: %w", consensus.ErrUnknown, ctx.Err())
		}
	}
}

// placeTogether decides starts one after the other, each on what the ones before it will take, and commits them together.
// An answer must not rest on what may still be refused: who is not to be started is looked at again, as the first of the next
// turn, and so is who wants a name, disk or request that one before it has. The caller holds placing.
func (l *Lifecycle) placeTogether(waiting []*waitingStart) (left []*waitingStart) {
	ctx, leading := l.Leadership()
	if !leading {
		for _, one := range waiting {
			one.outcome <- decidedStart{err: lead.ErrNotLeading}
		}
		return nil
	}
	now, taken := l.look(), claims{}
	var starts []*waitingStart
	var firsts []*First
	for i, one := range waiting {
		if err := one.ctx.Err(); err != nil {
			one.outcome <- decidedStart{err: err}
			continue
		}
		if taken.meets(claimsOf(now.snapshot, &one.request)) {
			left = append(left, one)
			continue
		}
		made := l.decideStart(now, one.request)
		if made.first == nil && len(starts) > 0 {
			left = append(left, waiting[i:]...) // those behind it keep their places
			break
		}
		if made.first == nil {
			one.outcome <- made
			continue
		}
		starts, firsts = append(starts, one), append(firsts, made.first)
		taken.add(claimsOf(now.snapshot, &one.request))
		now.starting[made.first.Operation.Target]++
		held, _ := made.first.Operation.Reservation()
		planned, can := now.view.With(made.first.VM, held)
		if !can {
			left = append(left, waiting[i+1:]...)
			break
		}
		now.view = planned
	}
	for i, answer := range l.proposeTogether(ctx, firsts) {
		var made decidedStart
		made.Started, made.again, made.err = l.begun(firsts[i], answer.Result, answer.Err)
		starts[i].outcome <- made
	}
	return left
}

// proposeTogether commits the first records of operations. Their order is that of the log.
func (l *Lifecycle) proposeTogether(ctx context.Context, firsts []*First) []consensus.Answer {
	commands := make([]state.Command, len(firsts))
	for i, first := range firsts {
		commands[i] = l.commandOf(first)
	}
	answers := make([]consensus.Answer, len(commands))
	if len(commands) > 1 {
		answers = l.Proposer.ProposeTogether(ctx, commands)
	}
	for i := range commands {
		if len(commands) == 1 || errors.Is(answers[i].Err, consensus.ErrUnknown) {
			answers[i].Result, answers[i].Err = l.Propose(ctx, commands[i])
		}
	}
	return answers
}

// claims are what only one start may have; room on a node is counted elsewhere.
type claims map[string]bool

// claimsOf are those of a request. The name stands for the VM and all that its record has.
func claimsOf(snapshot *state.Snapshot, request *startRequest) []string {
	all := []string{"vm/" + request.Name}
	vm, there := snapshot.VMByName(request.Name)
	if !there && request.VM != nil {
		vm = *request.VM
	}
	if vm.ID != "" {
		all = append(all, "id/"+vm.ID)
	}
	if request.RequestID != "" {
		all = append(all, "request/"+request.RequestID)
	}
	if request.Root != nil {
		all = append(all, string(model.KindDisk)+"/"+request.Root.Name)
	}
	for _, part := range slices.Concat(vm.Disks, vm.NICs) {
		all = append(all, "part/"+part)
	}
	for _, name := range operation.DiskNames(&vm) {
		all = append(all, "file/"+name)
	}
	return all
}

func (c claims) meets(wanted []string) bool {
	return slices.ContainsFunc(wanted, func(one string) bool { return c[one] })
}

func (c claims) add(taken []string) {
	for _, one := range taken {
		c[one] = true
	}
}

// StartVM decides where a VM goes and commits the start: the record, the reservation and the decision as one. It returns
// once that is done; the operation tells how the start ends. Refusals are of type *Error. Starts that are asked for at the
// same time are decided one after the other, each on what the ones before it will take, and committed together.
func (l *Lifecycle) StartVM(ctx context.Context, request StartVM) (started Started, err error) {
	err = lead.Again(ctx, "vm/"+request.Name, func() (again lead.Retry, err error) {
		started, again, err = l.startTogether(ctx, startRequest{StartVM: request, last: l.askLastNode(ctx, request.Name)})
		return again, err
	})
	return started, err
}
