package fencing

import (
	"context"
	"errors"
	"fmt"
	"time"

	"berth/coordinator/control/lead"
	"berth/coordinator/model"
	"berth/coordinator/state"
)

// askDevice commits that a node's device is asked, and has it asked beside.
func (c *Fencing) askDevice(ctx context.Context, node model.Node, caller, why string) error {
	var command state.Command
	free := false
	ended := make(chan struct{})
	c.with(func(f *Fencer) {
		if command, node, free = f.Ask(node, caller, why, c.Now()); free {
			c.calls[node.ID] = ended
		}
	})
	if !free {
		return nil
	}
	end := func() {
		c.with(func(f *Fencer) {
			delete(c.calls, node.ID)
			f.Free(node.ID)
		})
		close(ended)
	}
	result, err := c.Propose(ctx, command)
	if err != nil || result.Refusal != nil {
		end()
		if err == nil && result.Refusal.Code != state.Stale {
			err = result.Refusal
		}
		return err
	}
	leading, _ := c.Leadership()
	c.Logger.Warn("a node is fenced", "node", node.Name, "program", node.Fence.Title(), "attempt", node.Fencing.Attempt, "why", why)
	c.Beside(&c.work, "fencing node "+node.Name, func() {
		defer end()
		late := ""
		moment := c.Moment(c.Store.Snapshot())
		c.with(func(f *Fencer) {
			f.Witness(moment, node.ID)
			late = f.TooLate(&node, c.Now())
		})
		if late != "" {
			c.endFencing(leading, node, late, false)
			return
		}
		c.endTrial()
		// A panic is a device that did not answer: another attempt follows.
		err := lead.Survive(c.Logger, "fencing node "+node.Name, func() error {
			if err := c.devices.Off(leading, node.Fence); err != nil {
				return err
			}
			return c.doubt(leading, &node)
		})
		if leading.Err() != nil {
			return // the next leader lets it come to its end, and asks again
		}
		c.with(func(f *Fencer) { f.Answered(&node, err == nil, c.Now()) })
		if err != nil {
			c.endFencing(leading, node, err.Error(), false)
		} else {
			c.endFencing(leading, node, node.Fence.Title()+" has switched it off, and says that it is off", true)
		}
	})
	return nil
}

// doubt asks all that may know better than a node's device, which has said that it is off. That another machine was switched off in
// its place counts more than that this one is still reached: the device would strike the other one again and again.
func (c *Fencing) doubt(ctx context.Context, node *model.Node) error {
	reached := c.askPeers(ctx, node)
	if err := c.hearWitnesses(ctx, node); err != nil {
		return err
	}
	return reached
}

// witnessEvery is between two looks at whether all have answered again.
const witnessEvery = 500 * time.Millisecond

// errStruck says that the word of a device does not count.
var errStruck = errors.New("perhaps it has switched that machine off in its place")

// hearWitnesses waits until all that answered when a node's device was asked have answered again. With an error, the device's word
// does not count.
func (c *Fencing) hearWitnesses(ctx context.Context, node *model.Node) error {
	said := c.Now()
	for {
		moment := c.Moment(c.Store.Snapshot())
		var wait bool
		var struck string
		c.with(func(f *Fencer) { wait, struck = f.Doubt(moment, node, said) })
		switch {
		case struck != "":
			return fmt.Errorf("%s says that it is off, and %s fell silent at that moment: %w", node.Fence.Title(), struck, errStruck)
		case !wait:
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(witnessEvery):
		}
	}
}

// endFencing commits what came of a fencing, unless the record tells of another one by now.
func (c *Fencing) endFencing(ctx context.Context, node model.Node, message string, proven bool) {
	for ctx.Err() == nil {
		var command state.Command
		open := false
		moment := c.Moment(c.Store.Snapshot())
		c.with(func(f *Fencer) { command, open = f.End(moment, node, message, proven) })
		if !open {
			return
		}
		result, err := c.Propose(ctx, command)
		switch {
		case err != nil:
			c.Logger.Warn("what came of a fencing could not be kept", "node", node.Name, "error", err)
			return
		case result.Refusal == nil:
			c.Logger.Warn("a fencing has ended", "node", node.Name, "proven", command.Nodes[0].Fenced(), "message", message)
			if proven {
				c.wake(node.ID) // whatever waits for it goes on
			}
			return
		case result.Refusal.Code != state.Stale:
			c.Logger.Error("what came of a fencing was refused", "node", node.Name, "refusal", result.Refusal.Message)
			return
		}
	}
}
