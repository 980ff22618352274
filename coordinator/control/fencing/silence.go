package fencing

import (
	"context"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/state"
)

// fenceEvery is between two looks at silent nodes.
const fenceEvery = time.Second

// Watch proves silent nodes to be off until the context ends, and takes note of those that come back.
func (c *Fencing) Watch(ctx context.Context) {
	ticker := time.NewTicker(fenceEvery)
	defer ticker.Stop()
	defer c.work.Wait()
	touched := c.Inventory.NodesTouched()
	take := func() (*state.Snapshot, evidence.Moment) {
		snapshot := c.Store.Snapshot()
		moment := c.Moment(snapshot)
		some := touched(snapshot, moment.At)
		c.with(func(f *Fencer) { f.Take(moment, some) })
		return snapshot, moment
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		snapshot, moment := take()
		c.notice(ctx, moment)
		c.checkDevices(ctx, moment)
		c.tryDevice(ctx, moment)
		if lead.Quarantined(snapshot) != nil {
			continue
		}
		_, moment = take()
		c.lookAtSilence(ctx, moment)
		_, moment = take()
		c.release(ctx, moment)
	}
}

// notice writes down what is new of nodes that are heard.
func (c *Fencing) notice(ctx context.Context, moment evidence.Moment) {
	var all []Notice
	c.with(func(f *Fencer) { all = f.Notice(moment) })
	for _, one := range all {
		if c.Try(ctx, one.Command) {
			for _, id := range one.Back {
				c.wake(id)
			}
		}
	}
}

// lookAtSilence does what follows from the nodes' silence.
func (c *Fencing) lookAtSilence(ctx context.Context, moment evidence.Moment) {
	var verdicts, news []evidence.FenceVerdict
	c.with(func(f *Fencer) {
		if ctx.Err() == nil { // a call that ended with the leadership has not come to its end: the next leader waits for that
			verdicts, news = f.Look(moment)
		}
	})
	for _, verdict := range verdicts {
		node, _ := moment.Node(verdict.Node)
		switch verdict.Act {
		case evidence.FenceAsk:
			if c.checkAnew(ctx, node) {
				continue // cables and addresses change: what it said an hour ago may be over
			}
			if err := c.askDevice(ctx, node, lead.Berth, verdict.Why); err != nil && ctx.Err() == nil {
				c.Logger.Warn("a node's fence device could not be asked", "node", node.Name, "error", err)
			}
		case evidence.FenceProven:
			c.with(func(f *Fencer) { node = f.ByWatchdog(node, c.Now()) })
			c.endFencing(ctx, node, verdict.Why, true)
		}
	}
	for _, verdict := range news {
		c.Logger.Warn("a silent node is not fenced", "node", moment.NodeName(verdict.Node), "why", verdict.Why)
		var command state.Command
		c.with(func(f *Fencer) { command = f.News(moment, verdict) })
		c.Try(ctx, command)
	}
}

// release writes down that the VMs of nodes that are proven to be off run nowhere.
func (c *Fencing) release(ctx context.Context, moment evidence.Moment) {
	var commands []state.Command
	c.with(func(f *Fencer) { commands = f.Release(moment) })
	for _, command := range commands {
		c.Try(ctx, command)
	}
}
