package fencing

import (
	"context"
	"time"

	"berth/coordinator/model"
	"berth/coordinator/state"
)

// checkDevices asks the devices which machines they switch, where it is time.
func (c *Fencing) checkDevices(ctx context.Context, snapshot *state.Snapshot) {
	for _, node := range snapshot.Nodes() {
		c.check(ctx, node, identityEvery)
	}
}

// checkAnew asks the device of a node that is about to be fenced, if its answer is not fresh. It reports whether it does.
func (c *Fencing) checkAnew(ctx context.Context, node model.Node) bool {
	return c.check(ctx, node, identityFresh)
}

func (c *Fencing) check(ctx context.Context, node model.Node, older time.Duration) (begun bool) {
	c.with(func(f *Fencer) { begun = f.Begin(&node, older, c.Now()) })
	if begun {
		c.work.Go(func() { c.identify(ctx, &node) })
	}
	return begun
}

func (c *Fencing) identify(ctx context.Context, node *model.Node) (is model.FenceIdentities) {
	c.checks <- struct{}{}
	defer func() { <-c.checks }()
	var said model.FenceIdentities
	all := node.Fence.All()
	for _, device := range all {
		machine, err := c.devices.Identity(ctx, device)
		one := model.FenceIdentity{Machine: machine}
		if err != nil {
			one = model.FenceIdentity{Why: err.Error()}
		}
		one.Useless = c.useless(ctx, device, node.ID, len(all) == 1)
		said = append(said, one)
	}
	c.with(func(f *Fencer) {
		f.Identified(node, said, c.Now())
		is = f.Identity(node)
	})
	if why, _ := is.Refused(node); why != "" {
		c.Logger.Error("a fence device is refused", "node", node.Name, "why", why)
	}
	return is
}

// useless asks a device of a node for the power state, and says why it would prove nothing; empty: it answers. The only device of a node
// that says that it is off while it is heard switches another machine. One of several may be a power supply that has failed.
func (c *Fencing) useless(ctx context.Context, device model.FenceDevice, node string, alone bool) string {
	heard := c.heard(node)
	on, err := c.devices.On(ctx, device)
	switch {
	case ctx.Err() != nil:
		return ""
	case err != nil:
		return "does not answer (" + err.Error() + ")"
	case alone && !on && heard && c.heard(node):
		return "says that it is off, and it answers: it switches another machine"
	}
	return ""
}

func (c *Fencing) heard(node string) bool {
	live := c.Inventory.Facts(node, c.Now()).Liveness
	return live == model.Up || live == model.Degraded
}

// Unprovable says why nothing but somebody's word would prove that a node is off if it fell silent now, and what ends that. Empty:
// something would, as far as is known.
func (c *Fencing) Unprovable(node *model.Node) (why, next string) {
	moment := c.Moment(c.Store.Snapshot())
	c.with(func(f *Fencer) { why, next = f.Unprovable(moment, *node) })
	return why, next
}

// Identify asks a node's devices now which machine they switch.
func (c *Fencing) Identify(ctx context.Context, node *model.Node) model.FenceIdentities {
	begun := false
	c.with(func(f *Fencer) { begun = f.Begin(node, 0, c.Now()) })
	if begun {
		return c.identify(ctx, node)
	}
	return c.IdentityOf(node)
}

// IdentityOf is what a node's devices have said about which machine they switch; empty: they were not asked yet.
func (c *Fencing) IdentityOf(node *model.Node) (is model.FenceIdentities) {
	c.with(func(f *Fencer) { is = f.Identity(node) })
	return is
}
