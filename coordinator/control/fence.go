package control

import (
	"context"
	"sync"
	"time"

	"berth/coordinator/cluster"
	"berth/coordinator/state"
)

// fenceEvery is between two looks at silent nodes.
const fenceEvery = time.Second

// FenceDevices reach what nodes are switched off with. Package fence implements it.
type FenceDevices interface {
	// Off switches the node off and asks whether it is. Nil is the proof that it is; with any error nothing is known.
	Off(ctx context.Context, device cluster.FenceDevice) error
	// On asks whether the node is on.
	On(ctx context.Context, device cluster.FenceDevice) (bool, error)
}

// fences is the fencing of this leadership, and the calls of devices that are under way.
type fences struct {
	mu     sync.Mutex
	fencer *Fencer
	calls  map[string]chan struct{} // by node ID: closed when the call of its device has ended
	work   sync.WaitGroup
}

// fencing does something with what is known of fencing.
func (c *Control) fencing(do func(*Fencer)) {
	c.fences.mu.Lock()
	defer c.fences.mu.Unlock()
	do(c.fences.fencer)
}

// Leased takes note that a node gets a lease now, or is told that it needs none any more.
func (c *Control) Leased(node string, leased bool) {
	c.fencing(func(f *Fencer) { f.Leased(node, leased, c.Now()) })
}

// FenceHeld says why a silent node that VMs wait for is not proven to be off; false if nothing is to be said.
func (c *Control) FenceHeld(node string) (verdict FenceVerdict, held bool) {
	c.fencing(func(f *Fencer) { verdict, held = f.Held(node) })
	return verdict, held
}

// watchSilence proves silent nodes to be off until the context ends, and takes note of those that come back.
func (c *Control) watchSilence(ctx context.Context) {
	ticker := time.NewTicker(fenceEvery)
	defer ticker.Stop()
	defer c.fences.work.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot := c.Store.Snapshot()
		c.notice(ctx, c.picture(snapshot))
		if quarantined(snapshot) != nil {
			continue
		}
		c.lookAtSilence(ctx, c.picture(c.Store.Snapshot()))
		c.release(ctx, c.picture(c.Store.Snapshot()))
	}
}

// notice writes down what is new of nodes that are heard.
func (c *Control) notice(ctx context.Context, picture Picture) {
	var all []Notice
	c.fencing(func(f *Fencer) { all = f.Notice(picture) })
	for _, one := range all {
		if c.try(ctx, one.Command) {
			for _, id := range one.Back {
				c.AgentConnected(id)
			}
		}
	}
}

// lookAtSilence does what follows from the nodes' silence.
func (c *Control) lookAtSilence(ctx context.Context, picture Picture) {
	var verdicts, news []FenceVerdict
	c.fencing(func(f *Fencer) {
		if ctx.Err() == nil { // a call that ended with the leadership has not come to its end: the next leader waits for that
			verdicts, news = f.Look(picture)
		}
	})
	for _, verdict := range verdicts {
		node, _ := picture.Node(verdict.Node)
		switch verdict.Act {
		case FenceAsk:
			if err := c.askDevice(ctx, node, berth, verdict.Why); err != nil && ctx.Err() == nil {
				c.Logger.Warn("a node's fence device could not be asked", "node", node.Name, "error", err)
			}
		case FenceProven:
			c.fencing(func(f *Fencer) { node = f.ByWatchdog(node, c.Now()) })
			c.endFencing(ctx, node, verdict.Why, true)
		}
	}
	for _, verdict := range news {
		c.Logger.Warn("a silent node is not fenced", "node", nodeName(picture.Snapshot, verdict.Node), "why", verdict.Why)
		var command state.Command
		c.fencing(func(f *Fencer) { command = f.News(picture, verdict) })
		c.try(ctx, command)
	}
}

