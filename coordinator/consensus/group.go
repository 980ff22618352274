package consensus

import (
	"context"
	"sync"
	"sync/atomic"

	"berth/coordinator/state"
)

const (
	// entriesAtOnce is how many entries are on their way. What is proposed meanwhile shares the next one: a leader that has
	// much to commit pays for a write to its disk once for many commands, and one that has little never waits.
	entriesAtOnce = 2
	// groupMost is how many commands share an entry. More would keep the first one waiting for the last one's turn.
	groupMost = 256
)

// call is one call's proposals. It has one of the slots until the last of them is answered.
type call struct {
	through   *proposing
	proposals []*proposal
	answered  atomic.Int32
}

// proposal is a command on its way into the log.
type proposal struct {
	call   *call
	index  int // among the commands of the call
	data   []byte
	read   *state.Command // what data is read as; nil: it has to be read
	answer chan Answer    // gets one
}

// submit sends the proposals. An error means that none was sent.
func (x *call) submit(ctx context.Context) error {
	c := x.through
	if len(x.proposals) == 0 {
		return nil
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	case <-c.stopped:
		return ErrNotLeader
	}
	if err := notLeader(c.raft.Load().State()); err != nil {
		<-c.slots
		return err
	}
	if c.outgoing.add(x.proposals) {
		go c.send()
	}
	return nil
}

func (p *proposal) settle(answer Answer) {
	p.answer <- answer
	if int(p.call.answered.Add(1)) == len(p.call.proposals) {
		<-p.call.through.slots
	}
}

// outgoing are the proposals that no entry was made of yet.
type outgoing struct {
	// order has room for the one sender that makes an entry and waits until Raft has it: entries keep the order of what is
	// in them. It is no mutex, because Raft may take its time and a test's virtual time does not pass a mutex.
	order chan struct{}

	mu      sync.Mutex
	waiting []*proposal
	senders int // each has one entry on its way
}

// add is true if another sender is to be set going.
func (o *outgoing) add(proposals []*proposal) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, proposals...)
	if o.senders == entriesAtOnce {
		return false
	}
	o.senders++
	return true
}

// take is what goes into the next entry, at most so many. When there is nothing, the sender that asks has ended.
func (o *outgoing) take(most int) []*proposal {
	o.mu.Lock()
	defer o.mu.Unlock()
	size, n := 1, 0
	for n < len(o.waiting) && n < most {
		if size += state.GroupedSize(o.waiting[n].data); n > 0 && size > state.MaxGroup {
			break
		}
		n++
	}
	if n == 0 {
		o.senders--
		return nil
	}
	group := o.waiting[:n:n]
	if o.waiting = o.waiting[n:]; len(o.waiting) == 0 {
		o.waiting = nil
	}
	return group
}

// send makes entries of what waits until nothing does. When Raft is shut down it never answers for what its state machine had
// in its queue; a sender that waits for that stays until the process ends, which it does then.
func (c *proposing) send() {
	for {
		c.outgoing.order <- struct{}{}
		most, level := groupMost, c.store.Snapshot().FeatureLevel()
		if level < state.GroupLevel {
			most = 1 // a member could not read the entry
		}
		group := c.outgoing.take(most)
		if group == nil {
			<-c.outgoing.order
			return
		}
		commands, read := make([][]byte, len(group)), make([]*state.Command, len(group))
		for i, p := range group {
			commands[i], read[i] = p.data, p.read
		}
		entry := state.Entry(commands, level)
		forget := c.store.Foresee(entry, read)
		future := c.raft.Load().Apply(entry, 0)
		<-c.outgoing.order
		err := future.Error()
		forget()
		if err != nil {
			err = outcome(err)
			for _, p := range group {
				p.settle(Answer{Err: err})
			}
			continue
		}
		results := resultsOf(future.Response())
		for i, p := range group {
			if len(results) != len(group) { // the state panicked over it
				p.settle(Answer{Err: ErrUnknown})
				continue
			}
			p.settle(Answer{Result: results[i]})
		}
	}
}

func resultsOf(response any) []state.Result {
	switch results := response.(type) {
	case state.Result:
		return []state.Result{results}
	case []state.Result:
		return results
	default:
		return nil
	}
}
