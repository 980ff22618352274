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

func (c *Fencing) identify(ctx context.Context, node *model.Node) (is model.FenceIdentity) {
	c.checks <- struct{}{}
	defer func() { <-c.checks }()
	machine, err := c.devices.Identity(ctx, node.Fence)
	c.with(func(f *Fencer) {
		f.Identified(node, machine, err, c.Now())
		is = f.Identity(node)
	})
	if why := is.Refused(node); why != "" {
		c.Logger.Error("a fence device is refused", "node", node.Name, "why", why)
	}
	return is
}

// Identify asks a node's device now which machine it switches.
func (c *Fencing) Identify(ctx context.Context, node *model.Node) model.FenceIdentity {
	begun := false
	c.with(func(f *Fencer) { begun = f.Begin(node, 0, c.Now()) })
	if begun {
		return c.identify(ctx, node)
	}
	return c.IdentityOf(node)
}

// IdentityOf is what a node's device has said about which machine it switches; the zero value: it was not asked yet.
func (c *Fencing) IdentityOf(node *model.Node) (is model.FenceIdentity) {
	c.with(func(f *Fencer) { is = f.Identity(node) })
	return is
}
