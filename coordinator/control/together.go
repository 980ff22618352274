package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"berth/coordinator/cluster"
	"berth/coordinator/consensus"
	"berth/coordinator/state"
)

// mostTogether is how many starts are decided before they are committed. All of them wait for the last one's decision.
const mostTogether = 64

// turnstile lets one through at a time. Unlike a mutex, it can be waited for beside something else.
type turnstile chan struct{}

func newTurnstile() turnstile { return make(turnstile, 1) }

func (t turnstile) Lock()   { t <- struct{}{} }
func (t turnstile) Unlock() { <-t }

// waitingStart is a start that somebody waits for.
type waitingStart struct {
	ctx     context.Context // of who waits
	request startRequest
	outcome chan decidedStart // gets one, in which nothing is left to commit
}

// waitingStarts are those that nobody has taken up, in their order.
type waitingStarts struct {
	mu  sync.Mutex
	all []*waitingStart
}

func (w *waitingStarts) add(one *waitingStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, one)
}

// take takes the first ones, at most n.
func (w *waitingStarts) take(n int) []*waitingStart {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := slices.Clone(w.all[:min(n, len(w.all))])
	w.all = slices.Delete(w.all, 0, len(taken))
	return taken
}

// giveBack puts those that were taken and have to wait before all others.
func (w *waitingStarts) giveBack(left []*waitingStart) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = slices.Insert(w.all, 0, left...)
}

// withdraw is false when somebody has taken the start up.
func (w *waitingStarts) withdraw(one *waitingStart) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at := slices.Index(w.all, one)
	if at >= 0 {
		w.all = slices.Delete(w.all, at, at+1)
	}
	return at >= 0
}

// startTogether puts a start to those that wait, and sees to them when it is its turn: as long as one who waits decides and
// commits for all, the others need not.
func (c *Control) startTogether(ctx context.Context, request startRequest) (Started, retry, error) {
	one := &waitingStart{ctx: ctx, request: request, outcome: make(chan decidedStart, 1)}
	c.waiting.add(one)
	for {
		select {
		case made := <-one.outcome:
			if made.refused {
				return made.Started, decided, c.recordRefusal(ctx, made.Decision)
			}
			return made.Started, made.again, made.err
		case c.placing <- struct{}{}:
			c.waiting.giveBack(c.placeTogether(c.waiting.take(mostTogether)))
			c.placing.Unlock()
		case <-ctx.Done():
			if c.waiting.withdraw(one) {
				return Started{}, decided, ctx.Err()
			}
			return Started{}, decided, fmt.Errorf("%w: %w", consensus.ErrUnknown, ctx.Err())
		}
	}
}

// placeTogether decides starts one after the other, each on what the ones before it will take, and commits them together.
// An answer must not rest on what may still be refused: who is not to be started is looked at again, as the first of the next
// turn, and so is who wants a name, disk or request that one before it has. The caller holds placing.
func (c *Control) placeTogether(waiting []*waitingStart) (left []*waitingStart) {
	ctx, leading := c.leadership()
	if !leading {
		for _, one := range waiting {
			one.outcome <- decidedStart{err: errNotLeading}
		}
		return nil
	}
	now, taken := c.look(), claims{}
	var starts []*waitingStart
	var firsts []*beginning
	for i, one := range waiting {
		if err := one.ctx.Err(); err != nil {
			one.outcome <- decidedStart{err: err}
			continue
		}
		if taken.meets(claimsOf(now.snapshot, &one.request)) {
			left = append(left, one)
			continue
		}
		made := c.decideStart(now, one.request)
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
	for i, answer := range c.proposeTogether(ctx, firsts) {
		var made decidedStart
		made.Started, made.again, made.err = c.begun(firsts[i], answer.Result, answer.Err)
		starts[i].outcome <- made
	}
	return left
}

// leadership is the context that ends with it, and whether there is one.
func (c *Control) leadership() (context.Context, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ctx, c.term != 0
}

// proposeTogether commits the first records of operations. Their order is that of the log.
func (c *Control) proposeTogether(ctx context.Context, firsts []*beginning) []consensus.Answer {
	commands := make([]state.Command, len(firsts))
	for i, first := range firsts {
		commands[i] = c.commandOf(first)
	}
	answers := make([]consensus.Answer, len(commands))
	if len(commands) > 1 {
		answers = c.Proposer.ProposeTogether(ctx, commands)
	}
	for i := range commands {
		if len(commands) == 1 || errors.Is(answers[i].Err, consensus.ErrUnknown) {
			answers[i].Result, answers[i].Err = c.propose(ctx, commands[i])
		}
	}
	return answers
}

// claims are what only one start may have, beside room on a node.
type claims map[string]bool

// claimsOf are those of a request. The name stands for the VM and all that its record has.
func claimsOf(snapshot *state.Snapshot, request *startRequest) []string {
	all := []string{"vm/" + request.Name}
	disks, nics, id := request.Disks, request.NICs, request.ID
	if vm, there := snapshot.VMByName(request.Name); there {
		disks, nics, id = vm.Disks, vm.NICs, vm.ID
	}
	if id != "" {
		all = append(all, "id/"+id)
	}
	if request.RequestID != "" {
		all = append(all, "request/"+request.RequestID)
	}
	if request.Root != nil {
		all = append(all, string(cluster.KindDisk)+"/"+request.Root.Name)
	}
	for _, part := range slices.Concat(disks, nics) {
		all = append(all, "part/"+part)
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
