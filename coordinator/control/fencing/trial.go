package fencing

import (
	"context"

	"berth/coordinator/control/lead"
	"berth/coordinator/evidence"
	"berth/coordinator/model"
)

// tryDevice asks the devices of the node whose turn it is, unless others are being asked, or a node is being fenced.
func (c *Fencing) tryDevice(ctx context.Context, moment evidence.Moment) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trial != nil || len(c.calls) > 0 {
		return
	}
	node, due := c.fencer.Trial(moment)
	if !due {
		return
	}
	limited, cancel := context.WithCancel(ctx)
	now := &trial{cancel: cancel, ended: make(chan struct{})}
	c.trial = now
	c.Beside(&c.work, "trying what fences node "+node.Name, func() {
		defer close(now.ended)
		defer cancel()
		why := ""
		if err := lead.Survive(c.Logger, "trying what fences node "+node.Name, func() error {
			why = c.useless(limited, &node)
			return nil
		}); err != nil {
			why = err.Error()
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.trial = nil
		if limited.Err() == nil {
			c.fencer.Tried(&node, why, c.Now())
		}
	})
}

// endTrial makes way for a fencing: a power strip may let one caller in at a time.
func (c *Fencing) endTrial() {
	c.mu.Lock()
	now := c.trial
	c.mu.Unlock()
	if now != nil {
		now.cancel()
		<-now.ended
	}
}

// useless asks the devices of a node for the power state, and says why they would prove nothing; empty: they answer. The only device of a
// node that says that it is off while it is heard switches another machine. One of several may be a power supply that has failed.
func (c *Fencing) useless(ctx context.Context, node *model.Node) string {
	all := node.Fence.All()
	for _, device := range all {
		heard := c.heard(node.ID)
		limited, cancel := context.WithTimeout(ctx, powerLimit)
		on, err := c.devices.On(limited, device)
		cancel()
		switch {
		case err != nil:
			return unanswered(device, err)
		case len(all) == 1 && !on && heard && c.heard(node.ID):
			return device.Target() + " says that it is off, and it answers: it switches another machine"
		}
	}
	return ""
}

func (c *Fencing) heard(node string) bool { return c.Inventory.Facts(node, c.Now()).Liveness.Answers() }

// unanswered says that a device did not answer.
func unanswered(device model.FenceDevice, err error) string {
	return device.Target() + " does not answer (" + err.Error() + ")"
}

// Unprovable says why nothing but somebody's word would prove that a node is off if it fell silent now, and what ends that. Empty:
// something would, as far as is known.
func (c *Fencing) Unprovable(node *model.Node) (why, next string) {
	moment := c.Moment(c.Store.Snapshot())
	c.with(func(f *Fencer) { why, next = f.Unprovable(moment, *node) })
	return why, next
}

// PowerTried says when the devices of a node were asked last for the power state although nothing was wrong, and what came of that; empty:
// not by this leader.
func (c *Fencing) PowerTried(node *model.Node) (says string) {
	var last power
	c.with(func(f *Fencer) { last = f.powers.of(node) })
	asked := "asked for the power state at " + last.at.UTC().Format("2006-01-02 15:04 MST")
	switch {
	case last.at.IsZero():
		return ""
	case last.why != "":
		return asked + ": " + last.why
	default:
		return asked + ", and it answered"
	}
}