// askDevice commits that a node's device is asked, and has it asked beside.
func (c *Control) askDevice(ctx context.Context, node cluster.Node, caller, why string) error {
	var command state.Command
	free := false
	ended := make(chan struct{})
	c.fencing(func(f *Fencer) {
		if command, node, free = f.Ask(node, caller, why, c.Now()); free {
			c.fences.calls[node.ID] = ended
		}
	})
	if !free {
		return nil
	}
	end := func() {
		c.fencing(func(f *Fencer) {
			delete(c.fences.calls, node.ID)
			f.Free(node.ID)
		})
		close(ended)
	}
	result, err := c.propose(ctx, command)
	if err != nil || result.Refusal != nil {
		end()
		if err == nil && result.Refusal.Code != state.Stale {
			err = result.Refusal
		}
		return err
	}
	c.mu.Lock()
	leading := c.ctx
	c.mu.Unlock()
	c.Logger.Warn("a node is fenced", "node", node.Name, "program", node.Fence.Program, "attempt", node.Fencing.Attempt, "why", why)
	c.fences.work.Go(func() {
		defer end()
		late := ""
		c.fencing(func(f *Fencer) { late = f.TooLate(&node, c.Now()) })
		if late != "" {
			c.endFencing(leading, node, late, false)
			return
		}
		err := c.Fences.Off(leading, node.Fence)
		if leading.Err() != nil {
			return // the next leader lets it come to its end, and asks again
		}
		c.fencing(func(f *Fencer) { f.Answered(&node, err == nil, c.Now()) })
		if err != nil {
			c.endFencing(leading, node, err.Error(), false)
		} else {
			c.endFencing(leading, node, node.Fence.Program+" has switched it off, and says that it is off", true)
		}
	})
	return nil
}

// endFencing commits what came of a fencing, unless the record tells of another one by now.
func (c *Control) endFencing(ctx context.Context, node cluster.Node, message string, proven bool) {
	for ctx.Err() == nil {
		var command state.Command
		open := false
		picture := c.picture(c.Store.Snapshot())
		c.fencing(func(f *Fencer) { command, open = f.End(picture, node, message, proven) })
		if !open {
			return
		}
		result, err := c.propose(ctx, command)
		switch {
		case err != nil:
			c.Logger.Warn("what came of a fencing could not be kept", "node", node.Name, "error", err)
			return
		case result.Refusal == nil:
			c.Logger.Warn("a fencing has ended", "node", node.Name, "proven", command.Nodes[0].Fenced(), "message", message)
			if proven {
				c.AgentConnected(node.ID) // whatever waits for it goes on
			}
			return
		case result.Refusal.Code != state.Stale:
			c.Logger.Error("what came of a fencing was refused", "node", node.Name, "refusal", result.Refusal.Message)
			return
		}
	}
}

// release writes down that the VMs of nodes that are proven to be off run nowhere.
func (c *Control) release(ctx context.Context, picture Picture) {
	var commands []state.Command
	c.fencing(func(f *Fencer) { commands = f.Release(picture) })
	for _, command := range commands {
		c.try(ctx, command)
	}
}

// contradicted says why the proof that a node is off does not hold; empty: it does, or there is none.
func (c *Control) contradicted(node *cluster.Node) (why string) {
	picture := c.picture(c.Store.Snapshot())
	c.fencing(func(f *Fencer) { why = f.Contradicted(picture, node) })
	return why
}

// isOff tells whether a node counts as off.
func (c *Control) isOff(snapshot *state.Snapshot, id string) (off bool) {
	node, enrolled := snapshot.Node(id)
	picture := c.picture(snapshot)
	c.fencing(func(f *Fencer) { off = enrolled && f.Off(picture, &node) })
	return off
}

// Contradicted says why the proof that a node is off does not hold; empty: it does, or there is none.
func (c *Control) Contradicted(node string) string {
	record, known := c.Store.Snapshot().Node(node)
	if !known || !c.leading() {
		return ""
	}
	return c.contradicted(&record)
}
